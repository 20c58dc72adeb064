"""Optimistic calls of POST /v1/claims, and the outcomes that count for the backoff."""

from __future__ import annotations

import uuid

import pytest

from tests.db.extensions.v1.claim_crowd import call, waiting_calls
from tests.db.extensions.v1.test_claims import Cloud, request, roots_of
from tests.db.extensions.v1.test_claims_at_once import put
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

#: A request for more than the capacity of any host in these tests.
TOO_MUCH = request("resources=VCPU:10")


@pytest.fixture
def crowd(database, monkeypatch):
    with waiting_calls(database, monkeypatch) as crowd:
        yield crowd


@pytest.fixture
def elsewhere(database):
    """Another process."""
    with opened(database.url) as other:
        yield Cloud(other)


def optimistic(crowd, *bodies):
    """Send the calls one after another, and return the number of optimistic ones."""
    with crowd.recording():
        for body in bodies:
            assert crowd("POST", "/v1/claims", body).status == 200
    return crowd.optimistic


def test_a_call_that_finds_no_place_does_not_count_as_refused(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    for _ in range(2):
        assert crowd.claim(TOO_MUCH).status == 409
    assert optimistic(crowd, call(), call()) == 2


def test_the_call_after_a_refused_optimistic_claim_is_not_optimistic(crowd, elsewhere):
    host = crowd.host("a", VCPU=9)
    crowd.read()
    put(elsewhere, host, 1)
    assert optimistic(crowd, call(), call(), call()) == 2


def test_a_call_that_finds_no_place_does_not_count_as_placed(crowd, elsewhere):
    """After the second refusal in a row, three calls are not optimistic."""
    host = crowd.host("a", VCPU=9)
    crowd.read()
    put(elsewhere, host, 1)
    assert optimistic(crowd, call(), call()) == 1
    assert crowd.claim(TOO_MUCH).status == 409
    put(elsewhere, host, 1)
    assert optimistic(crowd, *(call() for _ in range(4))) == 1


@pytest.mark.parametrize(("lost", "expected"), [(2, 1), (3, 0)])
def test_a_joint_claim_counts_as_placed_if_half_of_its_calls_were(crowd, elsewhere, lost, expected):
    host = crowd.host("a", VCPU=9)
    crowd.host("b", MEMORY_MB=9)
    crowd.read()
    put(elsewhere, host, 1)
    queries = ["resources=VCPU:1"] * lost + ["resources=MEMORY_MB:1"] * (4 - lost)
    answers = crowd.claim_each(*(call(request(query)) for query in queries))
    assert [answer.status for answer in answers] == [200] * 4
    assert crowd.joined == [1, 4 - lost] + [1] * lost
    assert optimistic(crowd, call(request("resources=MEMORY_MB:1"))) == expected


def test_calls_that_find_no_place_do_not_count(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    bodies = [call({**TOO_MUCH, "consumer": str(uuid.uuid4())}) for _ in range(3)]
    answers = crowd.claim_each(*bodies, call())
    assert [answer.status for answer in answers] == [409] * 3 + [200]
    assert optimistic(crowd, call()) == 1


def test_only_claims_count_as_written_jointly(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    entry = request()
    with crowd.recording():
        crowd.claim(entry)
        crowd.claim(entry)
        crowd.claim(TOO_MUCH)
    assert crowd.joined == [1]
    assert crowd.outcomes == {"claimed": 1, "held": 1, "NoRoom": 1}


def test_a_place_on_two_providers_is_not_claimed_optimistically(crowd, elsewhere):
    """One of the providers has moved to another tree, with the same generation."""
    roots, child = [crowd.host("a", VCPU=1), crowd.host("b", MEMORY_MB=1)], str(uuid.uuid4())
    body = {"name": "c", "uuid": child, "parent_provider_uuid": roots[0]}
    assert crowd("POST", "/resource_providers", body).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1}}}
    assert crowd("PUT", f"/resource_providers/{child}/inventories", body).status == 200
    crowd.read()
    moved = {"name": "c", "parent_provider_uuid": roots[1]}
    assert elsewhere("PUT", f"/resource_providers/{child}", moved).body["generation"] == 1
    calls = call(request("resources=VCPU:1,VGPU:1")), call(request("resources=MEMORY_MB:1"))
    assert [answer.status for answer in crowd.claim_each(*calls)] == [409, 200]
    assert crowd("GET", f"/resource_providers/{child}/usages").body["usages"] == {"VGPU": 0}


def test_a_place_that_depends_on_the_usage_of_others_is_not_claimed_optimistically(crowd, elsewhere):
    fuller, fullest = crowd.host("a", VCPU=9), crowd.host("b", VCPU=9)
    put(elsewhere, fuller, 1)
    crowd.read()
    put(elsewhere, fullest, 2)
    assert roots_of(crowd.claim(request(), strategy="pack").body["results"][0]) == {fullest}


def disable(cloud, host):
    generation = cloud("GET", f"/resource_providers/{host}").body["generation"]
    body = {"resource_provider_generation": generation, "traits": ["COMPUTE_STATUS_DISABLED"]}
    assert cloud("PUT", f"/resource_providers/{host}/traits", body).status == 200


def test_hosts_are_claimed_optimistically_even_if_others_are_disabled(crowd):
    crowd.host("a", VCPU=9)
    disable(crowd, crowd.host("b", VCPU=9))
    crowd.read()
    assert optimistic(crowd, call(), call()) == 2


def test_an_optimistic_claim_does_not_take_a_host_that_has_just_been_disabled(crowd, elsewhere):
    host = crowd.host("a", VCPU=9)
    crowd.read()
    disable(elsewhere, host)
    assert crowd.claim(call()["requests"][0]).status == 409


def test_a_place_that_depends_on_its_root_is_not_claimed_optimistically(crowd, elsewhere):
    """The child is unchanged when its root is disabled."""
    root, child = crowd.host("root"), crowd.host("child", VCPU=9)
    assert crowd("PUT", f"/resource_providers/{child}", {"name": "child", "parent_provider_uuid": root}).status == 200
    crowd.read()
    disable(elsewhere, root)
    assert crowd.claim(call()["requests"][0]).status == 409
