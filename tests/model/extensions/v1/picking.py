"""Clients of /v1/claims: the service chooses the places, and the model checks each choice and each refusal.

The brute force of tests/search, on the model's state, finds the possible choices (placing.py).
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from placement.extensions.v1.pick.strategy import Preference
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.model.clients import Clients, seen, when
from tests.model.extensions.v1.placing import Judge, Options, Wish
from tests.model.records import Record
from tests.model.service import Model
from tests.model.strategies import BELIEF, CONSUMER, CONSUMERS, OWNERS, WHICH
from tests.search.query import query_string

#: Mostly two queries: one that fits any free capacity, and one that rarely fits.
SHAPE = st.sampled_from((*[0] * 5, *[3] * 5, *range(1, 11)))
STRATEGY = st.sampled_from(
    (
        *(preference.value for preference in Preference),
        *({"spread_over": domains} for domains in ("root", "aggregate", "CUSTOM_")),
    )
)
COUNT = st.sampled_from((*[1] * 6, 2, 2, 3))
AT_ONCE = st.sampled_from((False,) * 3 + (True,))
#: The index of a request that is a dry run, and whether the whole call is one.
DRY = st.sampled_from((None, None, 0, 0, 1))
TRIED = st.sampled_from((False,) * 4 + (True,))
#: The numbers of the consumers in apart_from and together_with of a call.
CONDITIONS = st.sampled_from(
    (
        *[((), ())] * 7,
        *(((0,), ()), ((1,), ()), ((2, 3), ()), (range(CONSUMERS), ())),
        *(((), (0,)), ((), (1, 2)), ((0,), (3,))),
    )
)
#: An expiry after some seconds, no expiry, and an omitted one.
ENDS = st.sampled_from(({}, {"expires_in": None}, {"expires_in": 3600}))
WHO = {"owner": st.sampled_from(OWNERS), "type_": st.sampled_from(("INSTANCE", "MIGRATION"))}
#: Different consumers, each with the number of its query, and its number of copies.
WANTED = st.lists(st.tuples(CONSUMER, SHAPE, COUNT), min_size=1, max_size=4, unique_by=lambda wish: wish[0])


class Pickers(Clients):
    """Rules for a state machine with providers and other clients."""

    #: Makes the lease of a consumer expire.
    expire: Callable[[str], None]

    @rule(
        wanted=WANTED,
        moved=st.booleans(),
        dry_run=DRY,
        conditions=CONDITIONS,
        strategy=STRATEGY,
        at_once=AT_ONCE,
        tried=TRIED,
        end=ENDS,
        **WHO,
    )
    def claims_places(self, wanted, moved, dry_run, conditions, strategy, at_once, tried, end, owner, type_):
        """Claim for several consumers in one call; consumers with allocations are moved, or refused."""
        wishes = []
        for place, (number, shape, count) in enumerate(wanted):
            consumer = self.uuid("c", number)
            known = self.model.consumers.get(consumer)
            move = {"keep": False, "consumer_generation": known.generation} if known and moved else {}
            wishes.append(self._wish(consumer, shape, count, owner, type_, move, dry_run=place == dry_run))
        self._claim(wishes, conditions, {"strategy": strategy, "all_or_nothing": at_once, **end}, tried=tried)

    @rule(
        which=WHICH,
        shape=SHAPE,
        count=COUNT,
        strategy=STRATEGY,
        belief=BELIEF,
        conditions=CONDITIONS,
        end=ENDS,
        again=st.booleans(),
        **WHO,
    )
    @when(lambda self: self.model.consumers)
    def moves_to_a_place(self, which, shape, count, strategy, belief, conditions, end, again, owner, type_):
        consumer, _ = self.holder(which)
        believed = self.model.consumers[consumer].generation + (belief == "off")
        move = {"keep": False, "consumer_generation": believed}
        wish = self._wish(consumer, shape, count, owner, type_, move)
        for _ in range(1 + again):
            self._claim([wish], conditions, {"strategy": strategy, **end})

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

    @rule(which=WHICH)
    @when(lambda self: any(known.record and known.record.ends for known in self.model.consumers.values()))
    def reaches_an_end(self, which):
        """Make a lease expire; the next search notices it and releases the allocations."""
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
            "&".join(f"consumer={each}" for each in named),
            [each for each in named if each in self.model.consumers],
            named,
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
        """Return one of a few queries, without traits and classes that do not exist."""
        if shape in (1, 2):
            return SearchQuery((Group("1", {"VCPU": 1}), Group("2", {"VCPU": 1})), isolate=shape == 1)
        resources = {3: {"VCPU": 4}, 4: {"VCPU": 1, "DISK_GB": 1}, 5: {"DISK_GB": 3}}.get(shape, {"VCPU": 1})
        if shape == 6 and "CUSTOM_A" in self.model.classes:
            resources = {"CUSTOM_A": 1}
        traits, aggregates = frozenset(sorted(self.model.traits)[:1]), frozenset({self.uuid("d", 0), self.uuid("d", 1)})
        required = NameCondition((traits,) if traits and shape == 7 else (), traits if shape == 8 else frozenset())
        gathered = NameCondition((aggregates,) if shape == 9 else ())
        return SearchQuery((Group("", resources, required, gathered, self.provider(0) if shape == 10 else None),))

    @staticmethod
    def _content(consumer: str, query: SearchQuery, owner: tuple[str, str], type_: str) -> dict[str, Any]:
        project, user = owner
        return {
            "consumer": consumer,
            "consumer_type": type_,
            "project_id": project,
            "user_id": user,
            "query": query_string(query),
        }

    def _wish(
        self,
        consumer: str,
        shape: int,
        count: int,
        owner: tuple[str, str],
        type_: str,
        move: dict[str, Any],
        *,
        dry_run: bool = False,
    ) -> Wish:
        query = self._query(shape)
        return Wish(consumer, query, self._content(consumer, query, owner, type_) | {"count": count, **move}, dry_run)

    def _claim(
        self,
        wishes: Sequence[Wish],
        conditions: tuple[Sequence[int], Sequence[int]],
        said: dict[str, Any],
        *,
        tried: bool = False,
    ) -> None:
        """Send a call, compare its results with the possible ones, and apply them to the model."""
        apart, together = ([self.uuid("c", number) for number in numbers] for numbers in conditions)
        document = {
            "requests": [wish.entry for wish in wishes],
            **({"apart_from": apart} if apart else {}),
            **({"together_with": together} if together else {}),
            **said,
        }
        options = Options(
            frozenset(apart),
            frozenset(together),
            said.get("all_or_nothing", False),
            said["expires_in"] is not None if "expires_in" in said else None,
            tried,
        )
        answer = self.call("POST", "/v1/claims" + "?dry_run=true" * tried, 39, document)
        status, body = answer.status, answer.body
        if tried:
            assert status == 200, answer
            status, body = body["dry_run"]["status"], body["dry_run"]["body"]
        results = body["results"]
        assert [result["consumer"] for result in results] == [wish.consumer for wish in wishes]
        claimed = sum(result["status"] == 200 for result in results)
        assert (status, body["claimed"]) == (200 if claimed else 409, claimed), answer
        for result in results:
            hypothesis.event(f"claim: {result['outcome']} {result.get('error', {}).get('code', '')}")
        present = self.model
        if tried:
            self.model = copy.deepcopy(present)
        touched = Judge(self.model, wishes, options).see(results)
        for result in results:
            self._see_result(result)
        if tried:
            left = {uuid for wish in wishes for uuid in _left(present, self.model, wish.consumer)}
            assert answer.body["room"] == {uuid: self._room(uuid) for uuid in {*touched, *left}}, answer
            self.model = present
        else:
            self._see_generations(touched, options)

    def _see_generations(self, touched: Counter[str], options: Options) -> None:
        """Take the generations of providers with new claims from the service: each transaction increases them.

        The model has increased each by one.
        """
        for uuid, claims in touched.items():
            if claims > 1 and not options.one_transaction:
                shown = self.get(f"/resource_providers/{uuid}")["generation"]
                least = self.model.providers[uuid].generation
                assert least <= shown < least + claims
                self.model.providers[uuid].generation = shown

    def _see_result(self, result: Any) -> None:
        """Compare a result with the allocations of its consumer."""
        if result["status"] == 200 and result["outcome"] != "found":
            claim = self.model.claim_of(result["consumer"])
            for document in (result, claim):
                for allocation in document["allocations"].values():
                    # Other claims of the same call may have increased the generation since.
                    del allocation["generation"]
            shown = _ended({name: of for name, of in result.items() if name not in ("status", "outcome")})
            assert shown == seen({name: claim[name] for name in shown}), (result, claim)

    def _room(self, uuid: str) -> Any:
        """Return the part of a dry run about a provider."""
        room = {}
        for name, inventory in self.model.providers[uuid].inventories.items():
            capacity, used = math.floor(inventory.capacity), self.model.used(uuid, name)
            room[name] = {"capacity": capacity, "used": used, "free": max(0, capacity - used)}
        return room


def _left(before: Model, after: Model, consumer: str) -> set[str]:
    """Return the providers that the consumer has left."""
    held = [model.consumers[consumer].held if consumer in model.consumers else {} for model in (before, after)]
    return {*held[0]} - {*held[1]}


def _ended(body: Any) -> Any:
    """Return a document with its expiry replaced by whether there is one."""
    shown = dict(body)
    return seen(shown | {"ends": shown.pop("expires_at") is not None}) if "expires_at" in shown else shown
