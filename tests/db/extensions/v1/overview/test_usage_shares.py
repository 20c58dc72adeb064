"""Usage shares by project and by aggregate: recorded with each sample, and shown by GET /v1/usage."""

from __future__ import annotations

import datetime
import random

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import inventories
from placement.extensions.v1.history import sampling, usage_shares
from placement.extensions.v1.history.tables import usage_samples
from placement.extensions.v1.history.tables import usage_shares as table
from placement.index.live import LiveIndex
from tests.db.extensions.event_rows import key
from tests.db.in_process import placement

RACK, ZONE, ROW = (f"aa000000-0000-4000-8000-00000000000{number}" for number in range(3))


def create_provider(service, number, parent=None, aggregates=(), **totals):
    """Create a provider with inventories, and return its uuid."""
    uuid, body = key(number), {"name": f"host{number}", "uuid": key(number)}
    send(service, "POST", "/resource_providers", body | ({"parent_provider_uuid": parent} if parent else {}))
    send(service, "PUT", f"/resource_providers/{uuid}/inventories", {
        "resource_provider_generation": 0, "inventories": {name: {"total": total} for name, total in totals.items()},
    })  # fmt: skip
    generation = 1
    send(
        service,
        "PUT",
        f"/resource_providers/{uuid}/aggregates",
        {"resource_provider_generation": generation, "aggregates": list(aggregates)},
    )
    return uuid


def claim(service, number, project, **resources):
    """Claim amounts of classes for a consumer of a project, by ``_`` and the numbers of the providers."""
    body = {
        "allocations": {key(int(name[1:])): {"resources": amounts} for name, amounts in resources.items()},
        "project_id": project,
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    send(service, "PUT", f"/allocations/{key(1000 + number)}", body)


def send(service, method, path, body):
    reply = service(method, path, 39, body)
    assert reply.status < 300, reply.body


def shares(service, by, query=""):
    """Return the last shares (name, usage, capacity or None) by class, in the order of the response."""
    by_class = service("GET", f"/v1/usage?by={by}{query}").body["shares"]
    return {
        name: [
            (share["name"], *(share["samples"][-1].get(amount) for amount in ("used", "capacity"))) for share in shares
        ]
        for name, shares in by_class.items()
    }


@pytest.fixture
def service(database):
    """Return a service with a host of two NUMA nodes in RACK and ZONE, one in ZONE and ROW, and one in no aggregate."""
    service = placement(database)
    root = create_provider(service, 1, aggregates=(RACK, ZONE), DISK_GB=100)
    create_provider(service, 2, root, VCPU=8)
    # This provider and its root are both in ZONE, in which it counts once.
    create_provider(service, 3, root, aggregates=(ZONE,), VCPU=8)
    create_provider(service, 4, aggregates=(ZONE, ROW), VCPU=4)
    create_provider(service, 5, VCPU=1)
    claim(service, 1, "red", _2={"VCPU": 3}, _1={"DISK_GB": 7})
    claim(service, 2, "red", _3={"VCPU": 2})
    claim(service, 3, "blue", _4={"VCPU": 4}, _3={"VCPU": 4})
    claim(service, 4, "blue", _5={"VCPU": 1})
    return service


@pytest.mark.every_database
def test_a_project_share_is_the_usage_of_its_consumers(database, service):
    sampling.take(database, LiveIndex(database))
    assert shares(service, "project") == {
        "DISK_GB": [("red", 7, None)],
        "VCPU": [("blue", 9, None), ("red", 5, None)],
    }
    assert shares(service, "project", "&class=DISK_GB") == {"DISK_GB": [("red", 7, None)]}


@pytest.mark.every_database
def test_an_aggregate_share_is_the_usage_and_capacity_of_its_providers(database, service):
    sampling.take(database, LiveIndex(database))
    assert shares(service, "aggregate") == {
        "DISK_GB": [(RACK, 7, 100), (ZONE, 7, 100)],
        "VCPU": [(ZONE, 13, 20), (RACK, 9, 16), (ROW, 4, 4)],
    }


@pytest.mark.parametrize("seed", range(5))
def test_each_provider_counts_once_in_each_aggregate_of_its_own_or_of_its_root(database, seed):
    chance = random.Random(seed)
    service, aggregates, parents, sums = placement(database), (RACK, ZONE, ROW), {}, {}
    own = {number: {name for name in aggregates if chance.random() < 0.4} for number in range(1, 16)}
    for number, names in own.items():
        parent = parents[number] = chance.choice([None, *parents])
        total = chance.choice((0, 3, 5))
        create_provider(service, number, key(parent) if parent else None, names, **({"VCPU": total} if total else {}))
        root = number
        while parents[root] is not None:
            root = parents[root]
        for name in own[number] | own[root] if total else ():
            sums[name] = sums.get(name, 0) + int(total * 1.5)
    # Each capacity is rounded down before they are added.
    database.write(lambda db: db.execute(sa.update(inventories).values(allocation_ratio=1.5)))
    sampling.take(database, LiveIndex(database))
    recorded = shares(service, "aggregate").get("VCPU", [])
    assert {name: capacity for name, _, capacity in recorded} == sums


def test_without_by_there_are_no_shares(database, service):
    sampling.take(database, LiveIndex(database))
    assert service("GET", "/v1/usage").body.keys() == {"classes"}


def test_only_the_largest_shares_are_recorded(database, service, monkeypatch):
    monkeypatch.setattr(usage_shares, "MAX_SHARES", 1)
    sampling.take(database, LiveIndex(database))
    assert shares(service, "project")["VCPU"] == [("blue", 9, None)]
    assert shares(service, "aggregate")["VCPU"] == [(ZONE, 13, 20)]


def test_shares_are_sorted_by_their_last_usage_and_samples_by_time(database, service):
    first, second = datetime.datetime(2026, 11, 23, 8), datetime.datetime(2026, 11, 23, 8, 10)
    samples = [{"at": at, "resource_class": "VCPU", "capacity": 10, "used": 10} for at in (first, second)]
    database.write(lambda db: db.execute(sa.insert(usage_samples), samples))
    store(database, first, red=9, former=3, blue=1)
    store(database, second, blue=5, red=4)
    assert usage_of_shares(service, "") == [("blue", [1, 5]), ("red", [9, 4]), ("former", [3])]
    assert usage_of_shares(service, "&limit=1") == [("blue", [5]), ("red", [4])]


def store(database, at, **projects):
    """Store shares of VCPU with a timestamp, in the order of the arguments."""
    rows = [
        {"at": at, "dimension": "project", "resource_class": "VCPU", "place": place, "name": name, "used": used}
        for place, (name, used) in enumerate(projects.items())
    ]
    database.write(lambda db: db.execute(sa.insert(table), rows))


def usage_of_shares(service, query):
    """Return the name of each share of a day, and its usage over time."""
    shares_shown = service("GET", f"/v1/usage?by=project&from=2026-11-23&to=2026-11-24{query}").body["shares"]["VCPU"]
    return [(share["name"], [sample["used"] for sample in share["samples"]]) for share in shares_shown]


def test_shares_are_removed_with_the_samples(database, service):
    sampling.take(database, LiveIndex(database))

    def timestamps():
        return set(database.read(lambda db: db.execute(sa.select(table.c.at))).scalars())

    [now] = timestamps()
    for days in (29, 31):
        store(database, now - datetime.timedelta(days=days), red=1)
    database.recorder.prune()
    assert {(now - at).days for at in timestamps()} == {0, 29}


@pytest.mark.every_database
def test_names_that_a_collation_equates_are_different_shares(database):
    """The key of a share contains its rank instead of its name, so such names do not collide."""
    store(database, datetime.datetime(2026, 11, 23), **{"Red": 3, "red": 2, "red ": 1})
    assert database.read(lambda db: len(db.execute(sa.select(table)).all())) == 3


def test_an_unknown_dimension_is_refused(database):
    reply = placement(database)("GET", "/v1/usage?by=user")
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, "by")
