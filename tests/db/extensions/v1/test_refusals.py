"""Explanations of refused requests of POST /v1/claims are cached for half a second."""

from __future__ import annotations

import pytest

from placement.extensions.v1.claims import reasons
from tests.clock import Clock
from tests.db.extensions.v1.claim_crowd import waiting_calls
from tests.db.extensions.v1.test_claims import Cloud, request
from tests.db.extensions.v1.test_claims_at_once import put

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(reasons, "time", clock)
    return clock


@pytest.fixture
def crowd(database, monkeypatch):
    with waiting_calls(database, monkeypatch) as crowd:
        yield crowd


@pytest.fixture
def cloud(database):
    return Cloud(database)


def stock(cloud, host, total):
    """Set the total of a host's VCPU."""
    generation = cloud("GET", f"/resource_providers/{host}").body["generation"]
    body = {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": total}}}
    assert cloud("PUT", f"/resource_providers/{host}/inventories", body).status == 200


def refusal(cloud, query):
    """Return the result of a call that is refused."""
    [result] = cloud.claim(request(query)).body["results"]
    assert result["outcome"] == "refused"
    return result


def test_the_explanation_of_an_equal_query_is_reused_for_half_a_second(cloud, clock):
    host = cloud.host("h", VCPU=2)
    first = refusal(cloud, "resources=VCPU:8")
    stock(cloud, host, 3)
    clock.now = 0.5
    later_refusal = refusal(cloud, "resources=VCPU:8")
    assert later_refusal["consumer"] != first["consumer"]
    assert later_refusal["explanation"] == first["explanation"]
    assert later_refusal["error"]["detail"] == first["error"]["detail"]
    assert refusal(cloud, "resources=VCPU:9")["explanation"]["obstacle"] == {"rule": "resources", "group": ""}
    clock.now = 0.51
    later = refusal(cloud, "resources=VCPU:8")
    assert later["explanation"] != first["explanation"]
    # Its age counts from the time at which it was computed.
    stock(cloud, host, 4)
    clock.now = 1.0
    assert refusal(cloud, "resources=VCPU:8")["explanation"] == later["explanation"]


def test_each_query_has_its_own_explanation(cloud, clock):
    host = cloud.host("h", VCPU=2)
    first = refusal(cloud, "resources=VCPU:8")
    other = refusal(cloud, "resources=VCPU:8&required=HW_CPU_X86_AVX")
    assert other["explanation"]["obstacle"]["rule"] == "required"
    stock(cloud, host, 3)
    assert refusal(cloud, "required=HW_CPU_X86_AVX&resources=VCPU:8")["explanation"] == other["explanation"]
    assert refusal(cloud, "resources=VCPU:8")["explanation"] == first["explanation"]


def test_an_explanation_of_a_query_with_candidates_is_not_cached(cloud, clock):
    """The first request is refused beside others of its call, the second because no capacity is free."""
    cloud.host("h", VCPU=1)
    cloud.host("full", VCPU=1)
    beside = cloud.claim(*[request("resources=VCPU:1") for _ in range(3)], all_or_nothing=True).body["results"]
    [explained] = [result for result in beside if "explanation" in result]
    assert "beside the other entries" in explained["error"]["detail"]
    assert explained["explanation"]["obstacle"] is None
    assert cloud.claim(request(), request()).body["claimed"] == 2
    alone = refusal(cloud, "resources=VCPU:1")
    assert alone["explanation"]["obstacle"] == {"rule": "resources", "group": ""}
    assert "beside the other entries" not in alone["error"]["detail"]


def test_a_cached_explanation_does_not_prevent_a_claim_that_fits(cloud, clock):
    host = cloud.host("h", VCPU=2)
    refusal(cloud, "resources=VCPU:3")
    stock(cloud, host, 3)
    assert cloud.claim(request("resources=VCPU:3")).status == 200
    refused = refusal(cloud, "resources=VCPU:3")
    assert "explanation" in refused
    assert refused["explanation"]["obstacle"] is not None


def test_the_cache_is_bounded_and_drops_old_explanations(crowd, clock, monkeypatch):
    monkeypatch.setattr(reasons, "MAX_REASONS", 8)
    host = crowd.host("h", VCPU=1)
    amounts = range(2, 11)
    crowd.read()
    first = [refusal(crowd, f"resources=VCPU:{amount}")["explanation"] for amount in amounts]
    cache = crowd.shared.reasons
    assert len(cache._recent) == 8
    stock(crowd, host, 20)
    put(crowd, host, 19)
    second = [refusal(crowd, f"resources=VCPU:{amount}")["explanation"] for amount in amounts]
    assert [old == new for old, new in zip(first, second, strict=True)] == [True] * 8 + [False]
    clock.now = 0.6
    refusal(crowd, "resources=VCPU:11")
    assert len(cache._recent) == 1
