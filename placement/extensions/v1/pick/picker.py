"""The entry point: places for requests with different queries, and the rules between their consumers."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.overlay import ReleasedAmounts, UsageOverlay
from placement.extensions.v1.pick.allowance import Allowance
from placement.extensions.v1.pick.combination import Alternatives, TreeCandidate, find_combination
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
    """The requirements of one consumer."""

    query: SearchQuery
    #: Number of candidates, each in a different tree.
    copies: int = 1
    #: Amounts that the consumer releases when it gets its place, by provider uuid and class; free only for this
    #: consumer.
    releases: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Whether the other consumers of the claim set must be in other trees.
    exclusive: bool = False
    #: Whether the place is not reserved: other requests may get the same place.
    dry_run: bool = False


class Pick(NamedTuple):
    """The place of one consumer."""

    #: One candidate per copy, by slots of the snapshot.
    candidates: tuple[Candidate, ...]
    #: The root of the tree of each candidate.
    roots: tuple[int, ...]


class Picker:
    """A picker of places in one snapshot, each at the usage after the earlier picks.

    Attributes:
        cut_short: Positions of the requests in the last ``pick`` whose search ran out of budget: they may have a place.
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
        """Prepare a picker without picks.

        Args:
            strategy: The order of the trees; None for spread.
            settings: The limits of the search.
            avoid: Roots of trees in which no consumer is placed.
            occupied: Roots of trees with other consumers of the claim set; no exclusive consumer is placed there.
            within: Roots of the only trees to use; None for all.
            join: Whether ``pick`` places all requests in one tree.
            seed: The seed of the random generator; None for a random one.
            allowance: The operations of the claim set; None for the operations of the settings in each ``pick``.
        """
        self._snapshot = snapshot
        self._overlay = UsageOverlay(snapshot)
        self._strategy = strategy or Strategy()
        self._settings = settings or Settings()
        self._within = within
        self._join = join
        self._random = random.Random(seed)
        self._tally = Tally()
        #: Roots of the trees that exclusive consumers must avoid; roots that all other consumers must avoid.
        self._with_any, self._with_exclusive = {*avoid, *occupied}, set(avoid)
        self._given_allowance = allowance
        self._allowance = allowance or Allowance(0, 0)
        self.cut_short: set[int] = set()

    def pick(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return a place for each request, or None if nothing fits after the earlier picks.

        Requests with equal queries are placed together; the groups follow the order of their first requests.
        """
        self.cut_short = set()
        self._allowance = self._given_allowance or Allowance(self._settings.operations, len(requests))
        return self._pick_in_one_tree(requests) if self._join else self._pick_each(requests)

    def _pick_each(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        picks: list[Pick | None] = [None] * len(requests)
        for positions in _by_query(requests):
            self._overlay.rebase()
            shared: dict[bool, PlaceSearch] = {}
            number = sum(requests[position].copies for position in positions)
            for position in positions:
                budget, choices = self._search(requests[position], shared, number)
                if choices is not None:
                    picks[position] = self._record_pick(requests[position], choices)
                elif budget.shortage:
                    self.cut_short.add(position)
        return picks

    def _search(
        self, request: PickRequest, shared: dict[bool, PlaceSearch], number: int
    ) -> tuple[Budget, list[TreeCandidate] | None]:
        """Return the budget of the search, and the candidates for a request or None.

        Args:
            shared: The place searches of requests with equal queries that release nothing, by ``exclusive``.
            number: Number of trees that these requests need.
        """
        released = self._released_amounts(request)
        search = None if released else shared.get(request.exclusive)
        budget = Budget(memory=self._settings.memory) if search is None else search.budget
        choices = None
        if self._allowance.grant(budget):
            with contextlib.suppress(Exhausted):
                if search is None:
                    search = self._place_search(request, released, request.copies if released else number, budget)
                if not released:
                    shared[request.exclusive] = search
                choices = search.pick(request.copies, request.dry_run)
            self._allowance.charge(budget, placed=choices is not None and not request.dry_run)
        return budget, choices

    def _pick_in_one_tree(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return places for all requests in one tree, or for none of them."""
        no_places: list[Pick | None] = [None] * len(requests)
        separate = len(requests) > 1 and any(request.exclusive for request in requests)
        if separate or any(request.copies > 1 for request in requests) or not requests:
            return no_places
        self._overlay.rebase()
        budget = Budget(memory=self._settings.memory)
        choices = None
        if self._allowance.grant(budget):
            with contextlib.suppress(Exhausted):
                searches: dict[Hashable, PlaceSearch] = {}
                keys: list[Hashable] = []
                for request in requests:
                    released = self._released_amounts(request)
                    keys.append((_key(request.query), frozenset(released.items())))
                    if keys[-1] not in searches:
                        searches[keys[-1]] = self._place_search(request, released, 1, budget)
                choices = _place_together([searches[key] for key in keys], self._overlay, budget)
            self._allowance.charge(budget, placed=choices is not None)
        if choices is None:
            self.cut_short = set(range(len(requests))) if budget.shortage else set()
            return no_places
        for request, choice in zip(requests, choices, strict=True):
            if request.dry_run:
                self._overlay.take(choice.candidate, -1)
        return [self._record_pick(request, [choice]) for request, choice in zip(requests, choices, strict=True)]

    def _place_search(
        self, request: PickRequest, released: ReleasedAmounts, number: int, budget: Budget
    ) -> PlaceSearch:
        return PlaceSearch(
            request.query,
            released,
            self._overlay,
            self._area(request),
            self._strategy,
            self._tally,
            picks=number,
            budget=budget,
            seed=self._random.getrandbits(32),
        )

    def _area(self, request: PickRequest) -> Area:
        return Area(self._within, self._with_any if request.exclusive else self._with_exclusive)

    def _released_amounts(self, request: PickRequest) -> ReleasedAmounts:
        """Return the amounts that the consumer releases in trees it may use, by slot and resource class."""
        released: dict[tuple[int, str], int] = {}
        if not request.releases:
            return released
        area = self._area(request)
        for uuid, amounts in request.releases.items():
            slot = self._snapshot.by_uuid.get(uuid)
            if slot is None:
                continue
            provider = self._snapshot.provider(slot)
            if SHARES in provider.traits or area.has(provider.root):
                for name, amount in amounts.items():
                    if self._snapshot.class_ids.get(name) in provider.classes:
                        released[slot, name] = amount
        return released

    def _record_pick(self, request: PickRequest, choices: list[TreeCandidate]) -> Pick:
        """Record and return the place of a consumer."""
        pick = Pick(tuple([choice.candidate for choice in choices]), tuple([choice.root for choice in choices]))
        if not request.dry_run:
            self._with_any.update(pick.roots)
            if request.exclusive:
                self._with_exclusive.update(pick.roots)
        return pick


def _by_query(requests: Sequence[PickRequest]) -> Iterable[list[int]]:
    """Return the positions of requests grouped by equal queries, in the order of their first requests."""
    by_query: dict[Hashable, list[int]] = {}
    for position, request in enumerate(requests):
        by_query.setdefault(_key(request.query), []).append(position)
    return by_query.values()


def _key(query: SearchQuery) -> Hashable:
    """Return a key shared by queries that find the same places."""
    return query.canonical, query.avoided, query.nested


# --- one tree for all ------------------------------------------------------------------------------------------------


def _place_together(
    searches: Sequence[PlaceSearch], overlay: UsageOverlay, budget: Budget
) -> list[TreeCandidate] | None:
    """Return a candidate for each request, all in one tree, or None; the amounts stay in the overlay.

    Args:
        searches: The place search of each request.

    Raises:
        Exhausted: The budget is exhausted; the overlay is unchanged.
    """
    for search in searches:
        search.narrow_all_trees()
    queue = searches[0].queue(_with_capacity(searches, intersection(search.roots for search in searches)))
    while (root := queue.pop()) is not None:
        choices = find_combination(len(searches), _alternatives(root, searches), lambda _: True, overlay, budget)
        if choices is not None:
            return choices
    return None


def _with_capacity(searches: Sequence[PlaceSearch], roots: SlotSet) -> SlotSet:
    """Return the roots of the trees whose free capacity may be enough for all requests together."""
    snapshot = searches[0].snapshot
    total: Counter[str] = Counter()
    for search in searches:
        if search.may_use_sharing or search.releases:
            return roots
        total.update(search.total)
    for name, amount in total.items():
        column = snapshot.column(name)
        if column is None:
            return EMPTY
        inventories = column.inventories()
        free = np.maximum(inventories.capacity - inventories.used, 0)
        roots &= SlotSet.dense(np.bincount(snapshot.forest.roots(inventories.slots), free, snapshot.size) >= amount)
    return roots


def _alternatives(root: int, searches: Sequence[PlaceSearch]) -> Alternatives:
    """Return the candidates in one tree for each consumer in turn."""

    def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
        next_search = searches[len(choices)]
        next_search.begin_consumer()
        return (TreeCandidate(root, candidate) for candidate in next_search.candidates(root))

    return alternatives
