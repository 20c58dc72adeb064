"""The entry to picking: requests of different queries, one after the other, and the rules between their consumers."""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.find import Settings
from placement.search.pick.combination import TreeCandidate
from placement.search.pick.joined import pick_joined
from placement.search.pick.overlay import Own, UsageOverlay
from placement.search.pick.places import Area, Places
from placement.search.pick.strategy import Strategy
from placement.search.pick.tree_queue import Tally
from placement.search.query.query import SearchQuery
from placement.search.solver.problem import Candidate

#: The budget of a search is for all requests of a call, and for each of them there is so much more.
_OPERATIONS_PER_REQUEST = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class PickRequest:
    """What one consumer needs."""

    query: SearchQuery
    #: How many candidates, each of another tree.
    copies: int = 1
    #: What the consumer gives up when it gets its place, by provider id and class id: free for it, and for no other.
    own: Mapping[tuple[int, int], int] = field(default_factory=dict)
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
        within: Collection[int] | None = None,
        join: bool = False,
        seed: int | None = None,
    ) -> None:
        """Begin without picks.

        Args:
            strategy: None: spread.
            settings: Bounds of the search.
            avoid: Roots of trees that nobody is placed in.
            within: Roots of the only trees; None: all.
            join: Whether all requests of a call are placed in one tree.
            seed: Makes picks repeatable.
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
        self._with_any, self._with_listed = set(avoid), set(avoid)
        self.cut_short: set[int] = set()

    def pick(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return a place for each request; None if nothing fits beside what was picked before.

        Equal requests are placed together, in the order of the first of each.
        """
        self.cut_short = set()
        picks: list[Pick | None] = [None] * len(requests)
        spare = self._settings.operations
        for positions in [range(len(requests))] if self._join else _alike(requests):
            own_share = _OPERATIONS_PER_REQUEST * len(positions)
            budget = Budget(spare + own_share, self._settings.memory)
            try:
                if self._join:
                    self._place_joined(requests, picks, budget)
                else:
                    self._place_alike(requests, positions, picks, budget)
            except Exhausted:
                budget.fall_short("operations")
            spare = min(spare, max(budget.operations, 0))
            if budget.shortage:
                self.cut_short.update(position for position in positions if picks[position] is None)
        return picks

    def _place_alike(
        self, requests: Sequence[PickRequest], positions: Sequence[int], picks: list[Pick | None], budget: Budget
    ) -> None:
        """Place requests with equal queries."""
        number = sum(requests[position].copies for position in positions)
        places = self._places(requests[positions[0]], number, budget)
        for position in positions:
            request = requests[position]
            choices = places.pick(request.copies, request.dry)
            if choices is not None:
                picks[position] = self._picked(request, choices)

    def _place_joined(self, requests: Sequence[PickRequest], picks: list[Pick | None], budget: Budget) -> None:
        """Place all requests in one tree, or none."""
        apart = len(requests) > 1 and any(request.listed for request in requests)
        if apart or any(request.copies > 1 for request in requests) or not requests:
            return
        known: dict[Hashable, Places] = {}
        places = []
        for request in requests:
            key = _key(request)
            if key not in known:
                known[key] = self._places(request, 1, budget)
            places.append(known[key])
        for position, choice in enumerate(pick_joined(places, self._overlay, budget) or ()):
            picks[position] = self._picked(requests[position], [choice])
            if requests[position].dry:
                self._overlay.take(choice.candidate, -1)

    def _places(self, request: PickRequest, number: int, budget: Budget) -> Places:
        area = Area(self._within, self._with_any if request.listed else self._with_listed)
        seed = self._random.getrandbits(32)
        own = _own(request, self._snapshot)
        return Places(request.query, own, self._overlay, area, self._strategy, self._tally, number, budget, seed)

    def _picked(self, request: PickRequest, choices: list[TreeCandidate]) -> Pick:
        """Remember and return the place of a consumer."""
        pick = Pick(tuple([choice.candidate for choice in choices]), tuple([choice.root for choice in choices]))
        if not request.dry:
            self._with_any.update(pick.roots)
            if request.listed:
                self._with_listed.update(pick.roots)
        return pick


def _own(request: PickRequest, snapshot: Snapshot) -> Own:
    """Return what the consumer gives up, by slot and resource class."""
    own = {}
    for (provider_id, class_id), amount in request.own.items():
        slot, name = snapshot.by_id.get(provider_id), snapshot.class_names.get(class_id)
        if slot is not None and name is not None and class_id in snapshot.provider(slot).classes:
            own[slot, name] = amount
    return own


def _alike(requests: Sequence[PickRequest]) -> Iterable[Sequence[int]]:
    """Return the positions of requests that can be placed together, in the order of the first of each."""
    alike: dict[Hashable, list[int]] = {}
    for position, request in enumerate(requests):
        alike.setdefault(_key(request), []).append(position)
    return alike.values()


def _key(request: PickRequest) -> Hashable:
    """Return what is equal for requests whose places are found together."""
    query = request.query
    groups = tuple(
        [
            (group.suffix, frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree)
            for group in query.groups
        ]
    )
    rules = query.isolate, query.same_subtrees, query.root_traits, query.nested
    return groups, rules, request.listed, frozenset(request.own.items())
