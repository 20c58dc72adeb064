"""From what narrowing left to the problem of each tree, one by one."""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace

import numpy as np

from placement.index.slots import Slots
from placement.index.snapshot import SHARES, Snapshot
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Field, Narrowed
from placement.search.solver.problem import ProviderFacts, Requirements, TreeProblem

#: Trees are looked at in pieces, so that a search that ends early has not begun with all of them.
_PIECE = 256
#: How many aggregates are told apart at once, one bit each, below the number of what was told apart before.
_BITS = 32
#: Looking at so many providers is one operation: in a list of numbers, and in an array of them.
_LISTED, _AT_ONCE = 10, 200
#: Bytes of a number in a list.
_NUMBER = 8


def problems(narrowed: Narrowed, order: random.Random | None, budget: Budget) -> Iterator[TreeProblem]:
    """The problem of each tree, as late as it is asked for; trees and options in random order, if one is given.

    Raises Exhausted.
    """
    if not narrowed.fields:
        return
    roots = _distinct(narrowed, budget)
    if order is not None:
        roots = roots[np.random.default_rng(order.getrandbits(64)).permutation(len(roots))]
    trees = _Trees(narrowed, order, budget)
    for start in range(0, len(roots), _PIECE):
        piece = roots[start : start + _PIECE].tolist()
        budget.spend(len(piece) * (1 + len(narrowed.fields)))
        for root in piece:
            problem = trees.problem(root)
            if problem is not None:
                yield problem


def _distinct(narrowed: Narrowed, budget: Budget) -> Slots:
    """The roots, but only one of the trees that have nothing of their own to give and the same others share with.

    A thousand hosts without disks that share one pool all come to the same candidate for a disk.
    """
    roots, fields = narrowed.roots.mask(), set(narrowed.fields)
    visiting = {int(slot) for field in fields for slot in field.visiting.slots()}
    if not visiting:
        return np.flatnonzero(roots)
    budget.spend(sum(len(field.visiting) for field in fields))
    empty = roots.copy()
    for field in fields:
        empty &= ~field.own.roots()
    chosen = np.flatnonzero(empty)
    if len(chosen) < 2:
        return np.flatnonzero(roots)
    aggregates = frozenset().union(*(narrowed.snapshot.provider(slot).aggregates for slot in visiting))
    budget.spend(len(aggregates) * (1 + len(chosen) // _AT_ONCE))
    return np.sort(
        np.concatenate([np.flatnonzero(roots & ~empty), _one_of_each(narrowed.snapshot, chosen, aggregates)])
    )


def _one_of_each(snapshot: Snapshot, roots: Slots, aggregates: Collection[str]) -> Slots:
    """One of those roots whose trees have members in the same of the aggregates."""
    kinds = np.zeros(snapshot.size, dtype=np.int64)
    names = sorted(aggregates)
    for start in range(0, len(names), _BITS):
        kinds <<= _BITS
        for bit, name in enumerate(names[start : start + _BITS]):
            kinds[snapshot.forest.roots(snapshot.aggregates[name].slots())] |= 1 << bit
        kinds[roots] = np.unique(kinds[roots], return_inverse=True)[1]
    return roots[np.unique(kinds[roots], return_index=True)[1]]


class _Trees:
    def __init__(self, narrowed: Narrowed, order: random.Random | None, budget: Budget) -> None:
        self._budget = budget
        self._requirements = narrowed.requirements
        #: Where there is only one provider, it has the traits that the tree was found to have.
        self._requirements_for_one = replace(narrowed.requirements, required=())
        self._snapshot = narrowed.snapshot
        self._order = order
        self._fields = list(dict.fromkeys(narrowed.fields))
        self._places = [self._fields.index(field) for field in narrowed.fields]
        self._own: list[bytes | None] = [None] * len(self._fields)
        self._visitors = [_by_aggregate(field, self._snapshot, budget) for field in self._fields]
        self._sharing = SHARES in self._snapshot.traits
        #: By field, and by the aggregates that a tree is in.
        self._reaching: dict[tuple[int, frozenset[str]], tuple[int, ...]] = {}
        self._seen: set[Hashable] = set()
        self._facts = _Facts(self._snapshot, narrowed.requirements)

    def problem(self, root: int) -> TreeProblem | None:
        """The problem of one tree; None if all its candidates are those of an earlier tree."""
        tree = self._snapshot.forest.tree(root)
        if len(tree) == 1 and not self._sharing:
            # Its only provider serves every pick, or the tree would not be here.
            return TreeProblem(self._requirements_for_one, ((root,),) * len(self._places), self._facts, tree=root)
        if len(tree) > _LISTED:
            self._budget.spend(len(self._fields) * len(tree) // _LISTED)
        aggregates = self._aggregates(tree) if self._sharing else frozenset()
        options = [self._options(number, root, tree, aggregates) for number in range(len(self._fields))]
        repeats = repeated = False
        if self._sharing:
            shared = tuple(tuple(slot for slot in places if self._facts[slot].shares) for places in options)
            repeats = all(shared)
            repeated = repeats and shared in self._seen
            if repeats and not repeated:
                self._budget.hold(sum(map(len, shared)) * _NUMBER)
                self._seen.add(shared)
            if repeated and all(map(_same_length, options, shared)):
                return None
        if self._order is not None:
            options = [tuple(self._order.sample(places, len(places))) for places in options]
        chosen = tuple([options[place] for place in self._places])
        return TreeProblem(self._requirements, chosen, self._facts, repeats, repeated, root)

    def _aggregates(self, tree: tuple[int, ...]) -> frozenset[str]:
        """Those that any provider of the tree is in."""
        if len(tree) == 1:
            return self._snapshot.provider(tree[0]).aggregates
        return frozenset().union(*(self._snapshot.provider(slot).aggregates for slot in tree))

    def _options(self, number: int, root: int, tree: tuple[int, ...], aggregates: frozenset[str]) -> tuple[int, ...]:
        """Who can serve a pick in the tree: its own members first, then those who share with it."""
        own = self._own[number]
        if own is None:
            self._budget.hold(self._snapshot.size)
            own = self._own[number] = self._fields[number].own.mask().tobytes()
        members = tuple([slot for slot in tree if own[slot]])
        if not self._visitors[number]:
            return members
        visitors = self._reach(number, aggregates)
        if len(visitors) > _LISTED:
            self._budget.spend(len(visitors) // _LISTED)
        if any(SHARES in self._snapshot.provider(slot).traits for slot in tree):
            visitors = tuple(slot for slot in visitors if self._snapshot.provider(slot).root != root)
        return members + visitors

    def _reach(self, number: int, aggregates: frozenset[str]) -> tuple[int, ...]:
        """Who visits the trees that are in these aggregates, members of the tree perhaps among them."""
        key = number, aggregates
        if key not in self._reaching:
            visitors = [self._visitors[number].get(one, []) for one in aggregates]
            self._budget.spend(len(aggregates) + sum(map(len, visitors)) // _LISTED)
            self._reaching[key] = tuple(sorted(set().union(*visitors)))
            self._budget.hold(len(self._reaching[key]) * _NUMBER)
        return self._reaching[key]


def _same_length(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return len(some) == len(others)


def _by_aggregate(field: Field, snapshot: Snapshot, budget: Budget) -> dict[str, list[int]]:
    """Those who visit other trees, by the aggregates that lead them there."""
    visitors: dict[str, list[int]] = {}
    for slot in field.visiting.slots().tolist():
        budget.spend(1 + len(snapshot.provider(slot).aggregates) // _LISTED)
        for aggregate in snapshot.provider(slot).aggregates:
            visitors.setdefault(aggregate, []).append(slot)
    return visitors


class _Line:
    """A provider, its parent, and so on to the root, found on demand: all lines of a deep tree, written out,
    would take the square of its depth."""

    __slots__ = ("_slot", "_snapshot")

    def __init__(self, snapshot: Snapshot, slot: int) -> None:
        self._snapshot = snapshot
        self._slot = slot

    def __iter__(self) -> Iterator[int]:
        slot = self._slot
        while slot >= 0:
            yield slot
            slot = self._snapshot.provider(slot).parent


class _Facts(dict[int, ProviderFacts]):
    """The facts of providers, made on demand; only those that the requirements depend on."""

    def __init__(self, snapshot: Snapshot, requirements: Requirements) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._lines = bool(requirements.same_subtrees) or not requirements.nested
        columns = [(name, snapshot.column(name)) for name in requirements.summed_classes]
        self._most = [(name, column.most(snapshot.size)) for name, column in columns if column is not None]

    def __missing__(self, slot: int) -> ProviderFacts:
        provider = self._snapshot.provider(slot)
        traits = provider.traits
        facts = self[slot] = ProviderFacts(
            ancestry=_Line(self._snapshot, slot) if self._lines else (slot,),
            root=provider.root,
            traits=traits,
            shares=SHARES in traits,
            available={name: most.item(slot) for name, most in self._most},
        )
        return facts
