"""Which calls of POST /v1/claims guess their place: what was lost, and what counts."""

from __future__ import annotations

import uuid

import pytest

from tests.db.extensions.v1.claim_crowd import call, waiting_calls
from tests.db.extensions.v1.test_claims import Cloud, request, roots_of
from tests.db.extensions.v1.test_claims_at_once import put
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

#: More than any host of these tests has.
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


def guessed(crowd, *bodies):
    """Return how many of these calls guess, one after the other."""
    with crowd.recorded():
        for body in bodies:
            assert crowd("POST", "/v1/claims", body).status == 200
    return crowd.guessed


def test_a_call_that_finds_no_place_at_all_has_lost_no_guess(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    for _ in range(2):
        assert crowd.claim(TOO_MUCH).status == 409
    assert guessed(crowd, call(), call()) == 2


def test_a_call_whose_guess_was_lost_is_followed_by_one_that_does_not_guess(crowd, elsewhere):
    host = crowd.host("a", VCPU=9)
    crowd.read()
    put(elsewhere, host, 1)
    assert guessed(crowd, call(), call(), call()) == 2


def test_nor_has_it_won_one(crowd, elsewhere):
    """After the second guess in a row that was lost, three calls do not guess."""
    host = crowd.host("a", VCPU=9)
    crowd.read()
    put(elsewhere, host, 1)
    assert guessed(crowd, call(), call()) == 1
    assert crowd.claim(TOO_MUCH).status == 409
    put(elsewhere, host, 1)
    assert guessed(crowd, *(call() for _ in range(4))) == 1


@pytest.mark.parametrize(("lost", "guesses"), [(2, 1), (3, 0)])
def test_calls_that_were_carried_out_together_have_won_if_half_of_them_did(crowd, elsewhere, lost, guesses):
    host = crowd.host("a", VCPU=9)
    crowd.host("b", MEMORY_MB=9)
    crowd.read()
    put(elsewhere, host, 1)
    queries = ["resources=VCPU:1"] * lost + ["resources=MEMORY_MB:1"] * (4 - lost)
    answers = crowd.claim_each(*(call(request(query)) for query in queries))
    assert [answer.status for answer in answers] == [200] * 4
    assert crowd.joined == [1, 4 - lost] + [1] * lost
    assert guessed(crowd, call(request("resources=MEMORY_MB:1"))) == guesses


def test_those_that_find_no_place_do_not_count(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    bodies = [call({**TOO_MUCH, "consumer": str(uuid.uuid4())}) for _ in range(3)]
    answers = crowd.claim_each(*bodies, call())
    assert [answer.status for answer in answers] == [409] * 3 + [200]
    assert guessed(crowd, call()) == 1


def test_only_what_was_claimed_counts_as_written_jointly(crowd):
    crowd.host("a", VCPU=9)
    crowd.read()
    asked = request()
    with crowd.recorded():
        crowd.claim(asked)
        crowd.claim(asked)
        crowd.claim(TOO_MUCH)
    assert crowd.joined == [1]
    assert crowd.outcomes == {"claimed": 1, "held": 1, "NoRoom": 1}


def test_a_place_on_two_providers_is_not_guessed(crowd, elsewhere):
    """One of them is in another tree by now, with the same generation."""
    roots, child = [crowd.host("a", VCPU=1), crowd.host("b", MEMORY_MB=1)], str(uuid.uuid4())
    body = {"name": "c", "uuid": child, "parent_provider_uuid": roots[0]}
    assert crowd("POST", "/resource_providers", body).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1}}}
    assert crowd("PUT", f"/resource_providers/{child}/inventories", body).status == 200
    crowd.read()
    moved = {"name": "c", "parent_provider_uuid": roots[1]}
    assert elsewhere("PUT", f"/resource_providers/{child}", moved).body["generation"] == 1
    asked = call(request("resources=VCPU:1,VGPU:1")), call(request("resources=MEMORY_MB:1"))
    assert [answer.status for answer in crowd.claim_each(*asked)] == [409, 200]
    assert crowd("GET", f"/resource_providers/{child}/usages").body["usages"] == {"VGPU": 0}


def test_a_place_that_depends_on_how_full_the_others_are_is_not_guessed(crowd, elsewhere):
    fuller, fullest = crowd.host("a", VCPU=9), crowd.host("b", VCPU=9)
    put(elsewhere, fuller, 1)
    crowd.read()
    put(elsewhere, fullest, 2)
    assert roots_of(crowd.claim(request(), strategy="pack").body["results"][0]) == {fullest}


def disable(cloud, host):
    generation = cloud("GET", f"/resource_providers/{host}").body["generation"]
    body = {"resource_provider_generation": generation, "traits": ["COMPUTE_STATUS_DISABLED"]}
    assert cloud("PUT", f"/resource_providers/{host}/traits", body).status == 200


def test_where_hosts_are_disabled_the_others_are_guessed(crowd):
    crowd.host("a", VCPU=9)
    disable(crowd, crowd.host("b", VCPU=9))
    crowd.read()
    assert guessed(crowd, call(), call()) == 2


def test_a_host_that_was_disabled_a_moment_ago_is_not_taken_by_a_guess(crowd, elsewhere):
    host = crowd.host("a", VCPU=9)
    crowd.read()
    disable(elsewhere, host)
    assert crowd.claim(call()["requests"][0]).status == 409


def test_a_place_is_not_guessed_where_it_depends_on_its_root(crowd, elsewhere):
    """The child is as it was when its root is disabled."""
    root, child = crowd.host("root"), crowd.host("child", VCPU=9)
    assert crowd("PUT", f"/resource_providers/{child}", {"name": "child", "parent_provider_uuid": root}).status == 200
    crowd.read()
    disable(elsewhere, root)
    assert crowd.claim(call()["requests"][0]).status == 409
