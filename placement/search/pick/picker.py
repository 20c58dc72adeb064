"""The entry to picking: requests of different queries, one after the other, and the rules between their consumers."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.index.snapshot import SHARES, Snapshot
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
        occupied: Collection[int] = (),
        within: Collection[int] | None = None,
        join: bool = False,
        seed: int | None = None,
    ) -> None:
        """Begin without picks.

        Args:
            strategy: None: spread.
            settings: Bounds of the search.
            avoid: Roots of trees that nobody is placed in.
            occupied: Roots of trees that no listed consumer is placed in: others of the call have places there.
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
        self._with_any, self._with_listed = {*avoid, *occupied}, set(avoid)
        self.cut_short: set[int] = set()

    def pick(self, requests: Sequence[PickRequest]) -> list[Pick | None]:
        """Return a place for each request; None if nothing fits beside what was picked before.

        Equal requests are placed together, in the order of the first of each.
        """
        self.cut_short = set()
        picks: list[Pick | None] = [None] * len(requests)
        spare = self._settings.operations
        for positions in [list(range(len(requests)))] if self._join else _alike(requests):
            alike = [requests[position] for position in positions]
            budget = Budget(spare + _OPERATIONS_PER_REQUEST * len(alike), self._settings.memory)
            place = self._placed_joined if self._join else self._placed
            with contextlib.suppress(Exhausted):
                for position, pick in zip(positions, place(alike, budget), strict=False):
                    picks[position] = pick
            spare = min(spare, max(budget.operations, 0))
            if budget.shortage:
                self.cut_short.update(position for position in positions if picks[position] is None)
        return picks

    def _placed(self, alike: Sequence[PickRequest], budget: Budget) -> Iterator[Pick | None]:
        """Place requests with equal queries, and yield the place of each."""
        self._overlay.rebase()
        places = self._places(alike, budget)
        for request in alike:
            choices = places(request).pick(request.copies, request.dry)
            yield None if choices is None else self._picked(request, choices)

    def _placed_joined(self, requests: Sequence[PickRequest], budget: Budget) -> Iterator[Pick]:
        """Place all requests in one tree, and yield the place of each, or place none."""
        apart = len(requests) > 1 and any(request.listed for request in requests)
        if apart or any(request.copies > 1 for request in requests):
            return
        self._overlay.rebase()
        places = {id(query): self._places([request], budget) for request in requests for query in [request.query]}
        each = [places[id(request.query)](request) for request in requests]
        choices = pick_joined(each, self._overlay, budget) if each else None
        for request, choice in zip(requests, choices or (), strict=False):
            if request.dry:
                self._overlay.take(choice.candidate, -1)
            yield self._picked(request, [choice])

    def _places(self, alike: Sequence[PickRequest], budget: Budget) -> Callable[[PickRequest], Places]:
        """Return a function that returns the places for one of the requests; their queries are equal."""
        known: dict[Hashable, Places] = {}
        number = sum(request.copies for request in alike)

        def places(request: PickRequest) -> Places:
            area = Area(self._within, self._with_any if request.listed else self._with_listed)
            own = self._own(request, area)
            key = request.listed, frozenset(own.items())
            if key not in known:
                seed = self._random.getrandbits(32)
                tallied = self._strategy, self._tally
                known[key] = Places(alike[0].query, own, self._overlay, area, *tallied, number, budget, seed)
            return known[key]

        return places

    def _own(self, request: PickRequest, area: Area) -> Own:
        """Return what the consumer gives up where it could be picked, by slot and resource class."""
        own = {}
        for (provider_id, class_id), amount in request.own.items():
            slot, name = self._snapshot.by_id.get(provider_id), self._snapshot.class_names.get(class_id)
            if slot is None or name is None:
                continue
            provider = self._snapshot.provider(slot)
            if class_id in provider.classes and (SHARES in provider.traits or area.has(provider.root)):
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
    keys: dict[int, Hashable] = {}
    alike: dict[Hashable, list[int]] = {}
    for position, request in enumerate(requests):
        query = request.query
        if id(query) not in keys:
            keys[id(query)] = _key(query)
        alike.setdefault(keys[id(query)], []).append(position)
    return alike.values()


def _key(query: SearchQuery) -> Hashable:
    """Return what equal queries have in common, except for their limit."""
    groups = [
        (group.suffix, frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree)
        for group in query.groups
    ]
    return tuple(groups), query.isolate, query.same_subtrees, query.root_traits, query.nested
