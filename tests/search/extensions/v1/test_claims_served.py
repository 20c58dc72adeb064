"""One request body with several claims gets results that separate requests could get: no place too many, none too few.

The brute force checks the results one by one, in a world with the usage of the earlier ones, for any query.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from placement.extensions.v1.pick.strategy import Preference
from tests.db.in_process import placement
from tests.search import oracle
from tests.search.query import query_string
from tests.search.test_served import Mirror, expressible
from tests.strategies import scale, search_queries, worlds
from tests.world import World

Amounts = Counter[tuple[str, str]]
STRATEGIES = (*(preference.value for preference in Preference), {"spread_over": "root"}, {"spread_over": "aggregate"})
OWNER = {"consumer_type": "INSTANCE", "project_id": "p", "user_id": "u"}


@dataclass(frozen=True)
class Wish:
    """A request: the index of its query, and its number of copies."""

    query: int
    count: int
    consumer: str

    @property
    def shape(self) -> tuple[int, int]:
        return self.query, self.count


class Judge:
    """The world after the results checked so far."""

    def __init__(self, mirror: Mirror, world: World, queries: list[Any]) -> None:
        self._mirror, self._queries = mirror, queries
        self._world = replace(world, members=dict(world.members))
        self._names = {mirror.name(name): name for name in world.members}

    def see(self, wish: Wish, result: Any) -> None:
        """Check the result of the next request in the order of placing."""
        possible = [*self._possible(wish)]
        if result["status"] != 200:
            assert result["error"]["code"] == "placement.v1.no_room", result
            assert possible == [], (wish, result)
            return
        amounts = Counter({
            (self._names[provider], name): amount
            for provider, allocation in result["allocations"].items()
            for name, amount in allocation["resources"].items()
        })  # fmt: skip
        mappings = sorted(sorted(self._mapping(copy)) for copy in result["mappings"])
        assert (amounts, mappings) in possible, (wish, result, possible)
        self._take(amounts)

    def _mapping(self, copy: Any) -> Iterator[tuple[str, list[str]]]:
        return ((suffix, sorted(self._names[provider] for provider in providers)) for suffix, providers in copy.items())

    def _possible(self, wish: Wish) -> Iterator[tuple[Amounts, Any]]:
        """Yield the amounts and the mappings of all possible results."""
        world, query = self._world, self._queries[wish.query]
        by_tree = [oracle.candidates_of(world, query, anchor) for anchor in oracle.anchors(world, query)]
        for trees in itertools.combinations(by_tree, wish.count):
            for candidates in itertools.product(*trees):
                amounts: Amounts = Counter()
                for amounts_of, _ in candidates:
                    amounts.update({(provider, name): amount for provider, name, amount in amounts_of})
                if all(
                    oracle.sum_fits(world.members[provider], name, amount)
                    for (provider, name), amount in amounts.items()
                ):
                    yield (
                        amounts,
                        sorted(
                            sorted((s, sorted(providers)) for s, providers in mappings) for _, mappings in candidates
                        ),
                    )

    def _take(self, amounts: Amounts) -> None:
        for (provider, name), amount in amounts.items():
            member = self._world.members[provider]
            stock = replace(member.stock[name], used=member.stock[name].used + amount)
            self._world.members[provider] = replace(member, stock={**member.stock, name: stock})


def in_order(wishes: list[Wish], queries: list[Any]) -> list[Wish]:
    """Return the order of placing: equal requests follow the first of them."""
    requested = [queries[wish.query] for wish in wishes]
    return sorted(wishes, key=lambda wish: requested.index(queries[wish.query]))


WISHES = st.lists(
    st.builds(
        Wish,
        query=st.sampled_from((0, 0, 0, 1)),
        count=st.sampled_from((1, 1, 1, 2)),
        consumer=st.builds(lambda: str(uuid.uuid4())),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=scale(25), suppress_health_check=[*HealthCheck])
@given(data=st.data(), world=worlds(max_providers=5), wishes=WISHES, strategy=st.sampled_from(STRATEGIES))
def test_each_result_of_a_body_is_possible_for_a_separate_request(database, data, world, wishes, strategy):
    drawn = [data.draw(search_queries(world, max_suffixed=2).filter(expressible)) for _ in range(6)]
    # Requests with candidates come first.
    queries = sorted(drawn, key=lambda query: not oracle.candidates(world, query))[:2]
    call = placement(database)
    mirror = Mirror(call, world)
    requests = [
        {
            "consumer": wish.consumer,
            "query": query_string(queries[wish.query], mirror.name),
            "count": wish.count,
            **OWNER,
        }
        for wish in wishes
    ]
    try:
        mirror.create()
        answer = call("POST", "/v1/claims", body={"requests": requests, "strategy": strategy})
        assert answer.status in (200, 409), answer
        results = {result["consumer"]: result for result in answer.body["results"]}
        judge = Judge(mirror, world, queries)
        for wish in in_order(wishes, queries):
            judge.see(wish, results[wish.consumer])
            event(f"{wish.count} copies: {results[wish.consumer]['status']}")
    finally:
        for wish in wishes:
            call("DELETE", f"/allocations/{wish.consumer}")
        mirror.remove()
