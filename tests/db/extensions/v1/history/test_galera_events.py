"""The order of events that are written and ordered at two Galera nodes at once (docs/adr/0042)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.db.extensions import event_rows as rows
from tests.db.extensions.event_rows import chain

pytestmark = [pytest.mark.xdist_group("galera"), pytest.mark.long]


def test_concurrent_ordering_at_two_nodes_assigns_one_position_to_each_transaction(pair):
    """Each node has its own writers, and two threads that order continuously."""
    ended = threading.Event()

    def order(database):
        while not ended.is_set():
            database.recorder.order()

    def write(number):
        chain(pair.databases[number % 2], rows.key(0xFEED0 + number), 30)

    with ThreadPoolExecutor(8) as pool:
        order_tasks = [pool.submit(order, database) for database in (*pair.databases, *pair.databases)]
        try:
            [*pool.map(write, range(4))]
        finally:
            ended.set()
        for task in order_tasks:
            task.result()
    pair.settle()
    for database in pair.databases:
        database.recorder.order()
        pair.settle()
        assert rows.count_without_position(database) == 0
    first, second = map(rows.in_order, pair.databases)
    assert first == second
    rows.check(first)
    assert len([row for row in first if row[1] in {rows.key(0xFEED0 + number) for number in range(4)}]) == 120


def test_the_steps_of_an_object_changed_at_both_nodes_are_in_order(pair):
    """The steps are ordered only once all of them are committed; the clock of its node sets each timestamp."""
    key = rows.key(0xFEEDF)
    for generation in range(20):
        chain(pair.databases[generation % 2], key, 1, start=generation)
    pair.settle()
    pair.databases[0].recorder.order()
    steps = [row[2:] for row in rows.in_order(pair.databases[0]) if row[1] == key]
    assert steps == [(generation, generation + 1) for generation in range(20)]
