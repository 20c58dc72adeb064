"""The entry to picking: requests of different queries, one after the other, and the rules between their consumers."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.overlay import Own, UsageOverlay
from placement.extensions.v1.pick.allowance import Allowance
from placement.extensions.v1.pick.combination import Alternatives, TreeCandidate, combination
from placement.extensions.v1.pick.place_search import Area, PlaceSearch
from placement.extensions.v1.pick.strategy import Strategy
from placement.extensions.v1.pick.tree_queue import Tally
from placement.index.slots import EMPTY, SlotSet, intersection
from placement.index.snapshot import SHARES, Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.find import Settings
from placement.search.query.query import SearchQuery
from placement.search.solver.problem import Candidate


@dataclass(frozen=True, slots=True, eq=False)
class PickRequest:
    """What one consumer needs."""

    query: SearchQuery
    #: How many candidates, each of another tree.
    copies: int = 1
    #: What the consumer gives up when it gets its place, by provider uuid and class: free for it, and for no other.
    own: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Whether no other consumer of the call may be in the same tree.
    listed: bool = False
    #: Whether the place is only looked for: others may be given the same.
    dry: bool = False


class Pick(NamedTuple):
    """The place of one consumer."""

    #: By slots of the snapshot; one for each copy.
    candidates: tuple[Candidate, ...]
    #: The roots of the trees that they were found for.
    roots: tuple[int, ...]


class Picker:
    """Picks places in one snapshot, and remembers what it gave.

    Attributes:
        cut_short: The positions of the requests of the last call that have no place because the budget was used up:
            there may be one.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        strategy: Strategy | None = None,
        settings: Settings | None = None,
        *,
        avoid: Collection[int] = (),
        occupied: Collection[int] = (),
        within: Collection[int] | None = None,
        join: bool = False,
        seed: int | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        """Begin without picks.

        Args:
            strategy: None: spread.
            settings: Bounds of the search.
            avoid: Roots of trees in which no consumer is placed.
            occupied: Roots of trees that no listed consumer is placed in: others of the call have places there.
            within: Roots of the only trees; None: all.
            join: Whether all requests of a call are placed in one tree.
            seed: Makes picks repeatable.
            allowance: The operations of the call; None: those of the settings, for each call of ``pick``.
        """
        self._snapshot = snapshot
        self._overlay = UsageOverlay(snapshot)
        self._strategy = strategy or Strategy()
        self._settings = settings or Settings()
        self._within = within
        self._join = join
        self._random = random.Random(seed)
        self._tally = Tally()
        #: The trees that listed consumers must avoid, and those that the others must.
        self._with_any, self._with_listed = {*avoid, *occupied}, set(avoid)
        self._given = allowance
        self._allowance = allowance or Allowance(0, 0)
        self.cut_short: set[int] = set()

    def pick(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return a place for each request; None if nothing fits beside what was picked before.

        Equal requests are placed together, in the order of the first of each.
        """
        self.cut_short = set()
        self._allowance = self._given or Allowance(self._settings.operations, len(requests))
        return self._pick_joined(requests) if self._join else self._pick_each(requests)

    def _pick_each(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return a place for each request."""
        picks: list[Pick | None] = [None] * len(requests)
        for positions in _alike(requests):
            self._overlay.rebase()
            shared: dict[bool, PlaceSearch] = {}
            number = sum(requests[position].copies for position in positions)
            for position in positions:
                budget, choices = self._search(requests[position], shared, number)
                if choices is not None:
                    picks[position] = self._picked(requests[position], choices)
                elif budget.shortage:
                    self.cut_short.add(position)
        return picks

    def _search(
        self, request: PickRequest, shared: dict[bool, PlaceSearch], number: int
    ) -> tuple[Budget, list[TreeCandidate] | None]:
        """Return candidates for a request, None if there are none, and the budget of the search.

        Args:
            shared: Where requests with an equal query, who give up nothing, find their places: listed ones and others.
            number: How many trees these need.
        """
        own = self._own(request)
        places = None if own else shared.get(request.listed)
        budget = Budget(memory=self._settings.memory) if places is None else places.budget
        choices = None
        if self._allowance.grant(budget):
            with contextlib.suppress(Exhausted):
                if places is None:
                    places = self._places(request, own, request.copies if own else number, budget)
                if not own:
                    shared[request.listed] = places
                choices = places.pick(request.copies, request.dry)
            self._allowance.charge(budget, placed=choices is not None and not request.dry)
        return budget, choices

    def _pick_joined(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Place all requests in one tree, or none."""
        nowhere: list[Pick | None] = [None] * len(requests)
        apart = len(requests) > 1 and any(request.listed for request in requests)
        if apart or any(request.copies > 1 for request in requests) or not requests:
            return nowhere
        self._overlay.rebase()
        budget = Budget(memory=self._settings.memory)
        choices = None
        if self._allowance.grant(budget):
            with contextlib.suppress(Exhausted):
                places: dict[Hashable, PlaceSearch] = {}
                keys: list[Hashable] = []
                for request in requests:
                    own = self._own(request)
                    keys.append((_key(request.query), frozenset(own.items())))
                    if keys[-1] not in places:
                        places[keys[-1]] = self._places(request, own, 1, budget)
                choices = _joined([places[key] for key in keys], self._overlay, budget)
            self._allowance.charge(budget, placed=choices is not None)
        if choices is None:
            self.cut_short = set(range(len(requests))) if budget.shortage else set()
            return nowhere
        for request, choice in zip(requests, choices, strict=True):
            if request.dry:
                self._overlay.take(choice.candidate, -1)
        return [self._picked(request, [choice]) for request, choice in zip(requests, choices, strict=True)]

    def _places(self, request: PickRequest, own: Own, number: int, budget: Budget) -> PlaceSearch:
        return PlaceSearch(
            request.query,
            own,
            self._overlay,
            self._area(request),
            self._strategy,
            self._tally,
            picks=number,
            budget=budget,
            seed=self._random.getrandbits(32),
        )

    def _area(self, request: PickRequest) -> Area:
        return Area(self._within, self._with_any if request.listed else self._with_listed)

    def _own(self, request: PickRequest) -> Own:
        """Return what the consumer gives up where it could be picked, by slot and resource class."""
        own: dict[tuple[int, str], int] = {}
        if not request.own:
            return own
        area = self._area(request)
        for uuid, amounts in request.own.items():
            slot = self._snapshot.by_uuid.get(uuid)
            if slot is None:
                continue
            provider = self._snapshot.provider(slot)
            if SHARES in provider.traits or area.has(provider.root):
                for name, amount in amounts.items():
                    if self._snapshot.class_ids.get(name) in provider.classes:
                        own[slot, name] = amount
        return own

    def _picked(self, request: PickRequest, choices: list[TreeCandidate]) -> Pick:
        """Remember and return the place of a consumer."""
        pick = Pick(tuple([choice.candidate for choice in choices]), tuple([choice.root for choice in choices]))
        if not request.dry:
            self._with_any.update(pick.roots)
            if request.listed:
                self._with_listed.update(pick.roots)
        return pick


def _alike(requests: Sequence[PickRequest]) -> Iterable[list[int]]:
    """Return the positions of requests with equal queries, in the order of the first of each."""
    alike: dict[Hashable, list[int]] = {}
    for position, request in enumerate(requests):
        alike.setdefault(_key(request.query), []).append(position)
    return alike.values()


def _key(query: SearchQuery) -> Hashable:
    """Return what queries have in common that find the same places."""
    return query.canonical, query.avoided, query.nested


# --- one tree for all ------------------------------------------------------------------------------------------------


def _joined(places: Sequence[PlaceSearch], overlay: UsageOverlay, budget: Budget) -> list[TreeCandidate] | None:
    """Return a candidate for each request, all of one tree, whose amounts stay taken; None if no tree has room.

    Args:
        places: Those of each request.

    Raises:
        Exhausted: The budget is used up; nothing is taken.
    """
    for each in places:
        each.look_everywhere()
    queue = places[0].queue(_with_room(places, intersection(each.roots for each in places)))
    while (root := queue.pop()) is not None:
        choices = combination(len(places), _alternatives(root, places), lambda _: True, overlay, budget)
        if choices is not None:
            return choices
    return None


def _with_room(places: Sequence[PlaceSearch], roots: SlotSet) -> SlotSet:
    """Return those of the roots whose trees have room for the sum of what is asked for, as far as that is known."""
    snapshot = places[0].snapshot
    total: Counter[str] = Counter()
    for each in places:
        if each.may_borrow or each.gives_up:
            return roots
        total.update(each.total)
    for name, amount in total.items():
        column = snapshot.column(name)
        if column is None:
            return EMPTY
        held = column.inventories()
        free = np.maximum(held.capacity - held.used, 0)
        roots &= SlotSet.dense(np.bincount(snapshot.forest.roots(held.slots), free, snapshot.size) >= amount)
    return roots


def _alternatives(root: int, places: Sequence[PlaceSearch]) -> Alternatives:
    """Return the candidates in one tree for each consumer in turn."""

    def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
        next_places = places[len(choices)]
        next_places.begin_consumer()
        return (TreeCandidate(root, one) for one in next_places.candidates(root))

    return alternatives
