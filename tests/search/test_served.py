"""The service returns the candidates of the brute force, and each can be claimed."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.db.database import Database
from placement.search.query.query import SearchQuery
from tests.caller import NEW_CONSUMER, Caller
from tests.db.in_process import placement
from tests.search import oracle
from tests.search.query import query_string
from tests.strategies import AGGREGATES, TRAITS, scale, search_queries, worlds
from tests.world import Member, Stock, World

#: Candidates of one response that are claimed.
MAX_CLAIMS = 12


class Mirror:
    """A world, created as providers of the service, under unique names."""

    def __init__(self, call: Caller, world: World) -> None:
        self._call, self._world, self._number = call, world, uuid.uuid4()
        self._consumers: list[str] = []
        self._created: list[str] = []

    def create(self) -> None:
        """Create the providers, parents first."""
        for trait in TRAITS:
            self._send("PUT", f"/traits/{self.name(trait)}")
        for name in sorted(self._world.members, key=lambda name: len(self._world.ancestry(name))):
            self._create(self._world.members[name])

    def name(self, name: str) -> str:
        """Return the name of a trait, or the uuid of an aggregate or a provider, in the service."""
        if name in TRAITS:
            return f"CUSTOM_{name}"
        if name in AGGREGATES or name not in self._world.members:
            return str(uuid.uuid5(self._number, name))
        return str(uuid.uuid5(self._number, f"provider {name}"))

    def _send(self, method: str, path: str, body: Any = None) -> None:
        answer = self._call(method, path, body=body)
        assert 200 <= answer.status < 300, (method, path, body, answer)

    def _create(self, member: Member) -> None:
        provider = self.name(member.name)
        path = f"/resource_providers/{provider}"
        parent = self.name(member.parent) if member.parent else None
        self._send("POST", "/resource_providers", {"name": provider, "uuid": provider, "parent_provider_uuid": parent})
        self._created.append(provider)
        generation = 0
        if member.stock:
            # First a large inventory: the usage may violate the rules of the inventory that replaces it.
            large = {class_: {"total": 1000} for class_ in member.stock}
            exact = {class_: inventory(stock) for class_, stock in member.stock.items()}
            used = {class_: stock.used for class_, stock in member.stock.items() if stock.used}
            for inventories in (large, exact):
                body = {"resource_provider_generation": generation, "inventories": inventories}
                self._send("PUT", f"{path}/inventories", body)
                generation += 1
                if used and inventories is large:
                    self.claim({provider: {"resources": used}})
                    generation += 1
        traits = [self.name(trait) if trait in TRAITS else trait for trait in member.traits]
        if traits:
            self._send("PUT", f"{path}/traits", {"resource_provider_generation": generation, "traits": traits})
            generation += 1
        aggregates = [self.name(aggregate) for aggregate in member.aggregates]
        self._send("PUT", f"{path}/aggregates", {"resource_provider_generation": generation, "aggregates": aggregates})

    def claim(self, allocations: Any, **more: Any) -> str:
        """Claim as a new consumer, and return its uuid."""
        consumer = str(uuid.uuid4())
        self._consumers.append(consumer)
        self._send("PUT", f"/allocations/{consumer}", {"allocations": allocations, **more, **NEW_CONSUMER})
        return consumer

    def remove(self) -> None:
        """Delete everything that was created, even after a failure."""
        for consumer in self._consumers:
            self._call("DELETE", f"/allocations/{consumer}")
        for provider in reversed(self._created):
            self._send("DELETE", f"/resource_providers/{provider}")

    def ask(self, query: SearchQuery) -> Any:
        """Return the body of the response to a query."""
        answer = self._call("GET", f"/allocation_candidates?{query_string(query, self.name)}")
        assert answer.status == 200, answer
        return answer.body

    def try_all(self, reply: Any) -> None:
        """Claim each candidate unchanged, and release it."""
        for candidate in reply["allocation_requests"][:MAX_CLAIMS]:
            self._send("DELETE", f"/allocations/{self.claim(**candidate)}")

    def as_oracle_candidate(self, candidate: Any) -> oracle.Candidate:
        """Return a candidate of a response in the form of the oracle."""
        names = {self.name(name): name for name in self._world.members}
        allocations = candidate["allocations"].items()
        return (
            frozenset(
                (names[provider], *item)
                for provider, allocation in allocations
                for item in allocation["resources"].items()
            ),
            frozenset(
                (suffix, frozenset(names[provider] for provider in providers))
                for suffix, providers in candidate["mappings"].items()
            ),
        )


def inventory(stock: Stock) -> dict[str, Any]:
    return {
        "total": stock.total,
        "reserved": stock.reserved,
        "min_unit": stock.min_unit,
        "max_unit": stock.effective_max_unit,
        "step_size": stock.step_size,
        "allocation_ratio": stock.allocation_ratio,
    }


def expressible(query: SearchQuery) -> bool:
    """Whether a query string of the latest version can express it: nested, and without empty groups."""
    return query.nested and all(
        group.resources or group.traits.names or group.aggregates.names or group.in_tree for group in query.groups
    )


@settings(max_examples=scale(12), suppress_health_check=[*HealthCheck])
@given(data=st.data(), world=worlds())
def test_every_candidate_can_be_claimed_unchanged(database: Database, data: st.DataObject, world: World) -> None:
    mirror = Mirror(placement(database), world)
    try:
        mirror.create()
        compare(mirror, data, world)
    finally:
        mirror.remove()


def compare(mirror: Mirror, data: st.DataObject, world: World) -> None:
    for _ in range(4):
        query = data.draw(search_queries(world).filter(expressible))
        reply = mirror.ask(query)
        candidates = [mirror.as_oracle_candidate(candidate) for candidate in reply["allocation_requests"]]
        assert len(candidates) == len(set(candidates))
        expected = oracle.candidates(world, query)
        assert set(candidates) == expected
        assert {*reply["provider_summaries"]} == {
            mirror.name(name) for name in oracle.summarized_providers(world, query, expected)
        }
        mirror.try_all(reply)
