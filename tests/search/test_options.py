"""Options for GET /allocation_candidates: strategy, limit and random order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from placement import deploy
from placement.db.database import Database
from tests import caller, web

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

#: A function of additional query parameters that returns the names of the devices in the candidates of a service.
Candidates = Callable[..., list[str]]


@pytest.fixture
def service(database: Database) -> Callable[..., Candidates]:
    """Return a function that starts a service with options; three hosts have two devices each."""

    def start(**options: Any) -> Candidates:
        settings = {f"placement__{name}": value for name, value in options.items()}
        call = caller.inside(deploy.loadapp(web.configuration(**settings), database))
        for number in range(9):
            body = {"name": f"{number // 3}.{number % 3}", "uuid": uuid(number)}
            if number % 3:
                body["parent_provider_uuid"] = uuid(number - number % 3)
            assert call("POST", "/resource_providers", 39, body).status == 200
            if number % 3:
                body = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1}}}
                assert call("PUT", f"/resource_providers/{uuid(number)}/inventories", 39, body).status == 200
        names = {uuid(number): f"{number // 3}.{number % 3}" for number in range(9)}

        def candidates(more: str = "") -> list[str]:
            reply = call("GET", f"/allocation_candidates?resources=VGPU:1{more}")
            assert reply.status == 200
            return [
                names[provider] for request in reply.body["allocation_requests"] for provider in request["allocations"]
            ]

        return candidates

    return start


def uuid(number: int) -> str:
    return f"0b7e0000-0000-4000-8000-{number:012}"


@pytest.mark.parametrize(
    ("strategy", "hosts"), [("breadth-first", "012012"), ("depth-first", "001122")], ids=["breadth", "depth"]
)
def test_the_strategy_determines_the_order_of_hosts(
    service: Callable[..., Candidates], strategy: str, hosts: str
) -> None:
    candidates = service(allocation_candidates_generation_strategy=strategy)
    assert "".join(name[0] for name in candidates()) == hosts
    assert "".join(name[0] for name in candidates("&limit=4")) == hosts[:4]


@pytest.mark.parametrize(
    ("configured", "count", "count_of_ten"), [(4, 4, 4), (1, 1, 1), (0, 0, 0), (-1, 6, 6), (100, 6, 6)]
)
def test_the_configured_limit_applies_to_requests_without_a_lower_one(
    service: Callable[..., Candidates], configured: int, count: int, count_of_ten: int
) -> None:
    candidates = service(max_allocation_candidates=configured)
    assert len(candidates()) == count
    assert len(candidates("&limit=10")) == count_of_ten
    assert len(candidates("&limit=1")) == min(1, count)


def test_with_random_order_every_candidate_can_come_first(service: Callable[..., Candidates]) -> None:
    """Without it, concurrent clients get the same host, and hosts fill up one after the other."""
    candidates = service(randomize_allocation_candidates=True)
    # The probability that one of the six never comes first is one in ten million.
    assert {candidates("&limit=1")[0] for _ in range(100)} == set(candidates())


def test_without_random_order_the_same_query_returns_the_same_candidates(service: Callable[..., Candidates]) -> None:
    candidates = service()
    assert len({tuple(candidates()) for _ in range(5)}) == 1
