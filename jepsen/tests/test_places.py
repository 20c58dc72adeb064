"""Check ``places``: each promise of POST /v1/claims about places is broken by a handwritten history."""

from __future__ import annotations

import pytest

from jepsen.checker.places import places
from jepsen.claim_queries import content, groups
from jepsen.history import Event
from jepsen.tests.handwritten_histories import call, loss, violations
from jepsen.tests.test_calls import OWNER

#: Roots A and B, a child of A, and a provider that the history does not create.
A, B, CHILD, STRANGE = (f"a{number}000000-0000-4000-8000-000000000001" for number in range(4))
ONE, TWO, THREE = (f"e{number}000000-0000-4000-8000-000000000001" for number in range(3))
FORM, ALL, REQUESTED, APART, TOGETHER, MAPPINGS = (
    "a result for each request",
    "all or nothing",
    "places as requested",
    "places apart",
    "places together",
    "mappings match the holdings",
)


def create(provider, parent=None):
    body = {"name": provider, "uuid": provider, "parent_provider_uuid": parent}
    return call(0, 1, "POST", "/resource_providers", body, reply={"generation": 0})


TREES = [create(A), create(B), create(CHILD, A)]


def violations_of(*operations, **more):
    return violations(places, *TREES, *operations, **more)


def request(consumer, query="resources=VCPU:2", **fields):
    return {"consumer": consumer, "query": query, **OWNER, **fields}


def result(consumer, *copies, outcome="claimed", generation=1):
    """Return the result of a consumer.

    Args:
        copies: Providers of the group without a suffix, one or a list per copy, with 2 VCPU each.
    """
    allocations = {}
    for copy in copies:
        for provider in [copy] if isinstance(copy, str) else copy:
            allocation = allocations.setdefault(provider, {"name": "h", "resources": {"VCPU": 0}, "generation": 1})
            allocation["resources"]["VCPU"] += 2
    return {
        "consumer": consumer,
        "status": 200,
        "outcome": outcome,
        "allocations": allocations,
        "mappings": [{"": [copy] if isinstance(copy, str) else copy} for copy in copies],
        "consumer_generation": generation,
        "expires_at": None,
    }


def refusal(consumer, code="placement.v1.no_room"):
    return {"consumer": consumer, "status": 409, "outcome": "refused", "error": {"code": code, "detail": "..."}}


def claim(began, ended, requests, results=(), **more):
    """Return a request with a response, or without one."""
    claimed = sum(outcome["outcome"] != "refused" for outcome in results)
    reply = {"results": [*results], "claimed": claimed}
    body = {"requests": [*requests], **more}
    return call(began, ended, "POST", "/v1/claims", body, status=200 if claimed else 409, reply=reply)


def claim_one(began, ended, consumer, *copies, **more):
    """Return a request for one consumer, which gets its place."""
    return claim(began, ended, [request(consumer)], [result(consumer, *copies)], **more)


MOVE = {"keep": False, "consumer_generation": 1}


def move(began, ended, consumer, place, **more):
    return claim(
        began, ended, [request(consumer, **MOVE)], [result(consumer, place, outcome="moved", generation=2)], **more
    )


def release(began, ended, consumer):
    return call(began, ended, "DELETE", f"/allocations/{consumer}", status=204)


def shows_nothing(began, ended, consumer):
    return call(began, ended, "GET", f"/allocations/{consumer}", reply={"allocations": {}})


def shows_place(began, ended, consumer, place):
    reply = {**result(consumer, place), **OWNER}
    return call(began, ended, "GET", f"/v1/claims/{consumer}", reply=reply)


# --- responses -------------------------------------------------------------------------------------------------------


def claim_both(*results, **more):
    return claim(10, 20, [request(ONE), request(TWO)], results, **more)


def test_each_request_has_a_result():
    assert not violations_of(claim_both(result(ONE, A), refusal(TWO)))
    assert violations_of(claim_both(result(TWO, A), result(ONE, A))) == {FORM}
    assert violations_of(claim_both(result(ONE, A))) == {FORM}
    answer = claim_both(result(ONE, A), refusal(TWO))
    answer.reply["claimed"] = 2
    assert violations_of(answer) == {FORM}
    body = {"requests": [request(ONE)]}
    for status, claimed in ((200, 0), (409, 1)):
        reply = {"results": [result(ONE, A) if claimed else refusal(ONE)], "claimed": claimed}
        assert violations_of(call(10, 20, "POST", "/v1/claims", body, status=status, reply=reply)) == {FORM}


@pytest.mark.parametrize("outcome", ["claimed", "held", "moved"])
def test_all_or_nothing_requests_have_no_mixed_outcomes(outcome):
    first = result(ONE, A, outcome=outcome)
    assert not violations_of(claim_both(first, refusal(TWO)))
    assert not violations_of(claim_both(first, result(TWO, A), all_or_nothing=True))
    assert not violations_of(claim_both(refusal(ONE), refusal(TWO), all_or_nothing=True))
    assert violations_of(claim_both(first, refusal(TWO), all_or_nothing=True)) == {ALL}


IN_A = f"resources=VCPU:2&in_tree={A}"


@pytest.mark.parametrize(
    ("fields", "copies"),
    [
        ({}, [A]),
        ({}, [STRANGE]),
        ({"count": 2}, [A, B]),
        ({"count": 2}, [CHILD, B]),
        ({"count": 2}, [A, STRANGE]),
        ({"query": IN_A}, [CHILD]),
        ({"query": {"groups": {"": {"resources": {"VCPU": 2}, "in_tree": CHILD}}}}, [A]),
        # Unknown conditions are not judged.
        ({"query": "resources=VCPU:3&required=CUSTOM_X"}, [A]),
        ({"query": "resources=VCPU:2&in_tree=a-name"}, [B]),
    ],
)
def test_requested_places_violate_nothing(fields, copies):
    assert not violations_of(claim(10, 20, [request(ONE, **fields)], [result(ONE, *copies)]))


@pytest.mark.parametrize(
    ("fields", "copies"),
    [
        ({}, [A, B]),
        ({"count": 2}, [A]),
        ({"count": 2}, [A, A]),
        ({"count": 2}, [A, CHILD]),
        ({}, [[A, CHILD]]),
        ({"query": "resources=VCPU:3"}, [A]),
        ({"query": "resources=VCPU:2,MEMORY_MB:1"}, [A]),
        ({"query": "resources_A=VCPU:2"}, [A]),
        ({"query": IN_A}, [B]),
        ({"query": f"resources=VCPU:2&in_tree={CHILD}"}, [B]),
    ],
)
def test_other_places_are_violations(fields, copies):
    assert violations_of(claim(10, 20, [request(ONE, **fields)], [result(ONE, *copies)])) == {REQUESTED}


def with_mappings(mappings, outcome="claimed", query="resources=VCPU:2"):
    answer = {**result(ONE, A, outcome=outcome), "mappings": mappings}
    return claim(10, 20, [request(ONE, query)], [answer])


def test_mappings_match_the_place():
    assert violations_of(with_mappings([{"": [B]}])) == {REQUESTED}
    assert violations_of(with_mappings(None)) == {REQUESTED}
    # Another client has changed the holding.
    assert not violations_of(with_mappings(None, "held"))
    suffixed = "resources_A=VCPU:1&resources_B=VCPU:1&group_policy=none"
    assert not violations_of(with_mappings([{"_A": [A], "_B": [A]}], query=suffixed))
    assert violations_of(with_mappings([{"_A": [A], "_B": []}], query=suffixed)) == {REQUESTED}
    assert violations_of(with_mappings([{"_A": [A]}], query=suffixed)) == {REQUESTED}


def test_shown_mappings_match_the_holding():
    def page(place, mappings):
        return call(10, 20, "GET", f"/v1/claims/{ONE}", reply={**result(ONE, place), **OWNER, "mappings": mappings})

    assert not violations_of(page(A, [{"": [A]}]), page(A, None))
    assert violations_of(page(A, [{"": [B]}])) == {MAPPINGS}


# --- apart -----------------------------------------------------------------------------------------------------------

IN = claim_one(2, 5, ONE, A)


@pytest.mark.parametrize(
    "operations",
    [
        [IN, claim_one(30, 40, TWO, B, apart_from=[ONE])],
        [claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [IN, claim_one(30, 40, TWO, A, apart_from=[THREE])],
        # The named consumer left at the same time, or just before by an open operation.
        [IN, release(25, 35, ONE), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [IN, release(25, None, ONE), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [IN, move(32, 38, ONE, B), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        # The named consumer came at the same time, or to an unknown place.
        [claim_one(25, 35, ONE, A), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [claim(10, None, [request(ONE)]), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        # The places were apart when they were claimed, but are not after a move.
        [IN, claim_one(30, 40, TWO, B, apart_from=[ONE]), move(50, 60, ONE, B)],
        [claim_one(10, 20, ONE, STRANGE), claim_one(30, 40, TWO, STRANGE, apart_from=[ONE])],
        [IN, move(30, 40, ONE, B, apart_from=[ONE])],
        [IN, move(30, 40, ONE, CHILD)],
        [claim_both(result(ONE, A), result(TWO, B), apart_from=[ONE])],
        [claim_both(result(ONE, A), result(TWO, A), apart_from=[THREE])],
        # The first consumer may have left before the second one came.
        [claim_both(result(ONE, A), result(TWO, A), apart_from=[ONE]), move(12, 14, ONE, B)],
        [claim_both(refusal(ONE), result(TWO, A), apart_from=[ONE])],
        # An equal request shows the current place.
        [IN, claim(30, 40, [request(ONE)], [result(ONE, A, outcome="held")], apart_from=[ONE])],
    ],
)
def test_places_apart_violate_nothing(operations):
    assert not violations_of(*operations)


@pytest.mark.parametrize(
    "operations",
    [
        [IN, claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [IN, claim_one(30, 40, TWO, CHILD, apart_from=[THREE, ONE])],
        [IN, release(50, 60, ONE), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        # The named consumer is in the tree before and after its move.
        [IN, move(32, 38, ONE, CHILD), claim_one(30, 40, TWO, A, apart_from=[ONE])],
        [IN, move(30, 40, ONE, CHILD, apart_from=[ONE])],
        [claim_both(result(ONE, A), result(TWO, CHILD), apart_from=[ONE])],
        [claim_both(result(ONE, A), result(TWO, A), apart_from=[TWO, ONE], all_or_nothing=True), move(12, 14, ONE, B)],
        [IN, claim_both(refusal(ONE), result(TWO, A), apart_from=[ONE])],
        [IN, claim_both(result(ONE, A, outcome="held"), result(TWO, A), apart_from=[ONE])],
    ],
)
def test_places_in_one_tree_are_not_apart(operations):
    assert violations_of(*operations) == {APART}


def test_requests_that_name_each_other_are_apart():
    first = claim_one(10, 20, ONE, A, apart_from=[TWO])
    assert not violations_of(first, claim_one(15, 25, TWO, B, apart_from=[ONE]))
    assert violations_of(first, claim_one(15, 25, TWO, CHILD, apart_from=[ONE])) == {APART}
    # The second request may have been the first, or the other consumer was absent then.
    assert not violations_of(first, claim_one(15, 25, TWO, A))
    assert not violations_of(first, claim_one(15, 25, TWO, A, apart_from=[THREE]))
    assert not violations_of(first, claim_one(15, 25, TWO, A, apart_from=[ONE]), move(18, 28, ONE, B))
    assert not violations_of(first, claim_one(15, 25, TWO, A, apart_from=[ONE]), release(18, None, TWO))
    assert violations_of(first, claim_one(15, 25, TWO, A, apart_from=[ONE]), move(28, 38, ONE, B)) == {APART}


# --- together --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operations",
    [
        [IN, claim_one(30, 40, TWO, CHILD, together_with=[ONE])],
        [IN, claim_one(30, 40, TWO, A, together_with=[ONE, THREE])],
        [IN, move(32, 38, ONE, B), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, release(32, 38, ONE), claim_one(30, 40, TWO, B, together_with=[THREE, ONE])],
        [claim(10, None, [request(ONE)]), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, claim_one(30, 40, TWO, A, together_with=[ONE]), move(50, 60, ONE, B)],
        [claim_one(10, 20, ONE, STRANGE), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, claim_one(30, 40, TWO, STRANGE, together_with=[ONE])],
        [claim(10, 20, [request(ONE, count=2)], [result(ONE, A, B)]), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [claim_both(result(ONE, A), result(TWO, CHILD), together_with=[ONE])],
        # The named consumer moved to an unknown place, or both move together.
        [IN, move(10, None, ONE, A), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [
            IN,
            claim(
                *(10, 20, [request(ONE, **MOVE), request(TWO)]),
                [result(ONE, B, outcome="moved", generation=2), result(TWO, B)],
                together_with=[ONE],
            ),
        ],
        [claim_both(refusal(ONE), result(TWO, B), together_with=[ONE])],
        [IN, claim_both(result(ONE, A, outcome="held"), result(TWO, A), together_with=[ONE])],
        [claim_both(result(ONE, A), result(TWO, B))],
    ],
)
def test_places_together_violate_nothing(operations):
    assert not violations_of(*operations)


@pytest.mark.parametrize(
    "operations",
    [
        [IN, claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, claim_one(30, 40, TWO, B, together_with=[THREE, ONE])],
        [IN, claim_one(5, 8, THREE, B), claim_one(30, 40, TWO, B, together_with=[THREE, ONE])],
        [IN, move(32, 38, ONE, CHILD), claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, claim(30, 40, [request(TWO, count=2)], [result(TWO, A, B)], together_with=[ONE])],
        [claim_both(result(ONE, A), result(TWO, B), together_with=[ONE])],
        [IN, claim_both(result(ONE, A, outcome="held"), result(TWO, B), together_with=[ONE])],
        [IN, claim_both(refusal(ONE), result(TWO, B), together_with=[ONE])],
        # No listed consumer held anything.
        [claim_one(30, 40, TWO, B, together_with=[ONE])],
        [IN, release(22, 24, ONE), claim_one(30, 40, TWO, A, together_with=[ONE])],
    ],
)
def test_places_in_different_trees_are_not_together(operations):
    assert violations_of(*operations) == {TOGETHER}


def test_a_holder_may_be_lost_with_the_last_commits():
    apart, together = (
        claim_one(30, 40, TWO, place, **{condition: [ONE]})
        for place, condition in ((A, "apart_from"), (B, "together_with"))
    )
    for late in (apart, together):
        assert violations_of(IN, late)
        assert not violations_of(IN, late, events=[loss(24, 26)])


def test_trees_are_known_for_unmoved_providers_that_share_nothing():
    late = claim_one(30, 40, TWO, A, apart_from=[ONE])
    shares = {"resource_provider_generation": 0, "traits": ["MISC_SHARES_VIA_AGGREGATE"]}
    sharing = call(2, 3, "PUT", f"/resource_providers/{A}/traits", shares, reply=shares)
    other = call(2, 3, "PUT", f"/resource_providers/{A}/traits", {**shares, "traits": ["CUSTOM_X"]}, reply=shares)
    into = call(
        2, 3, "PUT", f"/resource_providers/{A}", {"name": "a", "parent_provider_uuid": B}, reply={"generation": 0}
    )
    refusal = call(*(2, 3, "PUT", into.path, into.body), status=409, reply={"errors": [{"detail": "no"}]})
    renamed = call(2, 3, "PUT", f"/resource_providers/{A}", {"name": "b"}, reply={"generation": 0})
    for change in (sharing, into):
        assert not violations_of(change, IN, late)
        # The tree of a child of a moved provider is unknown, too.
        assert change is sharing or not violations_of(
            change, claim_one(10, 20, ONE, CHILD), claim_one(30, 40, TWO, CHILD, apart_from=[ONE])
        )
    for change in (other, refusal, renamed):
        assert violations_of(change, IN, late) == {APART}


# --- requests without a response -------------------------------------------------------------------------------------

PAIR = [request(ONE), request(TWO)]
LOST = claim(10, None, PAIR, all_or_nothing=True)


@pytest.mark.parametrize(
    "operations",
    [
        [LOST, shows_nothing(30, 40, ONE), shows_nothing(50, 60, TWO)],
        [LOST, shows_place(30, 40, ONE, A), shows_place(50, 60, TWO, B)],
        # The request takes effect between the reads, or one consumer was released since.
        [LOST, shows_nothing(30, 40, ONE), shows_place(35, 60, TWO, B)],
        [LOST, shows_place(50, 60, ONE, A), shows_nothing(20, 55, TWO)],
        [LOST, shows_place(30, 40, ONE, A), release(50, 60, TWO), shows_nothing(70, 80, TWO)],
        # Without all_or_nothing, each consumer is placed or not.
        [claim(10, None, PAIR), shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO)],
        # Either request may have taken effect; or one consumer held its place before.
        [LOST, claim(15, None, [request(ONE)]), shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO)],
        [
            claim(2, 3, PAIR[:1], [result(ONE, A)]),
            LOST,
            shows_place(30, 40, TWO, B),
            shows_place(50, 60, ONE, A),
        ],
        [LOST, claim(30, 40, PAIR, [result(ONE, A), result(TWO, B)], all_or_nothing=True)],
        [
            LOST,
            claim(30, 40, PAIR, [result(consumer, A, outcome="held") for consumer in (ONE, TWO)], all_or_nothing=True),
        ],
    ],
)
def test_lost_requests_that_claim_for_all_or_none_violate_nothing(operations):
    assert not violations_of(*operations)


@pytest.mark.parametrize(
    "operations",
    [
        [LOST, shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO)],
        [LOST, shows_nothing(50, 60, TWO), shows_place(30, 40, ONE, A), shows_nothing(70, 80, TWO)],
        [LOST, claim(15, None, PAIR, all_or_nothing=True), shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO)],
        # A repeated request finds one of the consumers placed.
        [LOST, claim(30, 40, PAIR, [result(ONE, A, outcome="held"), result(TWO, B)], all_or_nothing=True)],
        # The other consumer got its place from another request.
        [
            claim(2, 3, [request(ONE, "resources=VCPU:2,MEMORY_MB:0")], [result(ONE, A)]),
            LOST,
            shows_place(30, 40, TWO, B),
        ],
        [
            claim(2, None, [request(ONE, "resources=VCPU:1")]),
            LOST,
            shows_place(4, 5, ONE, A),
            shows_place(30, 40, TWO, B),
            shows_place(50, 60, ONE, A),
        ],
    ],
)
def test_lost_requests_that_claim_for_some_are_violations(operations):
    assert ALL in violations_of(*operations)


def test_a_lost_request_may_be_undone_with_the_last_commits():
    torn = [LOST, shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO)]
    assert not violations_of(*torn, events=[loss(42, 44)])
    assert violations_of(*torn, events=[loss(62, 64)]) == {ALL}


def test_lost_requests_are_judged_despite_moved_clocks():
    clock = [Event("database-clock", 8, 100)]
    assert not violations_of(LOST, shows_place(30, 40, ONE, A), shows_place(50, 60, TWO, B), events=clock)
    assert violations_of(LOST, shows_place(30, 40, ONE, A), shows_nothing(50, 60, TWO), events=clock) == {ALL}


# --- queries ---------------------------------------------------------------------------------------------------------


def test_queries_in_both_notations_are_equal():
    query_groups = groups("resources=VCPU:2,MEMORY_MB:1&in_tree=x&resources_A=VCPU:1&group_policy=none")
    assert query_groups == groups(
        {
            "groups": {
                "": {"resources": {"MEMORY_MB": 1, "VCPU": 2}, "in_tree": "x"},
                "_A": {"resources": {"VCPU": 1}},
            },
            "group_policy": "none",
        }
    )
    assert content(request(ONE, "resources=VCPU:2,MEMORY_MB:1")) == content(
        request(TWO, "resources=MEMORY_MB:1,VCPU:2")
    )


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:2&required=CUSTOM_X",
        "resources=VCPU:2&resources=MEMORY_MB:1",
        "resources_A=VCPU:2&group_policy=isolate",
        "in_tree=x",
        {"groups": {"": {"resources": {"VCPU": 2}, "required": ["X"]}}},
        {"groups": {"": {"resources": {"VCPU": 2}}}, "root_required": ["X"]},
    ],
)
def test_other_queries_are_not_parsed(query):
    assert groups(query) is None
    assert content(request(ONE, query)) is None
