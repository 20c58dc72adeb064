"""The possible results of a call of /v1/claims, by brute force on the model's state (docs: v1-claims).

The service chooses the places.  This module checks that each place was possible, and that there was none for a refused
request.  No provider of the model shares, so a place is in the trees of its providers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement.search.query.query import SearchQuery
from tests.model.records import CONCURRENT_UPDATE, Allocations, Claim, Record
from tests.model.service import Model
from tests.search import oracle, pick_oracle
from tests.search.pick_oracle import Amount
from tests.world import Stock, World

NO_ROOM, NOTHING_PLACED = "placement.v1.no_room", "placement.v1.nothing_placed"
HELD_OTHERWISE = "placement.v1.held_otherwise"
HELD = "held"


@dataclass(frozen=True)
class ClaimRequest:
    """A request of a call."""

    consumer: str
    query: SearchQuery
    #: The members of the request that determine whether it equals another one.
    content: Mapping[str, Any]
    dry: bool = False

    @property
    def count(self) -> int:
        return int(self.content["count"])

    @property
    def generation(self) -> int | None:
        return self.content.get("consumer_generation")

    @property
    def entry(self) -> dict[str, Any]:
        """Return the request in the form of the API."""
        return {**self.content, "dry_run": True} if self.dry else {**self.content}


@dataclass(frozen=True)
class Options:
    """The options of a call that matter here."""

    apart_from: frozenset[str] = frozenset()
    together_with: frozenset[str] = frozenset()
    all_or_nothing: bool = False
    #: Whether there is an expiry; None if the call does not say.
    has_expiry: bool | None = None
    #: Whether the call is a dry run.
    dry_run: bool = False

    @property
    def one_transaction(self) -> bool:
        return self.all_or_nothing or bool(self.together_with) or self.dry_run


@dataclass
class ResultChecker:
    """A check of the results of one call."""

    model: Model
    requests: Sequence[ClaimRequest]
    options: Options
    #: The allocations of the call's consumers before it.
    _before: Mapping[str, Allocations] = field(init=False)
    #: The requests to be placed, in order: those not decided by the allocations of their consumers.
    _undecided: Sequence[ClaimRequest] = field(init=False)

    def __post_init__(self) -> None:
        self._before = {request.consumer: self._allocations(request.consumer) for request in self.requests}
        queries = [request.query for request in self.requests]
        in_order = sorted(self.requests, key=lambda request: queries.index(request.query))
        self._undecided = [request for request in in_order if self._decision(request) is None]

    def check(self, results: Sequence[Any]) -> Counter[str]:
        """Check the results, apply them to the model, and return the number of new claims on each provider."""
        by_consumer = {result["consumer"]: result for result in results}
        if self.options.all_or_nothing and any(result["status"] != 200 for result in results):
            self._check_nothing_placed(by_consumer)
            return Counter()
        self._check_decided(by_consumer)
        placed = [
            request for request in self._undecided if by_consumer[request.consumer]["outcome"] in ("claimed", "moved")
        ]
        claims = [self._claim(request, by_consumer[request.consumer]) for request in placed]
        expiries = {request.consumer: self._has_expiry(request) for request in placed}
        self.model.place(claims)
        for request in placed:
            result, state = by_consumer[request.consumer], self.model.consumers[request.consumer]
            state.record = Record(request.content, result["mappings"], state.generation, expiries[request.consumer])
            assert result["outcome"] == ("moved" if self._before[request.consumer] else "claimed"), result
        self._check_places([(request, by_consumer[request.consumer]) for request in self._undecided])
        return Counter(uuid for claim in claims for uuid in claim.allocations)

    def _claim(self, request: ClaimRequest, result: Any) -> Claim:
        allocations = {uuid: dict(entry["resources"]) for uuid, entry in result["allocations"].items()}
        content = request.content
        return Claim(
            request.consumer,
            allocations,
            content["project_id"],
            content["user_id"],
            content["consumer_type"],
            request.generation,
        )

    def _has_expiry(self, request: ClaimRequest) -> bool:
        """Whether the claim has an expiry; a moved consumer may keep its own."""
        state = self.model.consumers.get(request.consumer)
        has_old_expiry = bool(state and state.record and state.record.has_expiry)
        return has_old_expiry if self.options.has_expiry is None else self.options.has_expiry

    # --- results decided by existing allocations ---

    def _decision(self, request: ClaimRequest) -> str | None:
        """Return ``HELD`` or the code of a refusal, if the allocations of the consumer decide the result."""
        state = self.model.consumers.get(request.consumer)
        if state and state.record and state.record.request == request.content:
            return HELD
        if request.generation == (state.generation if state else None):
            return None
        return HELD_OTHERWISE if request.generation is None else CONCURRENT_UPDATE

    def _check_decided(self, results: Mapping[str, Any]) -> None:
        for request in self.requests:
            decided, result = self._decision(request), results[request.consumer]
            if decided == HELD:
                assert (result["status"], result["outcome"]) == (200, HELD), (request, result)
            elif decided:
                assert result["error"]["code"] == decided, (request, result)
            elif result["status"] != 200:
                assert result["error"]["code"] == NO_ROOM, (request, result)
            else:
                outcomes = ("found",) if request.dry else ("claimed", "moved")
                assert result["outcome"] in outcomes, (request, result)

    def _check_nothing_placed(self, results: Mapping[str, Any]) -> None:
        """Check that at least one request is refused for its own reason, and the others because of it."""
        assert {result["status"] for result in results.values()} == {409}, results
        codes = {consumer: result["error"]["code"] for consumer, result in results.items()}
        reasons = {consumer: code for consumer, code in codes.items() if code != NOTHING_PLACED}
        assert reasons, results
        decided = {request.consumer: self._decision(request) for request in self.requests}
        for consumer, code in reasons.items():
            assert code == (decided[consumer] or NO_ROOM), results
        if {*decided.values()} <= {None, HELD}:
            assert self._may_be_refused(), (self.requests, results)

    # --- trees ---

    def _allocations(self, consumer: str) -> Allocations:
        state = self.model.consumers.get(consumer)
        return state.allocations if state else {}

    def _trees(self, providers: Collection[str]) -> set[str]:
        """Return the roots of the trees of providers."""
        return {self.model.ancestry(uuid)[-1] for uuid in providers}

    def _allowed_roots(
        self, request: ClaimRequest, new: Mapping[str, Collection[str]] | None = None, unseen: Collection[str] = ()
    ) -> list[str]:
        """Return the roots of the trees allowed for a consumer.

        Args:
            new: The trees of places in the call, by consumer, in addition to those in the model.
            unseen: Consumers whose places the request does not see.
        """

        def trees(consumer: str) -> set[str]:
            providers = () if consumer in unseen else self._allocations(consumer)
            return self._trees(providers) | {*(new or {}).get(consumer, ())}

        apart_from, together_with = self.options.apart_from, self.options.together_with
        listed = request.consumer in apart_from
        other_consumers = {*apart_from, *(other.consumer for other in self.requests if listed)} - {request.consumer}
        avoided = set[str]().union(*map(trees, other_consumers))
        if listed:
            avoided |= self._trees(self._before[request.consumer])
        allowed = {uuid for uuid, provider in self.model.providers.items() if provider.parent is None} - avoided
        joining = {other.consumer for other in self._undecided}
        present = [in_trees for partner in together_with - joining if (in_trees := trees(partner))]
        if together_with and not present and not together_with & joining:
            return []
        return sorted(allowed.intersection(*present))

    @property
    def _is_joined(self) -> bool:
        """Whether all places of the call must be in one tree."""
        return any(request.consumer in self.options.together_with for request in self._undecided)

    # --- places ---

    def _check_places(self, results: Sequence[tuple[ClaimRequest, Any]]) -> None:
        """Check each place together with all others of the call, and each refusal in the same state.

        Later places only add usage, so they free no place: after a move that frees one, the service retries a request
        without a place.
        """
        if self._is_joined:
            granted = {result["status"] == 200 for _, result in results}
            assert len(granted) == 1, results
            if granted == {False}:
                assert not self._has_joined(), results
                return
            assert len({tree for _, result in results for tree in self._trees(result["allocations"])}) == 1, results
        world = world_of(self.model)
        for number, (request, result) in enumerate(results):
            unseen = []
            if request.dry and result["status"] == 200:
                # Later requests do not see it, and may have got the same place.
                unseen = [later.consumer for later, _ in results[number + 1 :]]
            free = world
            for consumer in (request.consumer, *unseen):
                free = pick_oracle.use(free, amounts_of(self._allocations(consumer), -1))
            allowed = self._allowed_roots(request, unseen=unseen)
            if result["status"] != 200:
                assert len(pick_oracle.places(free, request.query, allowed)) < request.count, (request, result)
            else:
                self._check_place(request, result, free, allowed)

    def _check_place(self, request: ClaimRequest, result: Any, free: World, allowed: Collection[str]) -> None:
        """Check that each copy is a candidate, in a different allowed tree."""
        possible = pick_oracle.places(free, request.query, allowed)
        allocations = result["allocations"]
        assert len(result["mappings"]) == len(self._trees(allocations)) == request.count, (request, result)
        copies = set()
        for mapped in result["mappings"]:
            [tree] = self._trees([uuid for uuids in mapped.values() for uuid in uuids])
            amounts = {uuid: allocations[uuid]["resources"] for uuid in allocations if self._trees([uuid]) == {tree}}
            candidate = (
                frozenset(amounts_of(amounts)),
                frozenset((suffix, frozenset(uuids)) for suffix, uuids in mapped.items()),
            )
            assert candidate in possible.get(tree, ()), (request, result)
            copies.add(tree)
        assert len(copies) == request.count, (request, result)

    def _has_joined(self) -> bool:
        """Whether all requests fit into one tree."""
        if any(request.count > 1 for request in self._undecided):
            return False
        if len(self._undecided) > 1 and any(request.consumer in self.options.apart_from for request in self._undecided):
            return False
        queries_and_amounts = [
            (request.query, amounts_of(self._allocations(request.consumer), -1)) for request in self._undecided
        ]
        trees = set[str].intersection(*({*self._allowed_roots(request)} for request in self._undecided))
        return any(pick_oracle.fit_together(world_of(self.model), queries_and_amounts, tree) for tree in sorted(trees))

    def _may_be_refused(self) -> bool:
        """Whether some choice of places for earlier requests leaves one of the requests without a place."""
        if self._is_joined:
            return not self._has_joined()
        return self._may_lack_a_place(list(self._undecided), world_of(self.model), {})

    def _may_lack_a_place(self, requests: list[ClaimRequest], world: World, new: dict[str, Collection[str]]) -> bool:
        if not requests:
            return False
        request, *later = requests
        free = pick_oracle.use(world, amounts_of(self._allocations(request.consumer), -1))
        possible = pick_oracle.places(free, request.query, self._allowed_roots(request, new))
        if len(possible) < request.count:
            return True
        if request.dry:
            return self._may_lack_a_place(later, world, new)
        return any(
            self._may_lack_a_place(later, pick_oracle.use(world, amounts), {**new, request.consumer: trees})
            for trees in itertools.combinations(possible, request.count)
            for amounts in _amount_choices([possible[tree] for tree in trees])
        )


def _amount_choices(candidates_by_tree: Sequence[set[oracle.Candidate]]) -> Iterator[list[Amount]]:
    """Yield the amounts of each choice of one candidate of each tree."""
    for chosen in itertools.product(*({amounts for amounts, _ in of_tree} for of_tree in candidates_by_tree)):
        yield [*itertools.chain.from_iterable(chosen)]


def world_of(model: Model) -> World:
    """Return the providers of the model."""
    world = World()
    for uuid, provider in model.providers.items():
        stocks = {
            name: Stock(**vars(inventory), used=model.usage(uuid, name))
            for name, inventory in provider.inventories.items()
        }
        world.host(uuid, provider.parent, provider.traits, provider.aggregates, **stocks)
    return world


def amounts_of(allocations: Allocations, times: int = 1) -> list[Amount]:
    """Return amounts in the form of the brute force; with the factor -1 for released amounts."""
    return [(uuid, name, times * amount) for uuid, by_class in allocations.items() for name, amount in by_class.items()]
