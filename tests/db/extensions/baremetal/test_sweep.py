"""The sweep of allocation records that have ended (docs: commands)."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_provider_aggregates,
    users,
)
from placement.extensions.baremetal.tables import baremetal_allocations
from tests import made
from tests.db import sql_hooks
from tests.db.db.writes.test_names import Cloud
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database

NAMED = (projects, users, consumer_types, placement_aggregates)
RECORDS = baremetal_allocations
REFERRING = (allocations, consumers, resource_provider_aggregates)


class Records(Cloud):
    """Providers as nodes, and rows of records, written without the API."""

    def node(self):
        """Create a provider with inventory; return its uuid."""
        self.__init__(self.database)
        return self.host

    def record(self, node, consumer=None):
        """Insert a record; return its uuid."""
        consumer = consumer or str(uuid.uuid4())
        row = {"uuid": consumer, "node_uuid": node, "traits": [], "candidate_nodes": [], "extra": {}}
        self.database.write(lambda db: db.execute(sa.insert(RECORDS).values(row)))
        return consumer

    def sweep(self):
        """Sweep; return the uuids of the deleted records."""
        before = self.present()
        removed = {result.table: result.removed for result in made.sweep_database(self.database)}[RECORDS.name]
        missing = before - self.present()
        assert len(missing) == removed
        return missing

    def present(self):
        return set(self.database.read(lambda db: db.execute(sa.select(RECORDS.c.uuid)).scalars().all()))


@pytest.fixture
def records(database):
    return Records(database)


def test_a_sweep_removes_records_whose_consumer_has_no_allocation_on_the_node(records):
    active = records.record(records.node(), records.claim("P")[1])
    in_error = records.record(None)
    never = records.record(records.node())
    released = records.record(records.node(), records.claim("P")[1])
    assert records.call("DELETE", f"/allocations/{released}").status == 204
    node = records.node()
    moved = records.record(node, records.claim("P")[1])
    records.node()
    assert records.call("PUT", f"/allocations/{moved}", 39, records.holding("P", consumer_generation=1)).status == 204
    without_provider = records.record(str(uuid.uuid4()))
    held_by_another = records.record(records.node())
    assert records.claim("P")[0] == 204
    assert records.sweep() == {never, released, moved, without_provider, held_by_another}
    assert records.present() == {active, in_error}
    assert records.sweep() == set()


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_record_whose_node_is_claimed_again_at_the_last_moment_is_kept(records):
    """The claim comes between the statement that finds ended records and the one that removes them."""
    host_allocations = {records.host: {"resources": {"VCPU": 1}}}
    consumer = records.record(records.host)
    other = records.record(records.node())
    claimed = []

    def meanwhile(statement):
        if statement.startswith("DELETE FROM baremetal_allocations") and not claimed:
            with opened(records.database.url) as elsewhere:
                records.call = placement(elsewhere)
                path = f"/allocations/{consumer}"
                claimed.append(
                    records.call("PUT", path, 39, records.holding("P") | {"allocations": host_allocations}).status
                )

    with sql_hooks.statements(records.database.engine, meanwhile):
        assert records.sweep() == {other}
    assert claimed == [204]
