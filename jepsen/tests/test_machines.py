"""Check ``machines``: nodes with one holder each, and nodes with two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jepsen.checker.machines import machines
from jepsen.checker.refusals import refusals
from jepsen.history import RUNNER
from jepsen.tests.handwritten_histories import call, error, loss, violations

NODE, OTHER = "a1000000-0000-4000-8000-000000000001", "a2000000-0000-4000-8000-000000000002"
ONE, TWO, THREE = (f"e{number}000000-0000-4000-8000-000000000001" for number in (1, 2, 3))
ALLOCATIONS = "/baremetal/v1/allocations"


def node(uuid=NODE, name="metal"):
    reply = {"uuid": uuid, "resource_class": name}
    return call(1, 2, "POST", "/baremetal/v1/nodes", {"resource_class": name}, reply=reply, process=RUNNER)


def request(began, ended, uuid):
    body = {"uuid": uuid, "resource_class": "metal"}
    reply = {**body, "state": "allocating", "node_uuid": None, "last_error": None}
    return call(began, ended, "POST", ALLOCATIONS, body, status=201, reply=reply)


def read_record(began, uuid, node_uuid):
    state, error = (
        ("active", None) if node_uuid else ("error", "Failed: no available nodes match the resource class metal.")
    )
    reply = {"uuid": uuid, "resource_class": "metal", "state": state, "node_uuid": node_uuid, "last_error": error}
    return call(began, began + 1, "GET", f"{ALLOCATIONS}/{uuid}", reply=reply)


def request_among(began, ended, uuid, *candidates):
    """Return a request for one of several nodes, which ends in error, and a read of it."""
    body = {"uuid": uuid, "resource_class": "metal", "candidate_nodes": [*candidates]}
    reply = {**body, "state": "allocating", "node_uuid": None, "last_error": None}
    text = "Failed: none of the requested nodes are available and match the resource class metal."
    record = {**reply, "state": "error", "last_error": text}
    return [
        call(began, ended, "POST", ALLOCATIONS, body, status=201, reply=reply),
        call(ended + 1, ended + 2, "GET", f"{ALLOCATIONS}/{uuid}", reply=record),
    ]


def failed_request(began, ended, uuid):
    return request(began, ended, uuid), read_record(ended + 1, uuid, None)


def release(began, ended, uuid):
    return call(began, ended, "DELETE", f"{ALLOCATIONS}/{uuid}", status=204)


def claim(began, ended, consumer):
    body = {
        "allocations": {NODE: {"resources": {"CUSTOM_METAL": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "T",
    }
    return call(began, ended, "PUT", f"/allocations/{consumer}", body, status=204)


FIRST = [node(), request(3, 4, ONE), read_record(5, ONE, NODE)]


@pytest.mark.parametrize(
    "operations",
    [
        [node(OTHER), request(7, 8, TWO), read_record(9, TWO, OTHER)],
        [release(7, 8, ONE), request(9, 10, TWO), read_record(11, TWO, NODE)],
        [release(7, None, ONE), request(8, 9, TWO), read_record(11, TWO, NODE)],
        [request(7, None, TWO), release(7, 8, ONE)],
        [request(7, 8, TWO), read_record(9, TWO, None)],
        [release(7, 9, ONE), request(8, 10, TWO), read_record(11, TWO, None)],
        [release(7, 9, ONE), claim(10, 11, TWO)],
        [node(OTHER), *request_among(7, 8, TWO, NODE)],
        # Each node in turn is held, and perhaps both for a short time.
        [
            node(OTHER),
            request(8, 10, THREE),
            read_record(11, THREE, OTHER),
            release(9, 11, ONE),
            *failed_request(7, 20, TWO),
        ],
        # A changed node may be free, or not.
        [
            node(OTHER),
            call(6, 7, "PUT", f"/baremetal/v1/nodes/{OTHER}/maintenance", {}, status=202),
            request(8, 9, TWO),
            read_record(9, TWO, None),
        ],
    ],
)
def test_nodes_with_one_holder_violate_nothing(operations):
    assert not violations(machines, *FIRST, *operations)


@pytest.mark.parametrize(
    ("invariant", "operations"),
    [
        ("a node has one holder", [request(7, 8, TWO), read_record(9, TWO, NODE)]),
        ("a node has one holder", [claim(7, 8, TWO)]),
        ("a node has one holder", [request(3, 8, TWO), read_record(9, TWO, NODE)]),
        ("no request fails while a node is free", [node(OTHER), request(7, 8, TWO), read_record(9, TWO, None)]),
        (
            "no request fails while a node is free",
            [release(7, 8, ONE), request(9, 10, TWO), read_record(11, TWO, None)],
        ),
        ("no request fails while a node is free", [node(OTHER), *request_among(7, 8, TWO, NODE, OTHER)]),
        # Each node in turn is held, and never both.
        (
            "no request fails while a node is free",
            [
                node(OTHER),
                release(8, 9, ONE),
                request(11, 12, THREE),
                read_record(13, THREE, OTHER),
                *failed_request(7, 20, TWO),
            ],
        ),
    ],
)
def test_wrong_node_allocations_are_violations(invariant, operations):
    assert violations(machines, *FIRST, *operations) == {invariant}


def refused_claim(began, ended):
    detail = f"allocation for 'CUSTOM_METAL' on resource provider '{NODE}'. The requested amount would exceed the room."
    return replace(claim(began, ended, TWO), status=409, reply=error(detail))


def no_room(began, ended):
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "T"}
    request = {"consumer": TWO, **owner, "query": "resources=CUSTOM_METAL:1"}
    refusal = {"consumer": TWO, "outcome": "refused", "error": {"code": "placement.v1.no_room", "detail": "none"}}
    return call(began, ended, "POST", "/v1/claims", {"requests": [request]}, status=409, reply={"results": [refusal]})


@pytest.mark.parametrize("refuse", [refused_claim, no_room])
def test_no_client_is_refused_a_free_node(refuse):
    explained = "refusals for capacity are explained"
    assert violations(refusals, node(), refuse(7, 8)) == {explained}
    assert not violations(refusals, *FIRST, refuse(7, 8))
    assert violations(refusals, *FIRST, release(7, 8, ONE), refuse(11, 12)) == {explained}
    assert not violations(refusals, *FIRST, release(7, None, ONE), refuse(11, 12))
    assert violations(refusals, node(), claim(3, 4, ONE), release_claim(5, 6), refuse(7, 8)) == {explained}
    assert not violations(refusals, node(), claim(3, 4, ONE), release_claim(5, 9), refuse(7, 8))
    assert not violations(refusals, node(), claim(3, None, ONE), refuse(7, 8))
    # A changed node may be free or not, as may a node whose creation may be lost.
    maintenance = call(5, 6, "PUT", f"/baremetal/v1/nodes/{NODE}/maintenance", {}, status=202)
    assert not violations(refusals, node(), maintenance, refuse(7, 8))
    assert not violations(refusals, node(), refuse(17, 18), events=[loss(10, 12)])


def release_claim(began, ended):
    return call(began, ended, "DELETE", f"/allocations/{ONE}", status=204)


def test_a_record_without_its_claim_is_a_violation():
    state = {"nodes": [NODE], "holders": [[NODE, ONE]], "records": [[NODE, ONE]]}
    assert not violations(machines, *FIRST, final={"machines": state})
    state = {**state, "holders": [[NODE, TWO]]}
    assert violations(machines, *FIRST, final={"machines": state}) == {"records agree with claims"}
