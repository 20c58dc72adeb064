"""The order of events that are written, and put in order, at two Galera nodes at once (docs/adr/0042)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.db.extensions import event_rows as rows
from tests.db.extensions.event_rows import chain

pytestmark = [pytest.mark.xdist_group("galera"), pytest.mark.long]


def test_sequencers_at_two_nodes_give_each_transaction_one_position(pair):
    """Each node has writers of its own, and two threads that order all the time."""
    ended = threading.Event()

    def order(database):
        while not ended.is_set():
            database.recorder.order()

    def writing(number):
        chain(pair.databases[number % 2], rows.key(0xFEED0 + number), 30)

    with ThreadPoolExecutor(8) as pool:
        orders = [pool.submit(order, database) for database in (*pair.databases, *pair.databases)]
        try:
            [*pool.map(writing, range(4))]
        finally:
            ended.set()
        for each in orders:
            each.result()
    pair.settle()
    for database in pair.databases:
        database.recorder.order()
        pair.settle()
        assert rows.unordered(database) == 0
    first, second = map(rows.in_order, pair.databases)
    assert first == second
    rows.check(first)
    assert len([row for row in first if row[1] in {rows.key(0xFEED0 + number) for number in range(4)}]) == 120


def test_an_object_that_is_changed_at_both_nodes_has_its_steps_in_order(pair):
    """Nothing is put in order until all of it is committed; the clocks are those of both servers."""
    key = rows.key(0xFEEDF)
    for generation in range(20):
        chain(pair.databases[generation % 2], key, 1, start=generation)
    pair.settle()
    pair.databases[0].recorder.order()
    steps = [row[2:] for row in rows.in_order(pair.databases[0]) if row[1] == key]
    assert steps == [(generation, generation + 1) for generation in range(20)]
