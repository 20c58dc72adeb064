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
from tests.model.clients import Clients, normalize, when
from tests.model.extensions.v1.placing import ClaimRequest, Options, ResultChecker
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
ALL_OR_NOTHING = st.sampled_from((False,) * 3 + (True,))
#: The index of a request that is a dry run, and whether the whole call is one.
DRY_REQUEST = st.sampled_from((None, None, 0, 0, 1))
DRY_CALL = st.sampled_from((False,) * 4 + (True,))
#: The numbers of the consumers in apart_from and together_with of a call.
CONDITIONS = st.sampled_from(
    (
        *[((), ())] * 7,
        *(((0,), ()), ((1,), ()), ((2, 3), ()), (range(CONSUMERS), ())),
        *(((), (0,)), ((), (1, 2)), ((0,), (3,))),
    )
)
#: No change of the expiry, no expiry, and an expiry after some seconds.
EXPIRIES = st.sampled_from(({}, {"expires_in": None}, {"expires_in": 3600}))
OWNER_AND_TYPE = {"owner": st.sampled_from(OWNERS), "type_": st.sampled_from(("INSTANCE", "MIGRATION"))}
#: Different consumers, each with the number of its query, and its number of copies.
REQUESTS = st.lists(st.tuples(CONSUMER, SHAPE, COUNT), min_size=1, max_size=4, unique_by=lambda choice: choice[0])


class Pickers(Clients):
    """Rules for a state machine with providers and other clients."""

    #: Makes the lease of a consumer expire.
    expire: Callable[[str], None]

    @rule(
        requests=REQUESTS,
        moved=st.booleans(),
        dry_request=DRY_REQUEST,
        conditions=CONDITIONS,
        strategy=STRATEGY,
        all_or_nothing=ALL_OR_NOTHING,
        dry_call=DRY_CALL,
        expiry=EXPIRIES,
        **OWNER_AND_TYPE,
    )
    def claims_places(
        self, requests, moved, dry_request, conditions, strategy, all_or_nothing, dry_call, expiry, owner, type_
    ):
        """Claim for several consumers in one call; consumers with allocations are moved or refused."""
        claim_requests = []
        for place, (number, shape, count) in enumerate(requests):
            consumer = self.uuid("c", number)
            state = self.model.consumers.get(consumer)
            move = {"keep": False, "consumer_generation": state.generation} if state and moved else {}
            claim_requests.append(
                self._request(consumer, shape, count, owner, type_, move, dry_run=place == dry_request)
            )
        self._claim(
            claim_requests,
            conditions,
            {"strategy": strategy, "all_or_nothing": all_or_nothing, **expiry},
            dry_run=dry_call,
        )

    @rule(
        which=WHICH,
        shape=SHAPE,
        count=COUNT,
        strategy=STRATEGY,
        belief=BELIEF,
        conditions=CONDITIONS,
        expiry=EXPIRIES,
        repeated=st.booleans(),
        **OWNER_AND_TYPE,
    )
    @when(lambda self: self.model.consumers)
    def moves_to_a_place(self, which, shape, count, strategy, belief, conditions, expiry, repeated, owner, type_):
        consumer, _ = self.holder(which)
        sent_generation = self.model.consumers[consumer].generation + (belief == "off")
        move = {"keep": False, "consumer_generation": sent_generation}
        request = self._request(consumer, shape, count, owner, type_, move)
        for _ in range(1 + repeated):
            self._claim([request], conditions, {"strategy": strategy, **expiry})

    @rule(number=CONSUMER, seconds=st.sampled_from((None, 3600)))
    def sets_or_clears_an_expiry(self, number, seconds):
        consumer = self.uuid("c", number)
        answer = self.call("POST", f"/v1/claims/{consumer}/extend", 39, {"expires_in": seconds})
        state = self.model.consumers.get(consumer)
        assert answer.status == (200 if state else 404), answer
        if state:
            if state.record or seconds:
                state.record = state.record or Record()
                state.record.has_expiry = seconds is not None
            assert _with_expiry_flag(answer.body) == normalize(self.model.claim_of(consumer))

    @rule(which=WHICH)
    @when(lambda self: any(state.record and state.record.has_expiry for state in self.model.consumers.values()))
    def lets_a_lease_expire(self, which):
        """Make a lease expire; the next search notices it and releases the allocations."""
        leased = sorted(
            uuid for uuid, state in self.model.consumers.items() if state.record and state.record.has_expiry
        )
        consumer = leased[which % len(leased)]
        self.expire(consumer)
        assert self.call("GET", f"/v1/claims/{consumer}").status == 404
        assert self.call("GET", "/allocation_candidates?resources=VCPU:1").status == 200
        self.model.release(consumer)

    @rule(numbers=st.lists(CONSUMER, min_size=1, max_size=3, unique=True))
    def releases_several(self, numbers):
        consumers = [self.uuid("c", number) for number in numbers]
        self._release(
            "&".join(f"consumer={consumer}" for consumer in consumers),
            [consumer for consumer in consumers if consumer in self.model.consumers],
            consumers,
        )

    @rule(owner=st.sampled_from(OWNERS))
    def releases_all_of_an_owner(self, owner):
        project, user = owner
        consumers = [c for c, state in self.model.consumers.items() if (state.project, state.user) == owner]
        self._release(f"project={project}&user={user}", consumers, consumers)

    def _release(self, query, expected, named):
        answer = self.call("DELETE", f"/v1/claims?{query}")
        missing = sorted({*named} - {*expected})
        assert normalize(answer.body) == {"released": sorted(expected), "missing": missing, "complete": True}, answer
        for consumer in expected:
            self.model.release(consumer)

    @invariant()
    def claims_are_shown(self) -> None:
        for number in range(CONSUMERS):
            consumer = self.uuid("c", number)
            answer = self.call("GET", f"/v1/claims/{consumer}")
            if consumer in self.model.consumers:
                assert _with_expiry_flag(answer.body) == normalize(self.model.claim_of(consumer))
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

    def _request(
        self,
        consumer: str,
        shape: int,
        count: int,
        owner: tuple[str, str],
        type_: str,
        move: dict[str, Any],
        *,
        dry_run: bool = False,
    ) -> ClaimRequest:
        query = self._query(shape)
        return ClaimRequest(
            consumer, query, self._content(consumer, query, owner, type_) | {"count": count, **move}, dry_run
        )

    def _claim(
        self,
        requests: Sequence[ClaimRequest],
        conditions: tuple[Sequence[int], Sequence[int]],
        parameters: dict[str, Any],
        *,
        dry_run: bool = False,
    ) -> None:
        """Send a call, compare its results with the possible ones, and apply them to the model."""
        apart, together = ([self.uuid("c", number) for number in numbers] for numbers in conditions)
        document = {
            "requests": [request.entry for request in requests],
            **({"apart_from": apart} if apart else {}),
            **({"together_with": together} if together else {}),
            **parameters,
        }
        options = Options(
            frozenset(apart),
            frozenset(together),
            parameters.get("all_or_nothing", False),
            parameters["expires_in"] is not None if "expires_in" in parameters else None,
            dry_run,
        )
        answer = self.call("POST", "/v1/claims" + "?dry_run=true" * dry_run, 39, document)
        status, body = answer.status, answer.body
        if dry_run:
            assert status == 200, answer
            status, body = body["dry_run"]["status"], body["dry_run"]["body"]
        results = body["results"]
        assert [result["consumer"] for result in results] == [request.consumer for request in requests]
        claimed = sum(result["status"] == 200 for result in results)
        assert (status, body["claimed"]) == (200 if claimed else 409, claimed), answer
        for result in results:
            hypothesis.event(f"claim: {result['outcome']} {result.get('error', {}).get('code', '')}")
        unchanged = self.model
        if dry_run:
            self.model = copy.deepcopy(unchanged)
        touched = ResultChecker(self.model, requests, options).check(results)
        for result in results:
            self._check_result(result)
        if dry_run:
            former = {
                uuid for request in requests for uuid in _former_providers(unchanged, self.model, request.consumer)
            }
            assert answer.body["room"] == {uuid: self._room(uuid) for uuid in {*touched, *former}}, answer
            self.model = unchanged
        else:
            self._adopt_generations(touched, options)

    def _adopt_generations(self, touched: Counter[str], options: Options) -> None:
        """Take the generations of providers with new claims from the service: each transaction increases them.

        The model has increased each by one.
        """
        for uuid, claims in touched.items():
            if claims > 1 and not options.one_transaction:
                generation = self.get(f"/resource_providers/{uuid}")["generation"]
                min_generation = self.model.providers[uuid].generation
                assert min_generation <= generation < min_generation + claims
                self.model.providers[uuid].generation = generation

    def _check_result(self, result: Any) -> None:
        """Compare a result with the allocations of its consumer."""
        if result["status"] == 200 and result["outcome"] != "found":
            claim = self.model.claim_of(result["consumer"])
            for document in (result, claim):
                for allocation in document["allocations"].values():
                    # Other claims of the same call may have increased the generation since.
                    del allocation["generation"]
            response = _with_expiry_flag(
                {name: value for name, value in result.items() if name not in ("status", "outcome")}
            )
            assert response == normalize({name: claim[name] for name in response}), (result, claim)

    def _room(self, uuid: str) -> Any:
        """Return the part of a dry run about a provider."""
        room = {}
        for name, inventory in self.model.providers[uuid].inventories.items():
            capacity, usage = math.floor(inventory.capacity), self.model.usage(uuid, name)
            room[name] = {"capacity": capacity, "used": usage, "free": max(0, capacity - usage)}
        return room


def _former_providers(before: Model, after: Model, consumer: str) -> set[str]:
    """Return the providers that the consumer has left."""
    before_and_after = [
        model.consumers[consumer].allocations if consumer in model.consumers else {} for model in (before, after)
    ]
    return {*before_and_after[0]} - {*before_and_after[1]}


def _with_expiry_flag(body: Any) -> Any:
    """Return a document with its expiry replaced by whether there is one."""
    document = dict(body)
    return (
        normalize(document | {"has_expiry": document.pop("expires_at") is not None})
        if "expires_at" in document
        else document
    )
