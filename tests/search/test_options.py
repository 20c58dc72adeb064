"""What operators decide about candidates is what clients are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from placement import deploy
from placement.db.database import Database
from tests import caller, web

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

Offers = Callable[..., list[str]]


@pytest.fixture
def service(database: Database) -> Callable[..., Offers]:
    """Gives a service with these options, with three hosts that have two devices each; asked, it offers devices."""

    def served(**options: Any) -> Offers:
        named = {f"placement__{name}": value for name, value in options.items()}
        call = caller.inside(deploy.loadapp(web.configuration(**named), database))
        for number in range(9):
            body = {"name": f"{number // 3}.{number % 3}", "uuid": uuid(number)}
            if number % 3:
                body["parent_provider_uuid"] = uuid(number - number % 3)
            assert call("POST", "/resource_providers", 39, body).status == 200
            if number % 3:
                body = {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1}}}
                assert call("PUT", f"/resource_providers/{uuid(number)}/inventories", 39, body).status == 200
        names = {uuid(number): f"{number // 3}.{number % 3}" for number in range(9)}

        def offers(more: str = "") -> list[str]:
            answer = call("GET", f"/allocation_candidates?resources=VGPU:1{more}")
            assert answer.status == 200
            return [names[one] for found in answer.body["allocation_requests"] for one in found["allocations"]]

        return offers

    return served


def uuid(number: int) -> str:
    return f"0b7e0000-0000-4000-8000-{number:012}"


@pytest.mark.parametrize(
    ("strategy", "hosts"), [("breadth-first", "012012"), ("depth-first", "001122")], ids=["breadth", "depth"]
)
def test_hosts_take_turns_or_come_one_after_the_other(
    service: Callable[..., Offers], strategy: str, hosts: str
) -> None:
    offers = service(allocation_candidates_generation_strategy=strategy)
    assert "".join(offer[0] for offer in offers()) == hosts
    assert "".join(offer[0] for offer in offers("&limit=4")) == hosts[:4]


@pytest.mark.parametrize(("most", "count", "of_ten"), [(4, 4, 4), (1, 1, 1), (0, 0, 0), (-1, 6, 6), (100, 6, 6)])
def test_there_may_be_a_limit_for_those_who_give_none_or_a_larger_one(
    service: Callable[..., Offers], most: int, count: int, of_ten: int
) -> None:
    offers = service(max_allocation_candidates=most)
    assert len(offers()) == count
    assert len(offers("&limit=10")) == of_ten
    assert len(offers("&limit=1")) == min(1, count)


def test_the_first_offer_is_anybodys_turn_where_chance_decides(service: Callable[..., Offers]) -> None:
    """Else a cloud is filled from one end, and all who ask at once are sent to one host."""
    offers = service(randomize_allocation_candidates=True)
    # That one of the six never comes first has a chance of one in ten million.
    assert {offers("&limit=1")[0] for _ in range(100)} == set(offers())


def test_the_same_question_has_the_same_answer_where_it_does_not(service: Callable[..., Offers]) -> None:
    offers = service()
    assert len({tuple(offers()) for _ in range(5)}) == 1
