"""``placement-manage db release`` where there are nodes or allocation records."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from placement.db.schema import schema
from placement.extensions.baremetal.tables import baremetal_allocations, baremetal_nodes
from tests.db.manage import execute
from tests.made import opened

LAST_COMMON = "a082b8bb98d0"
UUID = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def database(database_url):
    with opened(database_url) as database:
        yield database


def test_db_release_is_refused_while_there_are_nodes_or_allocation_records(run, database):
    run("db", "sync")
    node = {"uuid": UUID, "driver": "fake-hardware", "details": {}}
    record = {"uuid": UUID, "traits": [], "candidate_nodes": [], "extra": {}}
    nodes, records = baremetal_nodes, baremetal_allocations
    for rows, numbers in (
        ([sa.insert(nodes).values(node)], "1 nodes and 0 allocation records"),
        ([sa.insert(records).values(record)], "1 nodes and 1 allocation records"),
        ([sa.delete(nodes)], "0 nodes and 1 allocation records"),
    ):
        execute(database.engine, *rows)
        before = (
            schema.version(database.engine),
            execute(database.engine, sa.select(nodes)),
            execute(database.engine, sa.select(records)),
        )
        for words in ([], ["--force"]):
            ran = run("db", "release", *words)
            assert (ran.code, ran.out) == (1, "")
            assert f"contains {numbers} of the Bare Metal API, which would be lost" in ran.err
            assert "--discard-baremetal" in ran.err
        assert before == (
            schema.version(database.engine),
            execute(database.engine, sa.select(nodes)),
            execute(database.engine, sa.select(records)),
        )
    assert run("db", "release", "--discard-baremetal").code == 0
    assert run("db", "version").out == f"{LAST_COMMON}\n"
    assert "baremetal_nodes" not in sa.inspect(database.engine).get_table_names()
