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
from tests.model.records import CONCURRENT_UPDATE, Claim, Held, Record
from tests.model.service import Model
from tests.search import oracle, pick_oracle
from tests.search.pick_oracle import Amount
from tests.world import Stock, World

NO_ROOM, NOTHING_PLACED = "placement.v1.no_room", "placement.v1.nothing_placed"
HELD_OTHERWISE = "placement.v1.held_otherwise"
HELD = "held"


@dataclass(frozen=True)
class Wish:
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
    ends: bool | None = None
    #: Whether the call is a dry run.
    tried: bool = False

    @property
    def one_transaction(self) -> bool:
        return self.all_or_nothing or bool(self.together_with) or self.tried


@dataclass
class Judge:
    """One call, before its results are checked."""

    model: Model
    wishes: Sequence[Wish]
    options: Options
    #: The allocations of the call's consumers before it.
    _before: Mapping[str, Held] = field(init=False)
    #: The requests to be placed, in order: those not decided by the allocations of their consumers.
    _open: Sequence[Wish] = field(init=False)

    def __post_init__(self) -> None:
        self._before = {wish.consumer: self._held(wish.consumer) for wish in self.wishes}
        queries = [wish.query for wish in self.wishes]
        in_order = sorted(self.wishes, key=lambda wish: queries.index(wish.query))
        self._open = [wish for wish in in_order if self._decided(wish) is None]

    def see(self, results: Sequence[Any]) -> Counter[str]:
        """Check the results, apply them to the model, and return the number of new claims on each provider."""
        by_consumer = {result["consumer"]: result for result in results}
        if self.options.all_or_nothing and any(result["status"] != 200 for result in results):
            self._check_nothing_placed(by_consumer)
            return Counter()
        self._check_decided(by_consumer)
        placed = [wish for wish in self._open if by_consumer[wish.consumer]["outcome"] in ("claimed", "moved")]
        claims = [self._claim(wish, by_consumer[wish.consumer]) for wish in placed]
        ended = {wish.consumer: self._ends(wish) for wish in placed}
        self.model.place(claims)
        for wish in placed:
            result, known = by_consumer[wish.consumer], self.model.consumers[wish.consumer]
            known.record = Record(wish.content, result["mappings"], known.generation, ended[wish.consumer])
            assert result["outcome"] == ("moved" if self._before[wish.consumer] else "claimed"), result
        self._check_places([(wish, by_consumer[wish.consumer]) for wish in self._open])
        return Counter(uuid for claim in claims for uuid in claim.held)

    def _claim(self, wish: Wish, result: Any) -> Claim:
        held = {uuid: dict(on["resources"]) for uuid, on in result["allocations"].items()}
        said = wish.content
        return Claim(wish.consumer, held, said["project_id"], said["user_id"], said["consumer_type"], wish.generation)

    def _ends(self, wish: Wish) -> bool:
        """Whether the claim has an expiry; a moved consumer may keep its own."""
        known = self.model.consumers.get(wish.consumer)
        kept = bool(known and known.record and known.record.ends)
        return kept if self.options.ends is None else self.options.ends

    # --- results decided by existing allocations ---

    def _decided(self, wish: Wish) -> str | None:
        """Return ``HELD`` or the code of a refusal, if the allocations of the consumer decide the result."""
        known = self.model.consumers.get(wish.consumer)
        if known and known.record and known.record.request == wish.content:
            return HELD
        if wish.generation == (known.generation if known else None):
            return None
        return HELD_OTHERWISE if wish.generation is None else CONCURRENT_UPDATE

    def _check_decided(self, results: Mapping[str, Any]) -> None:
        for wish in self.wishes:
            decided, result = self._decided(wish), results[wish.consumer]
            if decided == HELD:
                assert (result["status"], result["outcome"]) == (200, HELD), (wish, result)
            elif decided:
                assert result["error"]["code"] == decided, (wish, result)
            elif result["status"] != 200:
                assert result["error"]["code"] == NO_ROOM, (wish, result)
            else:
                outcomes = ("found",) if wish.dry else ("claimed", "moved")
                assert result["outcome"] in outcomes, (wish, result)

    def _check_nothing_placed(self, results: Mapping[str, Any]) -> None:
        """Check that at least one request is refused for its own reason, and the others because of it."""
        assert {result["status"] for result in results.values()} == {409}, results
        codes = {consumer: result["error"]["code"] for consumer, result in results.items()}
        reasons = {consumer: code for consumer, code in codes.items() if code != NOTHING_PLACED}
        assert reasons, results
        decided = {wish.consumer: self._decided(wish) for wish in self.wishes}
        for consumer, code in reasons.items():
            assert code == (decided[consumer] or NO_ROOM), results
        if {*decided.values()} <= {None, HELD}:
            assert self._may_be_refused(), (self.wishes, results)

    # --- trees ---

    def _held(self, consumer: str) -> Held:
        known = self.model.consumers.get(consumer)
        return known.held if known else {}

    def _trees(self, held: Collection[str]) -> set[str]:
        """Return the roots of the trees of providers."""
        return {self.model.ancestry(uuid)[-1] for uuid in held}

    def _allowed(
        self, wish: Wish, new: Mapping[str, Collection[str]] | None = None, unseen: Collection[str] = ()
    ) -> list[str]:
        """Return the roots of the trees allowed for a consumer.

        Args:
            new: The trees of places in the call, by consumer, in addition to those in the model.
            unseen: Consumers whose places the request does not see.
        """

        def trees(consumer: str) -> set[str]:
            held = () if consumer in unseen else self._held(consumer)
            return self._trees(held) | {*(new or {}).get(consumer, ())}

        apart_from, together_with = self.options.apart_from, self.options.together_with
        listed = wish.consumer in apart_from
        others = {*apart_from, *(other.consumer for other in self.wishes if listed)} - {wish.consumer}
        avoided = set[str]().union(*map(trees, others))
        if listed:
            avoided |= self._trees(self._before[wish.consumer])
        allowed = {uuid for uuid, provider in self.model.providers.items() if provider.parent is None} - avoided
        joining = {other.consumer for other in self._open}
        present = [in_trees for partner in together_with - joining if (in_trees := trees(partner))]
        if together_with and not present and not together_with & joining:
            return []
        return sorted(allowed.intersection(*present))

    @property
    def _joined(self) -> bool:
        """Whether all places of the call must be in one tree."""
        return any(wish.consumer in self.options.together_with for wish in self._open)

    # --- places ---

    def _check_places(self, results: Sequence[tuple[Wish, Any]]) -> None:
        """Check each place together with all others of the call, and each refusal in the same state.

        Later places only add usage, so they free no place: after a move that frees one, the service retries a request
        without a place.
        """
        if self._joined:
            granted = {result["status"] == 200 for _, result in results}
            assert len(granted) == 1, results
            if granted == {False}:
                assert not self._has_joined(), results
                return
            assert len({tree for _, result in results for tree in self._trees(result["allocations"])}) == 1, results
        world = world_of(self.model)
        for number, (wish, result) in enumerate(results):
            unseen = []
            if wish.dry and result["status"] == 200:
                # Later requests do not see it, and may have got the same place.
                unseen = [later.consumer for later, _ in results[number + 1 :]]
            free = world
            for consumer in (wish.consumer, *unseen):
                free = pick_oracle.use(free, amounts_of(self._held(consumer), -1))
            allowed = self._allowed(wish, unseen=unseen)
            if result["status"] != 200:
                assert len(pick_oracle.places(free, wish.query, allowed)) < wish.count, (wish, result)
            else:
                self._check_place(wish, result, free, allowed)

    def _check_place(self, wish: Wish, result: Any, free: World, allowed: Collection[str]) -> None:
        """Check that each copy is a candidate, in a different allowed tree."""
        possible = pick_oracle.places(free, wish.query, allowed)
        held = result["allocations"]
        assert len(result["mappings"]) == len(self._trees(held)) == wish.count, (wish, result)
        copies = set()
        for mapped in result["mappings"]:
            [tree] = self._trees([uuid for uuids in mapped.values() for uuid in uuids])
            here = {uuid: held[uuid]["resources"] for uuid in held if self._trees([uuid]) == {tree}}
            answer = (
                frozenset(amounts_of(here)),
                frozenset((suffix, frozenset(uuids)) for suffix, uuids in mapped.items()),
            )
            assert answer in possible.get(tree, ()), (wish, result)
            copies.add(tree)
        assert len(copies) == wish.count, (wish, result)

    def _has_joined(self) -> bool:
        """Whether a tree fits all requests."""
        if any(wish.count > 1 for wish in self._open):
            return False
        if len(self._open) > 1 and any(wish.consumer in self.options.apart_from for wish in self._open):
            return False
        wanted = [(wish.query, amounts_of(self._held(wish.consumer), -1)) for wish in self._open]
        trees = set[str].intersection(*({*self._allowed(wish)} for wish in self._open))
        return any(pick_oracle.fit_together(world_of(self.model), wanted, tree) for tree in sorted(trees))

    def _may_be_refused(self) -> bool:
        """Whether some choice of places for earlier requests leaves one of the requests without a place."""
        if self._joined:
            return not self._has_joined()
        return self._may_end(list(self._open), world_of(self.model), {})

    def _may_end(self, wishes: list[Wish], world: World, new: dict[str, Collection[str]]) -> bool:
        if not wishes:
            return False
        wish, *later = wishes
        free = pick_oracle.use(world, amounts_of(self._held(wish.consumer), -1))
        possible = pick_oracle.places(free, wish.query, self._allowed(wish, new))
        if len(possible) < wish.count:
            return True
        if wish.dry:
            return self._may_end(later, world, new)
        return any(
            self._may_end(later, pick_oracle.use(world, amounts), {**new, wish.consumer: trees})
            for trees in itertools.combinations(possible, wish.count)
            for amounts in _taken([possible[tree] for tree in trees])
        )


def _taken(answers: Sequence[set[oracle.Answer]]) -> Iterator[list[Amount]]:
    """Yield the amounts of each choice of one candidate of each tree."""
    for chosen in itertools.product(*({amounts for amounts, _ in of_tree} for of_tree in answers)):
        yield [*itertools.chain.from_iterable(chosen)]


def world_of(model: Model) -> World:
    """Return the providers of the model."""
    world = World()
    for uuid, provider in model.providers.items():
        stocks = {
            name: Stock(**vars(inventory), used=model.used(uuid, name))
            for name, inventory in provider.inventories.items()
        }
        world.host(uuid, provider.parent, provider.traits, provider.aggregates, **stocks)
    return world


def amounts_of(held: Held, times: int = 1) -> list[Amount]:
    """Return amounts in the form of the brute force; with the factor -1 for released amounts."""
    return [(uuid, name, times * amount) for uuid, of in held.items() for name, amount in of.items()]
