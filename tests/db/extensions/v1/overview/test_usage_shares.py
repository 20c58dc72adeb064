"""Shares of the usage, by project and by aggregate: what is stored with a sample, and what GET /v1/usage shows."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.extensions.v1.history import sampling, usage_shares
from placement.extensions.v1.history.tables import usage_samples
from placement.extensions.v1.history.tables import usage_shares as table
from tests.db.extensions.event_rows import key
from tests.db.in_process import placement

RACK, ZONE, EMPTY = (f"aa000000-0000-4000-8000-00000000000{number}" for number in range(3))


def provider(service, number, parent=None, aggregates=(), **totals):
    """Make a provider with inventories; return its uuid."""
    uuid, made = key(number), {"name": f"host{number}", "uuid": key(number)}
    send(service, "POST", "/resource_providers", made | ({"parent_provider_uuid": parent} if parent else {}))
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


def claim(service, number, project, **held):
    """Have a consumer of a project hold amounts of classes on providers, by the numbers of these."""
    body = {
        "allocations": {key(int(name[1:])): {"resources": amounts} for name, amounts in held.items()},
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
    """Return the last share of each name, by class, in the order of the reply: used, and capacity if there is one."""
    found = service("GET", f"/v1/usage?by={by}{query}").body["shares"]
    return {
        name: [(each["name"], *(each["samples"][-1].get(amount) for amount in ("used", "capacity"))) for each in of]
        for name, of in found.items()
    }


@pytest.fixture
def service(database):
    """A service with a host of two NUMA nodes in two aggregates, and one without that is in one of them."""
    service = placement(database)
    root = provider(service, 1, aggregates=(RACK, ZONE), DISK_GB=100)
    provider(service, 2, root, VCPU=8)
    # In an aggregate of its own and of its root: it counts once.
    provider(service, 3, root, aggregates=(ZONE,), VCPU=8)
    provider(service, 4, aggregates=(ZONE, EMPTY), VCPU=4)
    provider(service, 5, VCPU=1)
    claim(service, 1, "red", _2={"VCPU": 3}, _1={"DISK_GB": 7})
    claim(service, 2, "red", _3={"VCPU": 2})
    claim(service, 3, "blue", _4={"VCPU": 4}, _3={"VCPU": 4})
    claim(service, 4, "blue", _5={"VCPU": 1})
    return service


@pytest.mark.every_database
def test_a_share_is_what_consumers_of_a_project_hold(database, service):
    sampling.take(database)
    assert shares(service, "project") == {
        "DISK_GB": [("red", 7, None)],
        "VCPU": [("blue", 9, None), ("red", 5, None)],
    }
    assert shares(service, "project", "&class=DISK_GB") == {"DISK_GB": [("red", 7, None)]}


@pytest.mark.every_database
def test_a_share_is_what_the_trees_of_an_aggregate_have_and_what_is_used_of_it(database, service):
    sampling.take(database)
    assert shares(service, "aggregate") == {
        "DISK_GB": [(RACK, 7, 100), (ZONE, 7, 100)],
        "VCPU": [(ZONE, 13, 20), (RACK, 9, 16), (EMPTY, 4, 4)],
    }


def test_without_by_there_are_no_shares(database, service):
    sampling.take(database)
    assert service("GET", "/v1/usage").body.keys() == {"classes"}


def test_only_the_largest_are_kept(database, service, monkeypatch):
    monkeypatch.setattr(usage_shares, "MAX_SHARES", 1)
    sampling.take(database)
    assert shares(service, "project")["VCPU"] == [("blue", 9, None)]
    assert shares(service, "aggregate")["VCPU"] == [(ZONE, 13, 20)]


def test_the_largest_at_the_end_comes_first_and_each_is_in_the_order_of_time(database, service):
    first, second = datetime.datetime(2026, 11, 23, 8), datetime.datetime(2026, 11, 23, 8, 10)
    samples = [{"at": at, "resource_class": "VCPU", "capacity": 10, "used": 10} for at in (first, second)]
    database.write(lambda db: db.execute(sa.insert(usage_samples), samples))
    store(database, first, red=9, gone=3, blue=1)
    store(database, second, blue=5, red=4)
    assert used(service, "") == [("blue", [1, 5]), ("red", [9, 4]), ("gone", [3])]
    assert used(service, "&limit=1") == [("blue", [5]), ("red", [4])]


def store(database, at, **projects):
    """Store shares of VCPU at a moment, in the order of the arguments."""
    rows = [
        {"at": at, "dimension": "project", "resource_class": "VCPU", "place": place, "name": name, "used": used}
        for place, (name, used) in enumerate(projects.items())
    ]
    database.write(lambda db: db.execute(sa.insert(table), rows))


def used(service, query):
    """Return the name of each share of a day, and what is used at each moment."""
    found = service("GET", f"/v1/usage?by=project&from=2026-11-23&to=2026-11-24{query}").body["shares"]["VCPU"]
    return [(each["name"], [sample["used"] for sample in each["samples"]]) for each in found]


def test_shares_are_removed_with_the_samples(database, service):
    sampling.take(database)

    def times():
        return set(database.read(lambda db: db.execute(sa.select(table.c.at))).scalars())

    [now] = times()
    for days in (29, 31):
        store(database, now - datetime.timedelta(days=days), red=1)
    database.recorder.prune()
    assert {(now - at).days for at in times()} == {0, 29}


@pytest.mark.every_database
def test_names_that_a_collation_takes_for_one_are_two_shares(database):
    """Projects are compared by the collation of their table; a share has no key of texts that could collide."""
    store(database, datetime.datetime(2026, 11, 23), **{"Red": 3, "red": 2, "red ": 1})
    assert database.read(lambda db: len(db.execute(sa.select(table)).all())) == 3


def test_a_dimension_that_there_is_not_is_refused(database):
    reply = placement(database)("GET", "/v1/usage?by=user")
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, "by")
