"""A change of a node locks its consumer before its provider, as PUT /allocations does."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import consumers
from tests.db.db.writes.test_lock_order import Forest, new
from tests.db.db.writes.test_waiting import Meanwhile
from tests.db.extensions.bare_metal import Client
from tests.db.interleaving import wait_for_lock

pytestmark = [
    pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True),
    pytest.mark.every_database,
]


_LOCK_CONSUMER = sa.select(consumers.c.id).where(consumers.c.uuid == sa.bindparam("uuid")).with_for_update()


def _adopt(client, node, consumer):
    body = {"driver": "fake-hardware", "uuid": node, "resource_class": "bm", "instance_uuid": consumer}
    return client("POST", "/nodes", body).status


def _reclassify_and_assign(client, node, consumer):
    return _patch(client, node, resource_class="other", instance_uuid=consumer)


def _patch(client, node, **values):
    operations = [{"op": "add", "path": f"/{name}", "value": value} for name, value in values.items()]
    return client("PATCH", f"/nodes/{node}", operations).status


def _respell_and_release(client, node, _consumer):
    """Rename the class to another spelling of the same unit."""
    return _patch(client, node, resource_class="BM", instance_uuid=None)


@pytest.mark.parametrize(("act", "status"), [(_adopt, 201), (_reclassify_and_assign, 200), (_respell_and_release, 200)])
def test_a_change_of_a_node_that_waits_for_a_consumer_has_locked_no_provider(database, act, status):
    """PUT /allocations locks the consumer first: the other order would deadlock."""
    client, forest, consumer = Client(database), Forest(database), new()
    other_provider, node = forest.provider(), forest.provider()
    body = {
        "allocations": {other_provider: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert forest.ask("PUT", f"/allocations/{consumer}", 39, body).status == 204
    assert _adopt(client, forest.provider(), new()) == 201, "the class exists, so one attempt suffices"
    if act is not _adopt:
        assert _adopt(client, node, consumer if act is _respell_and_release else None) == 201
    assert _patch(client, node, resource_class="other") in (200, 404)
    assert _patch(client, node, resource_class="bm") in (200, 404)
    with database.engine.connect() as connection:
        connection.execute(_LOCK_CONSUMER, {"uuid": consumer}).one()
        meanwhile = Meanwhile(act, client, node, consumer)
        wait_for_lock(database)
        assert forest.is_free(node)
        connection.rollback()
    assert meanwhile.wait()
    assert meanwhile.result == status
