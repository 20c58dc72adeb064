"""The tables of the Bare Metal API in databases of every kind and revision."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.db.schema import schema, tables
from placement.extensions.baremetal.tables import baremetal_allocations, baremetal_nodes
from tests import made
from tests.db.manage import execute
from tests.made import opened

pytestmark = pytest.mark.every_database

LAST_COMMON = "a082b8bb98d0"
FEED = "a3683ed2ecbc"
UUID = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def database(database_url):
    """Return a database without tables."""
    with opened(database_url) as empty:
        yield empty


@pytest.fixture
def engine(database):
    return database.engine


def provider(**values):
    row = {"uuid": "u1", "name": "n1", "generation": 0, **values}
    return sa.insert(tables.resource_providers).values(row)


def allocation(**values):
    return sa.insert(tables.allocations).values(resource_provider_id=1, resource_class_id=0, used=1, **values)


def node(**values):
    row = {"uuid": UUID, "driver": "fake-hardware", "details": {"extra": {"a": [1, None]}}, **values}
    return sa.insert(baremetal_nodes).values(row)


def record(**values):
    row = {"uuid": UUID, "traits": ["CUSTOM_B", "CUSTOM_A"], "candidate_nodes": [], "extra": {}, **values}
    return sa.insert(baremetal_allocations).values(row)


def test_nodes_and_records_survive_a_stamp_back_and_a_sync(engine):
    made.sync(engine)
    execute(engine, node(name="n1"), record(name="a1", node_uuid=UUID))
    for revision in (LAST_COMMON, FEED):
        schema.stamp(engine, revision)
        made.sync(engine)
    assert [row.name for row in execute(engine, sa.select(baremetal_nodes))] == ["n1"]
    assert [row.node_uuid for row in execute(engine, sa.select(baremetal_allocations))] == [UUID]


def test_bare_metal_tables_store_dates_and_documents_unchanged(engine):
    made.sync(engine)
    at = datetime.datetime(2026, 11, 20, 8, 11, 35, 396209)
    execute(engine, node(created_at=at, provision_updated_at=at), record(created_at=at, updated_at=at))
    (row,) = execute(engine, sa.select(baremetal_nodes))
    assert (row.created_at, row.updated_at, row.provision_updated_at) == (at, None, at)
    assert (row.details, row.maintenance) == ({"extra": {"a": [1, None]}}, False)
    (row,) = execute(engine, sa.select(baremetal_allocations))
    assert (row.created_at, row.updated_at, row.traits) == (at, at, ["CUSTOM_B", "CUSTOM_A"])


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4"])
def test_bare_metal_texts_are_exact_and_complete_in_any_database(engine, charset):
    execute(engine, f"ALTER DATABASE CHARACTER SET {charset}")
    made.sync(engine)
    texts = ["gold", "Gold", "g\u00f6ld", "\N{GRINNING FACE}\N{SNOWMAN}"]
    for number, text in enumerate(texts):
        columns = {"name": text, "resource_class": text, "owner": text}
        execute(engine, node(uuid=str(number), lessee=text, **columns))
        execute(engine, record(uuid=str(number), last_error=text * 20_000, **columns))
    for table in (baremetal_nodes, baremetal_allocations):
        for column in (table.c.name, table.c.resource_class, table.c.owner):
            for text in texts:
                assert execute(engine, sa.select(column).where(column == text)) == [(text,)]
    errors = execute(engine, sa.select(baremetal_allocations.c.last_error).order_by("id"))
    assert errors == [(text * 20_000,) for text in texts]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4"])
def test_bare_metal_uuids_are_joined_under_any_default_collation(engine, charset):
    """The default differs from the tables' collation after a backup is restored into a new database."""
    execute(engine, f"ALTER DATABASE CHARACTER SET {charset}")
    made.sync(engine, FEED)
    execute(engine, "ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    made.sync(engine)
    nodes, records = baremetal_nodes, baremetal_allocations
    execute(engine, provider(id=1, uuid=UUID, root_provider_id=1), allocation(consumer_id=UUID))
    execute(engine, node(parent_node=UUID), record(node_uuid=UUID))
    for column, other in (
        (nodes.c.uuid, tables.resource_providers.c.uuid),
        (nodes.c.parent_node, tables.resource_providers.c.uuid),
        (records.c.node_uuid, nodes.c.uuid),
        (records.c.uuid, tables.allocations.c.consumer_id),
    ):
        assert execute(engine, sa.select(column).join(other.table, column == other)) == [(UUID,)]
