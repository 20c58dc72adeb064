"""Check ``refusals``: refusals for capacity, and claims, with and without an explanation."""

from __future__ import annotations

import pytest

from jepsen.checker.refusals import refusals
from jepsen.tests.handwritten_histories import call, error, loss, violations

A, B = "a0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000001"
ONE, TWO, THREE = (f"e{number}000000-0000-4000-8000-000000000001" for number in (1, 2, 3))
EXPLAINED, CAPACITY = "refusals for capacity are explained", "capacity is never exceeded"


def stock(began, ended, total, provider=A, **more):
    inventories = {"VCPU": {"total": total, **more}} if total else {}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    reply = {"resource_provider_generation": 1}
    return call(began, ended, "PUT", f"/resource_providers/{provider}/inventories", body, reply=reply)


def document(amount, provider=A, generation=None):
    allocations = {provider: {"resources": {"VCPU": amount}}} if amount else {}
    return {
        "allocations": allocations,
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "T",
    }


def claim(began, ended, consumer, amount, provider=A):
    return call(began, ended, "PUT", f"/allocations/{consumer}", document(amount, provider), status=204)


def release(began, ended, consumer):
    return call(began, ended, "DELETE", f"/allocations/{consumer}", status=204)


def refused_claim(began, ended, consumer, amount, reason="exceed the capacity"):
    detail = f"Unable to create allocation for 'VCPU' on resource provider '{A}'. The requested amount would {reason}."
    path = f"/allocations/{consumer}"
    return call(began, ended, "PUT", path, document(amount), status=409, reply=error(f"... {detail}  "))


def absent(began, ended, consumer):
    detail = f"Unable to allocate inventory: Inventory for 'VCPU' on resource provider '{A}' invalid."
    return call(began, ended, "PUT", f"/allocations/{consumer}", document(1), status=409, reply=error(detail))


CONSTRAINTS = "violate inventory constraints"


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 4), claim(3, 4, ONE, 3), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4), claim(3, 9, ONE, 3), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4), claim(3, None, ONE, 3), refused_claim(5, 6, TWO, 2)],
        # Released at the same time, or just before by an open operation.
        [stock(1, 2, 4), claim(3, 4, ONE, 3), release(5, 8, ONE), refused_claim(6, 7, TWO, 2)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), release(5, None, ONE), refused_claim(6, 7, TWO, 2)],
        [stock(1, 2, 4), stock(3, 9, 1), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4, reserved=3), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4, max_unit=1), refused_claim(5, 6, TWO, 2, CONSTRAINTS)],
        [stock(1, 2, 4, step_size=3), refused_claim(5, 6, TWO, 2, CONSTRAINTS)],
        [absent(5, 6, TWO)],
        [stock(1, 2, 4), stock(3, 4, 0), absent(5, 6, TWO)],
    ],
)
def test_explained_refusals_violate_nothing(operations):
    assert not violations(refusals, *operations)


@pytest.mark.parametrize(("generation", "is_explained"), [(None, True), (1, False)])
def test_emptying_a_consumer_that_does_not_exist_frees_nothing(generation, is_explained):
    """Another request may create the consumer at the same time."""
    body = {ONE: document(0, generation=generation), TWO: document(2)}
    detail = f"Unable to create allocation for 'VCPU' on resource provider '{A}'. The requested amount would exceed."
    concurrent = call(5, 8, "POST", "/allocations", body, status=409, reply=error(detail))
    invariants = violations(refusals, stock(1, 2, 4), claim(6, 7, ONE, 3), concurrent)
    assert invariants == (set() if is_explained else {EXPLAINED})


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 4), claim(3, 4, ONE, 2), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3, B), refused_claim(5, 6, TWO, 2)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), release(5, 6, ONE), refused_claim(7, 8, TWO, 2)],
        # A consumer's own holding is free for it; later and refused claims take nothing.
        [stock(1, 2, 4), claim(3, 4, ONE, 3), refused_claim(5, 6, ONE, 4)],
        [stock(1, 2, 4), refused_claim(5, 6, TWO, 2), claim(7, 8, ONE, 3)],
        [
            stock(1, 2, 3),
            stock(3, 4, 4),
            claim(5, 6, ONE, 2),
            refused_claim(7, 8, TWO, 2),
            refused_claim(9, 10, THREE, 2),
        ],
        # Two consumers may each hold much, but never at the same time.
        [stock(1, 2, 4), claim(3, 4, ONE, 2), release(5, 6, ONE), claim(7, 8, TWO, 2), refused_claim(3, 8, THREE, 2)],
        [stock(1, 2, 4, max_unit=2, step_size=2), refused_claim(5, 6, TWO, 2, CONSTRAINTS)],
        [stock(1, 2, 4), absent(5, 6, TWO)],
    ],
)
def test_unexplained_refusals_are_violations(operations):
    assert violations(refusals, *operations) == {EXPLAINED}


def test_a_reshape_is_judged_by_its_own_inventory():
    def reshape(total):
        body = {
            "inventories": {A: {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": total}}}},
            "allocations": {TWO: document(2)},
        }
        reply = refused_claim(5, 6, TWO, 2).reply
        return call(5, 6, "POST", "/reshaper", body, status=409, reply=reply)

    assert not violations(refusals, stock(1, 2, 9), reshape(1))
    assert violations(refusals, stock(1, 2, 1), reshape(9)) == {EXPLAINED}


def test_several_consumers_are_refused_by_their_sum():
    def post(*amounts):
        body = {consumer: document(amount) for consumer, amount in zip((ONE, TWO), amounts, strict=True)}
        return call(5, 6, "POST", "/allocations", body, status=409, reply=refused_claim(5, 6, ONE, 1).reply)

    assert not violations(refusals, stock(1, 2, 4), post(2, 3))
    assert violations(refusals, stock(1, 2, 5), post(2, 3)) == {EXPLAINED}


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 4), claim(3, 4, ONE, 3), claim(5, 6, TWO, 1)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), release(5, None, ONE), claim(6, 7, TWO, 4)],
        [stock(1, 2, 4), claim(3, None, ONE, 3), claim(5, 6, TWO, 4)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), stock(5, 6, 1), claim(7, 8, ONE, 2)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), stock(5, None, 8), claim(7, 8, TWO, 4)],
    ],
)
def test_claims_that_fit_violate_nothing(operations):
    assert not violations(refusals, *operations)


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 4), claim(3, 4, ONE, 3), claim(5, 6, TWO, 2)],
        [stock(1, 2, 4), claim(3, 8, ONE, 3), claim(3, 8, TWO, 2), claim(9, 10, THREE, 1)],
        [stock(1, 2, 4), claim(3, 4, ONE, 3), stock(5, 6, 2), claim(7, 8, ONE, 4)],
        [stock(1, 2, 4), claim(3, 4, ONE, 5)],
    ],
)
def test_claims_beyond_the_capacity_are_violations(operations):
    assert violations(refusals, *operations) == {CAPACITY}


def test_a_lost_claim_that_a_read_shows_is_judged():
    def read(began, consumer, amount):
        allocations = {A: {"resources": {"VCPU": amount}, "generation": 3}}
        reply = {**document(amount), "allocations": allocations, "consumer_generation": 1}
        return call(began, began + 1, "GET", f"/allocations/{consumer}", reply=reply)

    over = [stock(1, 2, 4), claim(3, 4, ONE, 3), claim(5, None, TWO, 3), read(8, TWO, 3)]
    assert violations(refusals, *over) == {CAPACITY}
    assert violations(refusals, *over[:2], over[3]) == set()
    # It took effect after the release, or another request, with a response, wrote it.
    assert not violations(refusals, *over, release(6, 7, ONE))
    later_calls = [release(9, 10, ONE), release(10, 11, TWO), claim(12, 13, TWO, 3), read(14, TWO, 3)]
    assert not violations(refusals, *over[:3], *later_calls)
    # The resources are held from then on.
    full = [stock(1, 2, 4), claim(3, None, TWO, 3), read(5, TWO, 3), claim(8, 9, ONE, 2)]
    assert violations(refusals, *full) == {CAPACITY}
    assert not violations(refusals, *full[:2], full[3])


def test_a_claim_may_be_lost_with_the_last_commits():
    operations = [stock(1, 2, 4), claim(3, 4, ONE, 3), claim(13, 14, TWO, 4)]
    assert not violations(refusals, *operations, events=[loss(10, 11)])
    assert violations(refusals, *operations, events=[loss(10, 11, keeps_earlier=True)]) == {CAPACITY}
    later_operations = [stock(1, 2, 4), claim(13, 14, ONE, 3), claim(15, 16, TWO, 4)]
    assert violations(refusals, *later_operations, events=[loss(10, 11)]) == {CAPACITY}


# --- places chosen by the service ------------------------------------------------------------------------------------


def places(began, ended, *results, query="resources=VCPU:2", **more):
    """Return a POST /v1/claims request.

    Args:
        results: Pairs of a consumer and its provider, None for a lack of capacity.
    """
    requests = [
        {"consumer": consumer, "query": query, "project_id": "p", "user_id": "u", "consumer_type": "T"}
        for consumer, _ in results
    ]
    outcomes = [
        {
            "consumer": consumer,
            "outcome": "refused",
            "error": {"code": "placement.v1.no_room", "detail": "Nothing fits"},
        }
        if provider is None
        else {
            "consumer": consumer,
            "outcome": "claimed",
            "allocations": {provider: {"resources": {"VCPU": 2}, "generation": 1}},
            "consumer_generation": 1,
            "expires_at": None,
        }
        for consumer, provider in results
    ]
    body = {"requests": requests, **more}
    return call(began, ended, "POST", "/v1/claims", body, reply={"results": outcomes, "claimed": 1})


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 2), claim(3, 4, ONE, 1), places(5, 6, (TWO, None))],
        [stock(1, 2, 2), stock(1, 2, 2, B), places(5, 6, (ONE, A), (TWO, B), (THREE, None))],
        [stock(1, 2, 2), places(3, None, (ONE, None)), places(5, 6, (TWO, None))],
        [
            stock(1, 2, 2),
            stock(1, 2, 2, B),
            claim(3, 4, ONE, 1),
            places(5, 6, (TWO, None), query=f"resources=VCPU:2&in_tree={A}"),
        ],
        # There was no capacity for a short time.
        [stock(1, 2, 2), places(5, 12, (TWO, None)), claim(6, 7, ONE, 1), release(8, 9, ONE)],
        [stock(1, 2, 4, max_unit=1), places(5, 6, (TWO, None))],
        [stock(1, 2, 4), places(5, 6, (TWO, None), apart_from=[ONE])],
        [stock(1, 2, 4), places(5, 6, (TWO, None), query="resources=VCPU:2&required=CUSTOM_X")],
        [stock(1, 2, 4), places(5, 6, (ONE, None), (TWO, None), (THREE, None), all_or_nothing=True)],
    ],
)
def test_refusals_without_capacity_violate_nothing(operations):
    assert not violations(refusals, *operations)


@pytest.mark.parametrize(
    "operations",
    [
        [stock(1, 2, 2), stock(1, 2, 2, B), claim(3, 4, ONE, 1), places(5, 6, (TWO, None))],
        [stock(1, 2, 2), places(5, 6, (TWO, None), query=f"resources=VCPU:2&in_tree={A}")],
        [stock(1, 2, 4), places(5, 6, (ONE, A), (TWO, None))],
        [stock(1, 2, 6), places(5, 6, (ONE, None), (TWO, None), (THREE, None))],
    ],
)
def test_refusals_despite_capacity_are_violations(operations):
    assert violations(refusals, *operations) == {EXPLAINED}


def test_a_place_is_claimed_once():
    assert not violations(refusals, stock(1, 2, 4), places(3, 4, (ONE, A)), places(5, 6, (TWO, A)))
    assert violations(refusals, stock(1, 2, 3), places(3, 4, (ONE, A)), places(5, 6, (TWO, A))) == {CAPACITY}
