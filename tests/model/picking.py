"""Clients of /v1/claims: the service chooses the places, and the model checks that each choice was possible.

What was possible is found by the brute force of tests/search/oracle.py, on the model's state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.model.clients import Clients, seen
from tests.model.service import Model
from tests.model.strategies import BELIEF, CONSUMER, CONSUMERS, OWNERS, WHICH
from tests.model.things import Claim, Held, Record
from tests.search import oracle
from tests.search.query import query_string
from tests.world import Stock, World

NO_ROOM, HELD_OTHERWISE = "placement.v1.no_room", "placement.v1.held_otherwise"
CONCURRENT_UPDATE = "placement.concurrent_update"
SHAPE = st.integers(0, 10)
STRATEGY = st.sampled_from(("spread", "pack", "random", {"spread_over": "root"}, {"spread_over": "CUSTOM_"}))
#: An end after so many seconds, no end, and nothing said about it.
ENDS = st.sampled_from(({}, {"expires_in": None}, {"expires_in": 3600}))
WHO = {"owner": st.sampled_from(OWNERS), "type_": st.sampled_from(("INSTANCE", "MIGRATION"))}
#: Different consumers, each with the number of its query.
WANTED = st.lists(st.tuples(CONSUMER, SHAPE), min_size=1, max_size=4, unique_by=lambda wish: wish[0])


def world_of(model: Model, without: str | None = None) -> World:
    """Return the providers of the model, as if one of the consumers held nothing."""
    world = World()
    own = model.consumers[without].held if without else {}
    for uuid, provider in model.providers.items():
        stocks = {
            name: Stock(**vars(inventory), used=model.used(uuid, name) - own.get(uuid, {}).get(name, 0))
            for name, inventory in provider.inventories.items()
        }
        world.host(uuid, provider.parent, provider.traits, provider.aggregates, **stocks)
    return world


def granted(result: Any) -> oracle.Answer:
    """Return the place that a result shows, as an answer of the oracle."""
    [mapped] = result["mappings"]
    return (
        frozenset((uuid, *it) for uuid, held in result["allocations"].items() for it in held["resources"].items()),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in mapped.items()),
    )


class Pickers(Clients):
    """Rules for a state machine that has providers and other clients."""

    #: Ends the time of a consumer's lease.
    expire: Callable[[str], None]

    @rule(wanted=WANTED, strategy=STRATEGY, at_once=st.booleans(), end=ENDS, **WHO)
    def claims_places(self, wanted, strategy, at_once, end, owner, type_):
        """Several in one call, placed in the order of their queries."""
        queries = [self._query(shape) for _, shape in wanted]
        entries = [self._entry(self.uuid("c", n), of, owner, type_) for (n, _), of in zip(wanted, queries, strict=True)]
        results = self._claim(entries, {"strategy": strategy, "all_or_nothing": at_once, **end})
        if at_once and any(result["status"] != 200 for result in results):
            assert {result["status"] for result in results} == {409}, results
            return
        places = sorted(range(len(wanted)), key=lambda place: (queries.index(queries[place]), place))
        before = {uuid: provider.generation for uuid, provider in self.model.providers.items()}
        for place in places:
            self._see(entries[place], queries[place], results[place], end)
        # One transaction or several of them.
        for uuid, generation in before.items():
            shown = self.get(f"/resource_providers/{uuid}")["generation"]
            most = self.model.providers[uuid].generation
            assert shown == most or generation < shown <= most
            self.model.providers[uuid].generation = shown

    @precondition(lambda self: self.model.consumers)
    @rule(which=WHICH, shape=SHAPE, strategy=STRATEGY, belief=BELIEF, end=ENDS, again=st.booleans(), **WHO)
    def moves_to_a_place(self, which, shape, strategy, belief, end, again, owner, type_):
        consumer, _ = self.holder(which)
        generation = self.model.consumers[consumer].generation
        believed = generation + (belief == "off")
        query = self._query(shape)
        entry = self._entry(consumer, query, owner, type_) | {"keep": False, "consumer_generation": believed}
        for _ in range(1 + again):
            [result] = self._claim([entry], {"strategy": strategy, **end})
            self._see(entry, query, result, end)

    @rule(number=CONSUMER, seconds=st.sampled_from((None, 3600)))
    def gives_an_end(self, number, seconds):
        consumer = self.uuid("c", number)
        answer = self.call("POST", f"/v1/claims/{consumer}/extend", 39, {"expires_in": seconds})
        known = self.model.consumers.get(consumer)
        assert answer.status == (200 if known else 404), answer
        if known:
            if known.record or seconds:
                known.record = known.record or Record()
                known.record.ends = seconds is not None
            assert _ended(answer.body) == seen(self.model.claim_of(consumer))

    @precondition(lambda self: any(known.record and known.record.ends for known in self.model.consumers.values()))
    @rule(which=WHICH)
    def reaches_an_end(self, which):
        """As the next search notices, which gives back what it holds."""
        leased = sorted(uuid for uuid, known in self.model.consumers.items() if known.record and known.record.ends)
        consumer = leased[which % len(leased)]
        self.expire(consumer)
        assert self.call("GET", f"/v1/claims/{consumer}").status == 404
        assert self.call("GET", "/allocation_candidates?resources=VCPU:1").status == 200
        self.model.release(consumer)

    @rule(numbers=st.lists(CONSUMER, min_size=1, max_size=3, unique=True))
    def releases_several(self, numbers):
        named = [self.uuid("c", number) for number in numbers]
        self._release(
            "&".join(f"consumer={one}" for one in named), [one for one in named if one in self.model.consumers], named
        )

    @rule(owner=st.sampled_from(OWNERS))
    def releases_all_of_an_owner(self, owner):
        project, user = owner
        theirs = [c for c, known in self.model.consumers.items() if (known.project, known.user) == owner]
        self._release(f"project={project}&user={user}", theirs, theirs)

    def _release(self, query, expected, named):
        answer = self.call("DELETE", f"/v1/claims?{query}")
        missing = sorted({*named} - {*expected})
        assert seen(answer.body) == {"released": sorted(expected), "missing": missing, "complete": True}, answer
        for consumer in expected:
            self.model.release(consumer)

    @invariant()
    def claims_are_shown(self) -> None:
        for number in range(CONSUMERS):
            consumer = self.uuid("c", number)
            answer = self.call("GET", f"/v1/claims/{consumer}")
            if consumer in self.model.consumers:
                assert _ended(answer.body) == seen(self.model.claim_of(consumer))
            else:
                assert answer.status == 404, answer

    # --- queries and results ---

    def _query(self, shape: int) -> SearchQuery:
        """Return one of a few queries; traits and classes that do not exist are left out of them."""
        if shape in (1, 2):
            return SearchQuery((Group("1", {"VCPU": 1}), Group("2", {"VCPU": 1})), isolate=shape == 1)
        resources = {3: {"VCPU": 2}, 4: {"VCPU": 1, "DISK_GB": 1}, 5: {"DISK_GB": 3}}.get(shape, {"VCPU": 1})
        if shape == 6 and "CUSTOM_A" in self.model.classes:
            resources = {"CUSTOM_A": 1}
        traits, aggregates = frozenset(sorted(self.model.traits)[:1]), frozenset({self.uuid("d", 0), self.uuid("d", 1)})
        required = NameCondition((traits,) if traits and shape == 7 else (), traits if shape == 8 else frozenset())
        gathered = NameCondition((aggregates,) if shape == 9 else ())
        return SearchQuery((Group("", resources, required, gathered, self.provider(0) if shape == 10 else None),))

    @staticmethod
    def _entry(consumer: str, query: SearchQuery, owner: tuple[str, str], type_: str) -> dict[str, Any]:
        project, user = owner
        return {
            "consumer": consumer,
            "consumer_type": type_,
            "project_id": project,
            "user_id": user,
            "query": query_string(query),
        }

    def _claim(self, entries: list[dict[str, Any]], options: dict[str, Any]) -> list[Any]:
        answer = self.call("POST", "/v1/claims", 39, {"requests": entries, **options})
        results = answer.body["results"]
        assert [result["consumer"] for result in results] == [entry["consumer"] for entry in entries]
        claimed = sum(result["status"] == 200 for result in results)
        assert (answer.status, answer.body["claimed"]) == (200 if claimed else 409, claimed), answer
        for result in results:
            hypothesis.event(f"claim: {result['outcome']} {result.get('error', {}).get('code', '')}")
        return results

    def _see(self, entry: dict[str, Any], query: SearchQuery, result: Any, end: dict[str, Any]) -> None:
        """Compare the result of the next request, and do the same to the model."""
        consumer = entry["consumer"]
        known = self.model.consumers.get(consumer)
        if known and known.record and known.record.request == entry:
            assert (result["status"], result["outcome"]) == (200, "held"), (entry, result)
            return
        if known and "keep" not in entry:
            assert result["error"]["code"] == HELD_OTHERWISE, (entry, result)
            return
        if known and entry["consumer_generation"] != known.generation:
            assert result["error"]["code"] == CONCURRENT_UPDATE, (entry, result)
            return
        possible = oracle.answers(world_of(self.model, consumer if known else None), query)
        if result["status"] != 200:
            assert (result["error"]["code"], possible) == (NO_ROOM, set()), (entry, result)
            return
        place = granted(result)
        assert place in possible, (entry, result)
        held: Held = {}
        for uuid, name, amount in place[0]:
            held.setdefault(uuid, {})[name] = amount
        self._place(entry, held, result, end)

    def _place(self, entry: dict[str, Any], held: Held, result: Any, end: dict[str, Any]) -> None:
        consumer = entry["consumer"]
        known = self.model.consumers.get(consumer)
        assert result["outcome"] == ("moved" if known else "claimed")
        claim = Claim(
            consumer, held, entry["project_id"], entry["user_id"], entry["consumer_type"], known and known.generation
        )
        self.model.place([claim])
        now = self.model.consumers[consumer]
        kept = bool(now.record and now.record.ends)
        ends = end["expires_in"] is not None if end else kept
        now.record = Record(entry, result["mappings"], now.generation, ends)


def _ended(body: Any) -> Any:
    """Return a document with whether there is an end in the place of the end."""
    shown = dict(body)
    return seen(shown | {"ends": shown.pop("expires_at") is not None}) if "expires_at" in shown else shown
