"""Known bugs of similar services that are not covered elsewhere (docs/reliability.rst)."""

from __future__ import annotations

import uuid

import pytest

from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.made import opened
from tests.nonsense.odd_values import NOWHERE


@pytest.fixture
def call(database):
    """Return a function that sends requests to the service."""
    return placement(database)


@pytest.fixture
def other(database):
    """Return a function that sends requests to another process of the service, which has its own caches."""
    with opened(database.url) as elsewhere:
        yield placement(elsewhere)


def provider(call, **totals):
    """Create a provider with these amounts of each class; return its uuid."""
    name = str(uuid.uuid4())
    assert call("POST", "/resource_providers", 39, {"uuid": name, "name": name}).status == 200
    assert call("PUT", f"/resource_providers/{name}/inventories", 39, has(0, **totals)).status == 200
    return name


def has(generation, **totals):
    inventories = {name: {"total": total} for name, total in totals.items()}
    return {"resource_provider_generation": generation, "inventories": inventories}


def takes(resources, generation=None, project="project", user="user"):
    """Return the body of a claim."""
    return {
        "allocations": {name: {"resources": amounts} for name, amounts in resources.items()},
        "project_id": project,
        "user_id": user,
        "consumer_type": "INSTANCE",
        "consumer_generation": generation,
    }


def test_a_reshape_may_claim_from_a_provider_whose_inventory_is_unchanged(call):
    """LP 1783130: a provider that was missing in the inventories of the reshape caused a KeyError."""
    host, other_host = provider(call, VCPU=4, VGPU=2), provider(call, DISK_GB=10)
    device = provider(call, PGPU=1)
    consumer = str(uuid.uuid4())
    first = takes({host: {"VCPU": 1, "VGPU": 1}, other_host: {"DISK_GB": 5}})
    assert call("PUT", f"/allocations/{consumer}", 39, first).status == 204
    moved = takes({host: {"VCPU": 1}, other_host: {"DISK_GB": 6}, device: {"VGPU": 1}}, generation=1)
    reshape = {
        "inventories": {host: has(2, VCPU=4), device: has(1, VGPU=2)},
        "allocations": {consumer: moved},
    }
    assert call("POST", "/reshaper", 39, reshape).status == 204
    allocations = call("GET", f"/allocations/{consumer}").body["allocations"]
    assert {name: allocation["resources"] for name, allocation in allocations.items()} == {
        host: {"VCPU": 1},
        other_host: {"DISK_GB": 6},
        device: {"VGPU": 1},
    }
    generations = {name: allocation["generation"] for name, allocation in allocations.items()}
    assert generations == {host: 5, other_host: 3, device: 4}


def test_a_name_refers_to_the_class_that_currently_has_it(call, other):
    """Story 2006232: a process cached the ids of classes, and wrote with the id of another class."""
    assert call("PUT", "/resource_classes/CUSTOM_BEFORE", 7).status == 201
    old = provider(call, CUSTOM_BEFORE=1)
    assert other("PUT", "/resource_classes/CUSTOM_BEFORE", 2, {"name": "CUSTOM_AFTER"}).status == 200
    assert other("PUT", "/resource_classes/CUSTOM_BEFORE", 7).status == 201
    new = provider(call, CUSTOM_BEFORE=2)
    assert call("PUT", f"/allocations/{NOWHERE}", 39, takes({new: {"CUSTOM_BEFORE": 2}})).status == 204
    for ask in (call, other):
        assert ask("GET", f"/resource_providers/{old}/usages").body["usages"] == {"CUSTOM_AFTER": 0}
        assert ask("GET", f"/resource_providers/{new}/usages").body["usages"] == {"CUSTOM_BEFORE": 2}


def test_a_reused_id_does_not_refer_to_the_deleted_class(call, other):
    """Story 2006232, with a reused id: the highest id is assigned again."""
    assert call("PUT", "/resource_classes/CUSTOM_GONE", 7).status == 201
    deleted = provider(call, CUSTOM_GONE=1)
    assert other("DELETE", f"/resource_providers/{deleted}").status == 204
    assert other("DELETE", "/resource_classes/CUSTOM_GONE").status == 204
    assert other("PUT", "/resource_classes/CUSTOM_NEXT", 7).status == 201
    name = str(uuid.uuid4())
    assert call("POST", "/resource_providers", 39, {"uuid": name, "name": name}).status == 200
    refused = call("PUT", f"/resource_providers/{name}/inventories", 39, has(0, CUSTOM_GONE=1))
    assert refused.status == 400
    assert "No such resource class CUSTOM_GONE." in refused.error["detail"]


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("field", ["name", "uuid"])
def test_a_name_taken_at_the_last_moment_is_a_conflict(database, call, other, field):
    """Story 2008750: the message of a duplicate key differs by database version, and was parsed wrongly."""
    winner = {"name": str(uuid.uuid4()), "uuid": str(uuid.uuid4())}
    loser = {"name": str(uuid.uuid4()), "uuid": str(uuid.uuid4()), field: winner[field]}
    won = []

    def meanwhile(statement):
        if statement.startswith("INSERT INTO resource_providers") and not won:
            won.append(other("POST", "/resource_providers", 39, winner).status)

    with sql_hooks.statements(database.engine, meanwhile):
        refused = call("POST", "/resource_providers", 39, loser)
    assert won == [200]
    assert (refused.status, refused.error["code"]) == (409, "placement.duplicate_name")
    assert f"Conflicting resource provider {field}: {winner[field]} already exists." in refused.error["detail"]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_usages_are_grouped_as_strict_databases_require(database):
    """LP 1765204: columns were missing in GROUP BY, which MySQL accepts unless ONLY_FULL_GROUP_BY is set."""
    with opened(database.url, mysql_sql_mode="TRADITIONAL,ONLY_FULL_GROUP_BY") as strict:
        call = placement(strict)
        host = provider(call, VCPU=4, DISK_GB=9)
        for number in range(2):
            claim = takes({host: {"VCPU": 1, "DISK_GB": 2}}, project="grouped")
            assert call("PUT", f"/allocations/{uuid.UUID(int=number + 1)}", 39, claim).status == 204
        assert call("GET", "/usages?project_id=grouped", 9).body["usages"] == {"VCPU": 2, "DISK_GB": 4}
        usages = {"consumer_count": 2, "VCPU": 2, "DISK_GB": 4}
        assert call("GET", "/usages?project_id=grouped").body["usages"] == {"INSTANCE": usages}
        assert call("GET", "/usages?project_id=grouped&consumer_type=all").body["usages"] == {"all": usages}
        assert call("GET", f"/resource_providers/{host}/usages").body["usages"] == {"VCPU": 2, "DISK_GB": 4}
        for resources in ("VCPU:2", "VCPU:2,DISK_GB:5"):
            providers = call("GET", f"/resource_providers?resources={resources}").body["resource_providers"]
            assert [listed["uuid"] for listed in providers] == [host]


def test_a_user_is_not_confused_with_the_project_of_the_same_id(call):
    """LP 1785382: users were joined by the ids of projects."""
    host = provider(call, VCPU=10)
    owners = [("first", "first user"), ("second", "first user"), ("second", "second user"), ("third", "first user")]
    for number, (project, user) in enumerate(owners):
        consumer = uuid.UUID(int=number + 1)
        claim = takes({host: {"VCPU": number + 1}}, project=project, user=user)
        assert call("PUT", f"/allocations/{consumer}", 39, claim).status == 204
        body = call("GET", f"/allocations/{consumer}").body
        assert (body["project_id"], body["user_id"]) == (project, user)
    for number, (project, user) in enumerate(owners):
        usages = call("GET", f"/usages?project_id={project}&user_id={user.replace(' ', '%20')}", 9).body["usages"]
        assert usages == {"VCPU": number + 1}
