"""Checks ``replies`` and ``collisions``: permitted and forbidden responses, and refusals for collisions."""

from __future__ import annotations

import pytest

from jepsen.checker.collisions import collisions, route
from jepsen.checker.replies import replies
from jepsen.history import Event
from jepsen.tests.handwritten_histories import call, error, history, violations

SECOND = 10**9
KILL = [Event("kill a worker", 10 * SECOND, 11 * SECOND)]
PLACE = "/allocations/e1000000-0000-4000-8000-000000000001"


def reply(began, status, detail="...", *, ended=0, **more):
    return call(began, ended or began + 1, "PUT", PLACE, {}, status=status, reply=error(detail, **more))


def without_response(began):
    return call(began, None, "PUT", PLACE, {})


def test_permitted_responses_violate_nothing():
    permitted = [
        *(reply(1, 204), reply(2, 409, "consumer generation conflict"), reply(3, 404)),
        *(reply(10 * SECOND, 503), without_response(12 * SECOND), reply(20 * SECOND, 503)),
    ]
    assert not violations(replies, *permitted, events=KILL)
    silent = [Event("drop packets", 10 * SECOND, 11 * SECOND, aftermath=40)]
    assert not violations(replies, reply(50 * SECOND, 503), events=silent)
    assert violations(replies, reply(52 * SECOND, 503), events=silent)
    # A proxy responds with text.
    proxied = [call(12 * SECOND, 13 * SECOND, "PUT", PLACE, {}, status=status, reply="...") for status in (502, 504)]
    assert not violations(replies, *proxied, events=KILL)
    assert violations(replies, *proxied) == {"unavailable only around an event"}
    # The request began before the event, and its client abandoned it during the event.
    assert not violations(replies, without_response(9 * SECOND), reply(10 * SECOND + 1, 204), events=KILL)


@pytest.mark.parametrize(
    ("invariant", "operation"),
    [
        ("no 5xx except 503", reply(10 * SECOND, 500)),
        ("no 5xx except 503", reply(10 * SECOND, 501)),
        ("no 5xx except 503", reply(10 * SECOND, 502)),
        (
            "no 5xx except 503",
            call(10 * SECOND, 11 * SECOND, "PUT", PLACE, {}, status=500, reply="Internal Server Error"),
        ),
        ("unavailable only around an event", reply(1, 503)),
        ("unavailable only around an event", reply(22 * SECOND, 503)),
        ("unavailable only around an event", without_response(30 * SECOND)),
        ("no internals in error bodies", reply(1, 409, "(1213, 'Deadlock found'): UPDATE consumers SET generation=1")),
        ("no internals in error bodies", reply(10 * SECOND, 503, "psycopg.OperationalError")),
    ],
)
def test_forbidden_responses_are_violations(invariant, operation):
    assert violations(replies, operation, events=KILL) == {invariant}


def test_only_requests_in_flight_may_be_lost():
    kill = [Event("kill a host", 10 * SECOND, 20 * SECOND, spares=10 * SECOND + 9)]
    # The client of the first request waits until it sends the next one.
    assert not violations(
        replies,
        without_response(9 * SECOND),
        reply(10 * SECOND + 8, 503),
        without_response(10 * SECOND + 9),
        events=kill,
    )
    assert violations(replies, without_response(10 * SECOND + 10), events=kill) == {"unavailable only around an event"}
    assert violations(replies, reply(1, 503), events=kill) == {"unavailable only around an event"}
    assert violations(replies, reply(11 * SECOND, 503), events=[Event("restart in order", 1, SECOND * 20, spares=0)])
    # Another event still explains the loss.
    assert not violations(replies, without_response(10 * SECOND + 10), events=[*kill, *KILL])


def test_a_client_abandons_a_request_when_it_sends_the_next():
    assert violations(replies, without_response(1), reply(2, 204), events=KILL) == {"unavailable only around an event"}


COLLIDED = "... Inventory and/or allocations changed while attempting to allocate: the request collided with others ..."


def test_refusals_for_generations_and_capacity_are_not_collisions():
    refused = [
        reply(1, 409, "consumer generation conflict - expected 1 but got 2", code="placement.concurrent_update"),
        reply(2, 409, "Unable to allocate inventory: ... The requested amount would exceed the capacity."),
    ]
    assert not violations(collisions, *refused)


@pytest.mark.parametrize(
    "operation",
    [
        reply(1, 409, COLLIDED),
        reply(1, 409, "update conflict: the request collided with others too many times. Please retry it."),
        call(1, 2, "POST", "/v1/claims", {}, reply={"results": [{"error": {"detail": COLLIDED}}]}),
        call(1, 2, "POST", "/baremetal/v1/allocations", {}, status=409, reply={"error_message": COLLIDED}),
    ],
)
def test_a_collision_refusal_is_a_violation(operation):
    assert violations(collisions, operation) == {"no refusal for collisions"}
    during = [Event("a foreign lock", 0, 1)]
    assert not violations(collisions, operation, events=during)


def test_a_ceiling_allows_some_collisions():
    calls = [reply(number, 204) for number in range(9)] + [reply(9, 409, COLLIDED)]
    assert not collisions(history(*calls), {("PUT", "/allocations/{}"): 0.1})
    assert collisions(history(*calls), {("PUT", "/allocations/{}"): 0.09})


def test_routes_are_named_without_their_variables():
    uuid = "e1000000-0000-4000-8000-000000000001"
    path = f"/resource_providers/{uuid}/inventories/CUSTOM_X?a=b"
    assert route(call(1, 2, "PUT", path)) == ("PUT", "/resource_providers/{}/inventories/{}")
    assert route(call(1, 2, "POST", "/v1/claims")) == ("POST", "/v1/claims")
