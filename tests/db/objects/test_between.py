"""Another transaction commits exactly between two steps of a claim, and the claim is still atomic.

The storms produce such interleavings by chance; here they are certain.  SQLite has none, since it allows one
writer at a time.
"""

from __future__ import annotations

import threading
import uuid

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import consumers
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from tests.db import interleaving
from tests.db.in_process import placement
from tests.db.interleaving import holding_consumers, locking
from tests.made import opened

pytestmark = [
    pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True),
    pytest.mark.every_database,
]

TOTAL = 4


class Cloud:
    """Two hosts, a consumer with one VCPU on the first, and two services on their database."""

    def __init__(self, database, other):
        self.database = database
        self.call, self.call_elsewhere = placement(database), placement(other)
        self.hosts = [str(uuid.uuid4()) for _ in range(2)]
        self.consumer = str(uuid.uuid4())
        for host in self.hosts:
            assert self.call("POST", "/resource_providers", 39, {"uuid": host, "name": host}).status == 200
            assert self.stock(self.call, host, 0, TOTAL) == 200
        assert self.claim(self.call, {self.hosts[0]: 1}) == 204

    def stock(self, call, host, generation, total):
        body = {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": total}}}
        return call("PUT", f"/resource_providers/{host}/inventories", 39, body).status

    def claim(self, call, amounts, generation=None, *, consumer=None, minor=39):
        """Claim and return the status; 1.27 is the last version without consumer generations."""
        body = {
            "allocations": {host: {"resources": {"VCPU": amount}} for host, amount in amounts.items()},
            "project_id": "p",
            "user_id": "u",
        }
        if minor >= 28:
            body |= {"consumer_generation": generation, "consumer_type": "INSTANCE"}
        return call("PUT", f"/allocations/{consumer or self.consumer}", minor, body).status

    def usages(self):
        pages = [f"/resource_providers/{host}/usages" for host in self.hosts]
        return [self.call("GET", page).body["usages"]["VCPU"] for page in pages]

    def free(self):
        """Return the free capacity of each host in the index."""
        page = "/allocation_candidates?resources=VCPU:1"
        summaries = self.call("GET", page).body["provider_summaries"]
        amounts = [summaries[host]["resources"]["VCPU"] if host in summaries else None for host in self.hosts]
        return [TOTAL if resource is None else resource["capacity"] - resource["used"] for resource in amounts]

    def just_before(self, beginning, act):
        return interleaving.just_before(self.database, beginning, act)


@pytest.fixture(params=[True, False], ids=["history", "no-history"])
def cloud(database, request):
    """With a history, claims lock the consumers before they read the allocations."""
    recorded = request.param
    with opened(database.url, recorded=recorded) as here, opened(database.url, recorded=recorded) as elsewhere:
        yield Cloud(here, elsewhere)


def test_a_changed_consumer_is_not_changed_with_its_old_generation(cloud):
    here, there = cloud.hosts

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {there: 1}, 1) == 204

    with cloud.just_before("UPDATE consumers", meanwhile):
        assert cloud.claim(cloud.call, {here: 2}, 1) == 409
    assert cloud.usages() == [0, 1]


def test_a_changed_consumer_is_not_ended_with_its_old_generation(cloud):
    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {cloud.hosts[1]: 1}, 1) == 204

    with cloud.just_before(holding_consumers, meanwhile):
        assert cloud.claim(cloud.call, {}, 1) == 409
    assert cloud.usages() == [0, 1]


def test_a_consumer_that_moved_is_released_at_its_new_host(cloud):
    """The claim without a generation wins, as the last writer; the feed must name both hosts."""
    here, there = cloud.hosts
    assert cloud.free() == [TOTAL - 1, TOTAL]

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {there: 1}, 1) == 204
        assert cloud.free() == [TOTAL, TOTAL - 1]

    with cloud.just_before(holding_consumers, meanwhile):
        assert cloud.claim(cloud.call, {here: 2}, minor=27) == 204
    assert cloud.usages() == [2, 0]
    assert cloud.free() == [TOTAL - 2, TOTAL]


@pytest.mark.parametrize("amounts", [{"VCPU": 2}, {}], ids=["changed", "ended"])
def test_a_claim_without_a_generation_does_not_collide_with_a_change_of_its_consumer(cloud, amounts):
    """Otherwise it could collide in every attempt while others keep writing the same consumer."""
    here, there = cloud.hosts
    claim, attempts = Claim(cloud.consumer, {here: amounts} if amounts else {}, Owner("p", "u")), []

    def work(db):
        attempts.append(db.attempt)
        ClaimSet(db, [claim]).place()

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {there: 1}, 1) == 204

    with cloud.just_before(holding_consumers, meanwhile):
        cloud.database.write(work)
    assert attempts == [1]
    assert cloud.usages() == [amounts.get("VCPU", 0), 0]


def test_a_consumer_created_meanwhile_is_noticed(cloud):
    consumer, (here, there) = str(uuid.uuid4()), cloud.hosts

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {there: 1}, consumer=consumer) == 204

    with cloud.just_before("INSERT INTO consumers", meanwhile):
        assert cloud.claim(cloud.call, {here: 2}, consumer=consumer) == 409
    assert cloud.usages() == [1, 1]


@pytest.fixture
def rowless(cloud, database):
    """Delete the row of the consumer, as in very old databases: no response shows its allocations."""
    database.write(lambda db: db.execute(sa.delete(consumers)))


def test_a_rowless_consumer_that_claimed_meanwhile_is_not_ended(cloud, rowless):
    _, there = cloud.hosts

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {there: 1}) == 204

    def ending(statement):
        return statement.startswith(("INSERT INTO consumers", "DELETE FROM allocations"))

    with cloud.just_before(ending, meanwhile):
        assert cloud.claim(cloud.call, {}) == 409
    assert cloud.usages() == [0, 1]


def test_a_rowless_consumer_is_locked_while_it_ends(cloud, rowless):
    """Otherwise a claim placed meanwhile would be deleted with the old allocations."""
    _, there = cloud.hosts
    statuses = []
    claimer = threading.Thread(
        target=lambda: statuses.append(cloud.claim(cloud.call_elsewhere, {there: 1})), daemon=True
    )

    def meanwhile():
        claimer.start()
        interleaving.wait_for_lock(cloud.database)

    with cloud.just_before("DELETE FROM allocations", meanwhile):
        assert cloud.claim(cloud.call, {}) == 204
    claimer.join()
    assert statuses == [204]
    assert cloud.usages() == [0, 1]


def test_the_last_free_unit_is_allocated_once(cloud):
    """Usage that was read before the lock would show free capacity."""
    here, _ = cloud.hosts

    def meanwhile():
        assert cloud.claim(cloud.call_elsewhere, {here: TOTAL - 1}, consumer=str(uuid.uuid4())) == 204

    with cloud.just_before("UPDATE resource_providers", meanwhile):
        assert cloud.claim(cloud.call, {here: 1}, consumer=str(uuid.uuid4())) == 409
    assert cloud.usages() == [TOTAL, 0]


def test_a_provider_deleted_meanwhile_is_refused(cloud):
    _, there = cloud.hosts

    def meanwhile():
        assert cloud.call_elsewhere("DELETE", f"/resource_providers/{there}").status == 204

    with cloud.just_before("UPDATE resource_providers", meanwhile):
        assert cloud.claim(cloud.call, {there: 1}, consumer=str(uuid.uuid4())) == 400


def test_a_reshape_notices_a_concurrent_change_of_its_inventories(cloud):
    _, there = cloud.hosts
    new = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 9}}}
    body = {"inventories": {there: new}, "allocations": {}}

    def meanwhile():
        assert cloud.stock(cloud.call_elsewhere, there, 1, 7) == 200

    with cloud.just_before(locking, meanwhile):
        answer = cloud.call("POST", "/reshaper", 39, body)
    assert (answer.status, answer.error["code"]) == (409, "placement.concurrent_update")
    page = f"/resource_providers/{there}/inventories"
    assert cloud.call("GET", page).body["inventories"]["VCPU"]["total"] == 7


@pytest.mark.parametrize("how", ["removed", "emptied", "updated"])
def test_an_inventory_keeps_its_class_if_class_names_are_exchanged(cloud, how):
    """Classes whose names are exchanged meanwhile do not exchange the changes of their inventories."""
    here, run = cloud.hosts[1], uuid.uuid4().hex.upper()
    first, second, third = (f"CUSTOM_{name}_{run}" for name in ("A", "B", "C"))
    for name in (first, second):
        assert cloud.call("PUT", f"/resource_classes/{name}", 7).status == 201
    page = f"/resource_providers/{here}/inventories"
    inventories = {first: {"total": 1}, second: {"total": 2}}
    body = {"resource_provider_generation": 1, "inventories": inventories}
    assert cloud.call("PUT", page, 39, body).status == 200

    def meanwhile():
        for old, new in ((first, third), (second, first)):
            assert cloud.call_elsewhere("PUT", f"/resource_classes/{old}", 2, {"name": new}).status == 200

    statement = "SELECT resource_classes.name, inventories.total"
    if how != "updated":  # the statement after that one
        statement = "SELECT DISTINCT allocations.resource_class_id"
    with cloud.just_before(statement, meanwhile):
        if how == "removed":
            assert cloud.call("DELETE", f"{page}/{first}").status == 204
        elif how == "emptied":
            assert cloud.call("DELETE", page).status == 204
        else:
            changed = {"resource_provider_generation": 2, "total": 9}
            assert cloud.call("PUT", f"{page}/{first}", 39, changed).status == 200
    inventories = cloud.call("GET", page).body["inventories"]
    expected = {"removed": {first: 2}, "emptied": {}, "updated": {first: 9, third: 1}}[how]
    assert {name: record["total"] for name, record in inventories.items()} == expected


def test_capacity_that_a_consumer_of_the_request_takes_meanwhile_is_free_for_the_request(cloud):
    """The consumer was absent when the request that ends it began; the requests could also run in sequence."""
    newcomer, host = str(uuid.uuid4()), cloud.hosts[0]
    owner = {"project_id": "p", "user_id": "u"}
    body = {
        cloud.consumer: {"allocations": {host: {"resources": {"VCPU": 2}}}, **owner},
        newcomer: {"allocations": {}, **owner},
    }

    def appear():
        assert cloud.claim(cloud.call_elsewhere, {host: 3}, consumer=newcomer) == 204

    with cloud.just_before(holding_consumers, appear):
        assert cloud.call("POST", "/allocations", 13, body).status == 204
    assert cloud.usages() == [2, 0]
