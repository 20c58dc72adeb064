"""What the whole service answers, on every database: what the brute force finds, and all of it can be claimed."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.db.database import Database
from placement.search.query.query import SearchQuery
from tests.caller import Caller
from tests.db.in_process import placement
from tests.search import oracle
from tests.search.query import query_string
from tests.strategies import AGGREGATES, TRAITS, candidate_requests, scaled, worlds
from tests.world import Member, Stock, World

MOST = 12
"""Candidates of one reply that are claimed."""


class Telling:
    """A world told to the service; its names mean something only here."""

    def __init__(self, call: Caller, world: World) -> None:
        self._call, self._world, self._number = call, world, uuid.uuid4()
        self._consumers: list[str] = []
        self._told: list[str] = []

    def tell(self) -> None:
        """Parents first."""
        for trait in TRAITS:
            self._done("PUT", f"/traits/{self.name(trait)}")
        for name in sorted(self._world.members, key=lambda name: len(self._world.ancestry(name))):
            self._tell(self._world.members[name])

    def name(self, name: str) -> str:
        """What a trait, an aggregate or a provider is called there."""
        if name in TRAITS:
            return f"CUSTOM_{name}"
        if name in AGGREGATES or name not in self._world.members:
            return str(uuid.uuid5(self._number, name))
        return str(uuid.uuid5(self._number, f"provider {name}"))

    def _done(self, method: str, path: str, body: Any = None) -> None:
        answer = self._call(method, path, body=body)
        assert 200 <= answer.status < 300, (method, path, body, answer)

    def _tell(self, member: Member) -> None:
        provider = self.name(member.name)
        path = f"/resource_providers/{provider}"
        parent = self.name(member.parent) if member.parent else None
        self._done("POST", "/resource_providers", {"name": provider, "uuid": provider, "parent_provider_uuid": parent})
        self._told.append(provider)
        generation = 0
        if member.stock:
            # Room for everything first: what is used may be against the rules that come after.
            roomy = {class_: {"total": 1000} for class_ in member.stock}
            exact = {class_: inventory(of) for class_, of in member.stock.items()}
            used = {class_: of.used for class_, of in member.stock.items() if of.used}
            for inventories in (roomy, exact):
                body = {"resource_provider_generation": generation, "inventories": inventories}
                self._done("PUT", f"{path}/inventories", body)
                generation += 1
                if used and inventories is roomy:
                    self.claim({provider: {"resources": used}})
                    generation += 1
        traits = [self.name(trait) if trait in TRAITS else trait for trait in member.traits]
        if traits:
            self._done("PUT", f"{path}/traits", {"resource_provider_generation": generation, "traits": traits})
            generation += 1
        aggregates = [self.name(aggregate) for aggregate in member.aggregates]
        self._done("PUT", f"{path}/aggregates", {"resource_provider_generation": generation, "aggregates": aggregates})

    def claim(self, allocations: Any, **more: Any) -> str:
        """The consumer that has it now."""
        consumer = str(uuid.uuid4())
        self._consumers.append(consumer)
        owner = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
        self._done("PUT", f"/allocations/{consumer}", {"allocations": allocations, **more, **owner})
        return consumer

    def forget(self) -> None:
        """Leave nothing behind, however far it came."""
        for consumer in self._consumers:
            self._call("DELETE", f"/allocations/{consumer}")
        for provider in reversed(self._told):
            self._done("DELETE", f"/resource_providers/{provider}")

    def ask(self, request: SearchQuery) -> Any:
        """The reply."""
        answer = self._call("GET", f"/allocation_candidates?{query_string(request, self.name)}")
        assert answer.status == 200, answer
        return answer.body

    def try_all(self, reply: Any) -> None:
        """Claim each candidate as it is, and give it back."""
        for candidate in reply["allocation_requests"][:MOST]:
            self._done("DELETE", f"/allocations/{self.claim(**candidate)}")

    def answer(self, candidate: Any) -> oracle.Answer:
        """A candidate of a reply in the words of the oracle."""
        names = {self.name(name): name for name in self._world.members}
        given = candidate["allocations"].items()
        return (
            frozenset((names[of], *item) for of, took in given for item in took["resources"].items()),
            frozenset((suffix, frozenset(names[of] for of in by)) for suffix, by in candidate["mappings"].items()),
        )


def inventory(stock: Stock) -> dict[str, Any]:
    return {
        "total": stock.total,
        "reserved": stock.reserved,
        "min_unit": stock.min_unit,
        "max_unit": stock.most,
        "step_size": stock.step_size,
        "allocation_ratio": stock.allocation_ratio,
    }


def expressible(request: SearchQuery) -> bool:
    """Whether a query can ask for it: at the latest version, and no group that asks for nothing."""
    return request.nested and all(
        group.resources or group.traits.names or group.aggregates.names or group.in_tree for group in request.groups
    )


@settings(max_examples=scaled(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), world=worlds())
def test_every_candidate_can_be_claimed_as_it_is(database: Database, data: st.DataObject, world: World) -> None:
    telling = Telling(placement(database), world)
    try:
        telling.tell()
        judge(telling, data, world)
    finally:
        telling.forget()


def judge(telling: Telling, data: st.DataObject, world: World) -> None:
    for _ in range(4):
        request = data.draw(candidate_requests(world).filter(expressible))
        reply = telling.ask(request)
        found = [telling.answer(candidate) for candidate in reply["allocation_requests"]]
        assert len(found) == len(set(found))
        expected = oracle.answers(world, request)
        assert set(found) == expected
        assert {*reply["provider_summaries"]} == {
            telling.name(name) for name in oracle.summarised(world, request, expected)
        }
        telling.try_all(reply)
