"""Another transaction commits between the read of a node and its lock; the change then applies to the current node.

The tests with threads produce such interleavings by chance, these tests always.  SQLite has none, because it has one
writer at a time.
"""

from __future__ import annotations

import pytest

from placement.extensions.baremetal.objects import holding, placing
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.objects.claims import release
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.db.extensions import bare_metal
from tests.db.extensions.bare_metal import ME, OWNER, YOU, Client, inventories
from tests.db.interleaving import just_before, locking
from tests.made import opened

pytestmark = [
    pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True),
    pytest.mark.every_database,
]

UNIT, OTHER_UNIT = "CUSTOM_BM", "CUSTOM_OTHER"


class Cloud:
    """A node, a client of the routes, and another service on the same database."""

    def __init__(self, database, other):
        self.database, self.other = database, other
        self.client, self.elsewhere = Client(database), Client(other)
        # Create the names and classes: a prerequisite would start the transaction again.
        self.node = self.client.node()
        for resource_class in ("other", "bm"):
            self.patch(self.client, add("resource_class", resource_class))
        self.patch(self.client, add("instance_uuid", ME))
        self.patch(self.client, remove("instance_uuid"))
        assert self.holder == {}

    def patch(self, client, *operations):
        answer = client("PATCH", f"/nodes/{self.node}", [*operations])
        assert answer.status == 200, answer
        return answer.body

    def claim(self, *consumers):
        """Claim a unit for each consumer, in this order, like a Placement client."""
        for consumer in consumers:
            bare_metal.claim(self.other, consumer, {self.node: {UNIT: 1}})

    def end(self, consumer):
        self.other.write(lambda db: release.end_consumer(db, consumer))

    def raise_total(self):
        inventory = Inventory(UNIT, total=2, max_unit=1)
        self.other.write(lambda db: LockedProvider.lock(db, self.node).update_inventory(inventory))

    @property
    def holder(self):
        """Return the consumer that holds the node as ``instance``, and its record as ``allocation``, if they exist."""
        node = self.client.read(self.node)
        holder_uuids = {"instance": node.instance_uuid, "allocation": node.allocation_uuid}
        return {name: value for name, value in holder_uuids.items() if value is not None}

    def before_the_lock(self, act):
        return just_before(self.database, locking, act)


@pytest.fixture
def cloud(database):
    with opened(database.url) as other:
        yield Cloud(database, other)


def add(name, value):
    return {"op": "add", "path": f"/{name}", "value": value}


def remove(name):
    return {"op": "remove", "path": f"/{name}"}


# --- new values of a node --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("has_holder", "operation"),
    [
        (False, add("description", "big")),
        (False, add("instance_uuid", ME)),
        (True, remove("instance_uuid")),
        (False, add("resource_class", "other")),
        (True, add("resource_class", "other")),
    ],
    ids=["no holder", "assigned", "released", "another class", "another class of the holder"],
)
def test_a_patch_applies_to_the_current_node(cloud, has_holder, operation):
    """Values that another patch added to the same mapping stay."""
    if has_holder:
        cloud.claim(ME)

    def meanwhile():
        cloud.patch(cloud.elsewhere, add("extra/theirs", 1))

    with cloud.before_the_lock(meanwhile):
        cloud.patch(cloud.client, operation, add("extra/mine", 1))
    node = cloud.client.read(cloud.node)
    assert node.details["extra"] == {"theirs": 1, "mine": 1}


def test_a_patch_changes_the_class_that_was_changed_meanwhile(cloud):
    """The patch had no effect on the node read before."""
    cloud.claim(ME)

    def meanwhile():
        cloud.patch(cloud.elsewhere, add("resource_class", "other"))

    with cloud.before_the_lock(meanwhile):
        assert cloud.patch(cloud.client, add("resource_class", "bm"))["resource_class"] == "bm"
    assert inventories(cloud.database, cloud.node) == {UNIT: (1, 0)}
    assert cloud.holder == {"instance": ME}


def test_a_patch_assigns_the_node_that_was_released_meanwhile(cloud):
    cloud.claim(ME)
    with cloud.before_the_lock(lambda: cloud.end(ME)):
        assert cloud.patch(cloud.client, add("instance_uuid", ME))["instance_uuid"] == ME
    assert cloud.holder == {"instance": ME}


def test_undeploying_a_node_releases_a_holder_that_claimed_it_meanwhile(cloud):
    cloud.client.change(cloud.node, provision_state="active")

    def meanwhile():
        cloud.patch(cloud.elsewhere, add("instance_uuid", ME))

    with cloud.before_the_lock(meanwhile):
        body = {"target": "deleted"}
        assert cloud.client("PUT", f"/nodes/{cloud.node}/states/provision", body).status == 202
    assert cloud.client.read(cloud.node).provision_state == "available"
    assert cloud.holder == {}


# --- holders ---------------------------------------------------------------------------------------------------------


def test_a_node_is_deleted_with_a_holder_that_claimed_it_meanwhile(cloud):
    def meanwhile():
        cloud.patch(cloud.elsewhere, add("maintenance", True), add("instance_uuid", ME))

    cloud.client.change(cloud.node, maintenance=True)
    with cloud.before_the_lock(meanwhile):
        assert cloud.client("DELETE", f"/nodes/{cloud.node}").status == 204
    assert cloud.client("GET", f"/nodes/{cloud.node}").status == 404


def test_the_unit_of_a_holder_that_claimed_it_meanwhile_moves_to_the_new_class(cloud):
    def work(db):
        holding.reclassify(db, Node.get(db, cloud.node), "other", lambda _locked: None)

    with cloud.before_the_lock(lambda: cloud.claim(ME)):
        cloud.database.write(work)
    assert inventories(cloud.database, cloud.node) == {OTHER_UNIT: (1, 0)}
    assert cloud.holder == {"instance": ME}


def test_the_first_of_two_holders_is_released(cloud):
    """A Placement client has raised the total, so the node has two holders; which one is first changes meanwhile."""
    cloud.raise_total()
    cloud.claim(YOU, ME)
    read = []

    def work(db):
        node = Node.get(db, cloud.node)
        read.append(node.instance_uuid)
        if len(read) == 1:
            cloud.end(YOU)
            cloud.claim(YOU)
        return holding.release(db, node, lambda _locked: None)

    cloud.database.write(work)
    assert read == [YOU, ME]
    assert cloud.holder == {"instance": YOU}


# --- records of nodes in use -----------------------------------------------------------------------------------------


@pytest.fixture
def in_use(cloud):
    """Return the cloud, with its node in the state that a backfill requires."""
    cloud.client.change(cloud.node, provision_state="active")
    return cloud


def backfill(cloud, request):
    """Create a record of the node, with the uuid of its holder if it has one."""

    def work(db):
        return placing.backfill(db, Node.get(db, cloud.node), request, OWNER, keep_holder=True)

    return cloud.database.write(work)


def test_the_record_belongs_to_the_first_of_two_holders(in_use):
    """A Placement client has raised the total, so the node has two holders; which one is first changes meanwhile."""
    in_use.raise_total()
    in_use.claim(YOU, ME)

    def meanwhile():
        in_use.end(YOU)
        in_use.claim(YOU)

    with in_use.before_the_lock(meanwhile):
        assert backfill(in_use, bare_metal.request(resource_class="")).uuid == ME
    assert in_use.holder == {"instance": ME, "allocation": ME}


@pytest.mark.parametrize("statement", [locking, "INSERT INTO baremetal_allocations"], ids=["lock", "insert"])
def test_the_record_gets_a_new_consumer_if_the_holder_ended_meanwhile(in_use, statement):
    """The end of a consumer does not wait for the lock of the node."""
    in_use.patch(in_use.elsewhere, add("instance_uuid", ME))
    request = bare_metal.request(resource_class="")
    with just_before(in_use.database, statement, lambda: in_use.end(ME)):
        assert backfill(in_use, request).uuid == request.uuid
    assert in_use.holder == {"instance": request.uuid, "allocation": request.uuid}
    assert in_use.database.read(lambda db: Record.find(db, ME)) is None


@pytest.mark.parametrize("columns", [{"owner": "yours"}, {"lessee": "yours"}])
@pytest.mark.parametrize("instance", [None, ME])
def test_a_node_that_changed_hands_meanwhile_is_not_recorded(in_use, columns, instance):
    member = {"HTTP_X_AUTH_TOKEN": "user:mine", "HTTP_X_ROLES": "member,reader"}
    in_use.client.change(in_use.node, **dict.fromkeys(columns, "mine"))
    # Create the names of the member's consumers.
    first = in_use.client("POST", "/allocations", {"node": in_use.node}, headers=member)
    in_use.end(first.body["uuid"])
    if instance is not None:
        in_use.patch(in_use.client, add("instance_uuid", instance))

    def meanwhile():
        in_use.elsewhere.change(in_use.node, **columns)

    with in_use.before_the_lock(meanwhile):
        answer = in_use.client("POST", "/allocations", {"node": in_use.node}, headers=member)
    assert answer.status == 400, answer
    assert in_use.holder == ({} if instance is None else {"instance": instance})
    assert in_use.client("GET", "/allocations").body == {"allocations": []}
