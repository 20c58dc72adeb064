"""Conversion of narrowed sets of providers to the problems of single trees.

Trees that could only repeat candidates of other trees are left out.  They occur where providers share: a candidate that
consists only of sharing providers is the same in every tree with which they share.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.index.slots import Slots, SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Eligible, Narrowed
from placement.search.refusals import Refusal, Refusals
from placement.search.solver.constraints import Isolation, NotOnlyShared, SummedAmounts
from placement.search.solver.problem import ProviderFacts, Requirements, TreeProblem

#: Slots whose trees are charged to the budget at once, before their problems are built: the first chunk, and the
#: largest.
_CHUNK, _LARGEST_CHUNK = 256, 16_384
#: Aggregates per comparison, one bit each, in the low half of 64 bits.
_BITS = 32
#: Providers per operation, in a list and in an array.
_PER_LIST_OPERATION, _PER_ARRAY_OPERATION = 10, 200
#: Bytes of a number in a list.
_NUMBER = 8


def tree_problems(
    narrowed: Narrowed, order: random.Random | None, budget: Budget, refusals: Refusals, *, repeated: bool = False
) -> Iterator[TreeProblem]:
    """Yield the problem of each tree.

    Args:
        order: The source of a random order of the trees, and of the providers of each demand; None for the order of
            their slots.
        refusals: The record of the trees that are left out.
        repeated: Whether to include trees that could only repeat candidates of other trees.

    Raises:
        Exhausted: The budget is exhausted.
    """
    if not narrowed.eligible:
        return
    some_share = SHARES in narrowed.snapshot.traits and not repeated
    roots = _distinct_roots(narrowed, budget, refusals) if some_share else narrowed.roots
    problems = TreeProblems(narrowed, order, budget)
    for chunk in _chunks(roots, narrowed.snapshot.size, order):
        possible = problems.possible(chunk, refusals)
        budget.spend(len(possible) * (1 + len(narrowed.eligible)))
        for root in possible.tolist():
            problem = problems.complete_problem(root) if repeated else problems.problem_of(root)
            if problem is None:
                refusals.record_refusal(root, NotOnlyShared.name)
            else:
                yield problem


def _chunks(roots: SlotSet, size: int, order: random.Random | None) -> Iterator[Slots]:
    """Yield the roots in growing chunks; most searches find enough candidates in the first one.

    Args:
        size: The number of slots of the snapshot.
        order: As in ``tree_problems``.
    """
    if order is not None:
        generator, slots = np.random.default_rng(order.getrandbits(64)), roots.slots()
        drawn = generator.choice(len(slots), min(len(slots), _CHUNK), replace=False)
        yield slots[drawn]
        yield from (chunk for _, chunk in _slices(generator.permutation(np.delete(slots, drawn))))
    elif roots.is_sparse:
        yield from (chunk for _, chunk in _slices(roots.slots()))
    else:
        yield from (np.flatnonzero(chunk) + start for start, chunk in _slices(roots.mask(size)))


def _slices(array: npt.NDArray[Any]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield the array in slices of growing length, each with its start."""
    start, length = 0, _CHUNK
    while start < len(array):
        yield start, array[start : start + length]
        start, length = start + length, min(length * 2, _LARGEST_CHUNK)


def _distinct_roots(narrowed: Narrowed, budget: Budget, refusals: Refusals) -> SlotSet:
    """Return the roots of the trees to be combined, without trees that would only repeat candidates.

    Among the trees that contain no eligible provider and reach the same sharing providers, only one is combined.  For
    example, a thousand hosts without disks that use one shared pool all have the same candidate for a disk.
    """
    roots, snapshot = narrowed.roots, narrowed.snapshot
    eligible = set(narrowed.eligible)
    sharing = {slot for demand in eligible for slot in demand.sharing.slots().tolist()}
    if not sharing:
        return roots
    budget.spend(sum(demand.sharing.count for demand in eligible))
    empty = roots
    for demand in eligible:
        empty -= snapshot.forest.roots_of(demand.local)
    if empty.count < 2:
        return roots
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in sharing))
    budget.spend(len(aggregates) * (1 + empty.count // _PER_ARRAY_OPERATION))
    representatives = _representatives(snapshot, empty.slots(), aggregates)
    distinct = np.sort(np.concatenate([(roots - empty).slots(), representatives]))
    remaining = SlotSet.from_slots(distinct, snapshot.size)
    refusals.narrowing.append(Refusal(NotOnlyShared.name, None, roots, remaining, snapshot.forest))
    return remaining


def _representatives(snapshot: Snapshot, roots: Slots, aggregates: Collection[str]) -> Slots:
    """Return one root of each equivalence class: trees with members in the same of these aggregates are equivalent.

    The number of a class is refined by 32 aggregates at a time: it is shifted to the high half, combined with one bit
    for each of them, and renumbered.
    """
    classes = np.zeros(snapshot.size, dtype=np.int64)
    names = sorted(aggregates)
    for start in range(0, len(names), _BITS):
        classes <<= _BITS
        for bit, name in enumerate(names[start : start + _BITS]):
            classes[snapshot.forest.roots(snapshot.in_aggregate(name).slots())] |= 1 << bit
        classes[roots] = np.unique(classes[roots], return_inverse=True)[1]
    return roots[np.unique(classes[roots], return_index=True)[1]]


class TreeProblems:
    """A factory of the problems of one search, which share common data."""

    def __init__(self, narrowed: Narrowed, order: random.Random | None, budget: Budget) -> None:
        self._budget = budget
        self._order = order
        self._snapshot = narrowed.snapshot
        self._requirements = Requirements.from_query(narrowed.query)
        #: The requirements of trees of one provider: narrowing has checked the traits of the unsuffixed group.
        self._requirements_of_one = replace(self._requirements, required=())
        self._facts = _Facts(self._snapshot, self._requirements)
        #: Distinct sets of eligible providers; demands refer to them by position.
        self._eligible = list(dict.fromkeys(narrowed.eligible))
        self._positions = [self._eligible.index(eligible) for eligible in narrowed.eligible]
        #: Masks of the local providers, by position: one byte per slot, computed at the first use.
        self._local: list[bytes | None] = [None] * len(self._eligible)
        #: The sharing providers of each aggregate, by position.
        self._sharing = [_by_aggregate(eligible, self._snapshot, budget) for eligible in self._eligible]
        self._some_share = SHARES in self._snapshot.traits
        #: The providers that share in one of some aggregates, by position and by these aggregates.
        self._sharing_with: dict[tuple[int, frozenset[str]], tuple[int, ...]] = {}
        #: The sharing providers by position, of each tree yielded so far in which they could supply every demand.
        self._seen: set[Hashable] = set()

    def possible(self, roots: Slots, refusals: Refusals) -> Slots:
        """Return the roots, without trees of one provider that cannot supply all demands together.

        Arrays decide this for thousands of hosts without children in one operation.
        """
        requirements = self._requirements
        isolated = requirements.isolate and requirements.suffixed_count > 1
        if self._some_share or not (isolated or requirements.summed_classes):
            return roots
        self._budget.spend(1 + len(roots) // _PER_ARRAY_OPERATION)
        lone = self._snapshot.forest.is_lone[roots]
        if isolated:
            refusals.record_refusals(roots[lone], Isolation.name)
            return roots[~lone]
        for name, available in self._facts.available:
            short = lone & (available[roots] < requirements.total[name])
            if short.any():
                refusals.record_refusals(roots[short], SummedAmounts.name_for(name))
                roots, lone = roots[~short], lone[~short]
        return roots

    def problem_of(self, root: int) -> TreeProblem | None:
        """Return the problem of one tree; None if an earlier tree yields all its candidates."""
        if (problem := self._of_one(root)) is not None:
            return problem
        domains = self._domains(root)
        may_repeat = repeats = False
        if self._some_share:
            sharing = tuple(tuple(slot for slot in domain if self._facts[slot].shares) for domain in domains)
            may_repeat = all(sharing)
            repeats = may_repeat and sharing in self._seen
            if may_repeat and not repeats:
                self._budget.hold(sum(map(len, sharing)) * _NUMBER)
                self._seen.add(sharing)
            if repeats and all(len(domain) == len(shared) for domain, shared in zip(domains, sharing, strict=True)):
                return None
        if self._order is not None:
            domains = [tuple(self._order.sample(domain, len(domain))) for domain in domains]
        chosen = tuple([domains[position] for position in self._positions])
        return TreeProblem(self._requirements, chosen, self._facts, may_repeat, repeats, root)

    def complete_problem(self, root: int) -> TreeProblem:
        """Return the problem of one tree, including candidates that other trees also yield."""
        if (problem := self._of_one(root)) is not None:
            return problem
        domains = self._domains(root)
        chosen = tuple([domains[position] for position in self._positions])
        return TreeProblem(self._requirements, chosen, self._facts, tree=root)

    def _of_one(self, root: int) -> TreeProblem | None:
        """Return the problem of a tree of one provider if no provider shares; otherwise None."""
        if self._some_share or len(self._snapshot.forest.tree(root)) > 1:
            return None
        # The only provider can supply each demand; otherwise narrowing would have left the tree out.
        domains = ((root,),) * len(self._positions)
        return TreeProblem(self._requirements_of_one, domains, self._facts, tree=root)

    def _domains(self, root: int) -> list[tuple[int, ...]]:
        """Return the providers that can supply the demands in the tree, by position."""
        tree = self._snapshot.forest.tree(root)
        if len(tree) > _PER_LIST_OPERATION:
            self._budget.spend(len(self._eligible) * len(tree) // _PER_LIST_OPERATION)
        aggregates = self._aggregates_of(tree) if self._some_share else frozenset()
        return [self._domain(position, root, tree, aggregates) for position in range(len(self._eligible))]

    def _aggregates_of(self, tree: tuple[int, ...]) -> frozenset[str]:
        """Return the aggregates of all providers of the tree."""
        if len(tree) == 1:
            return self._snapshot.provider(tree[0]).aggregates
        return frozenset().union(*(self._snapshot.provider(slot).aggregates for slot in tree))

    def _domain(self, position: int, root: int, tree: tuple[int, ...], aggregates: frozenset[str]) -> tuple[int, ...]:
        """Return the providers that can supply a demand in the tree: its own first, then sharing providers."""
        local = self._local[position]
        if local is None:
            self._budget.hold(self._snapshot.size)
            local = self._local[position] = self._eligible[position].local.mask(self._snapshot.size).tobytes()
        members = tuple([slot for slot in tree if local[slot]])
        if not self._sharing[position]:
            return members
        sharing = self._sharing_providers(position, aggregates)
        if len(sharing) > _PER_LIST_OPERATION:
            self._budget.spend(len(sharing) // _PER_LIST_OPERATION)
        if any(SHARES in self._snapshot.provider(slot).traits for slot in tree):
            sharing = tuple(slot for slot in sharing if self._snapshot.provider(slot).root != root)
        return members + sharing

    def _sharing_providers(self, position: int, aggregates: frozenset[str]) -> tuple[int, ...]:
        """Return the providers that share with a tree in these aggregates; they may belong to the tree."""
        key = position, aggregates
        if key not in self._sharing_with:
            sharing = [self._sharing[position].get(aggregate, []) for aggregate in aggregates]
            self._budget.spend(len(aggregates) + sum(map(len, sharing)) // _PER_LIST_OPERATION)
            self._sharing_with[key] = tuple(sorted(set().union(*sharing)))
            self._budget.hold(len(self._sharing_with[key]) * _NUMBER)
        return self._sharing_with[key]


def _by_aggregate(eligible: Eligible, snapshot: Snapshot, budget: Budget) -> dict[str, list[int]]:
    """Return the sharing providers by aggregate."""
    sharing: dict[str, list[int]] = {}
    for slot in eligible.sharing.slots().tolist():
        aggregates = snapshot.provider(slot).aggregates
        budget.spend(1 + len(aggregates) // _PER_LIST_OPERATION)
        for aggregate in aggregates:
            sharing.setdefault(aggregate, []).append(slot)
    return sharing


class _Ancestry:
    """An iterable of a provider and its ancestors, up to the root.

    Tuples would take memory quadratic in the depth of the tree.
    """

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
    """The facts of providers by slot, computed on demand, and limited to the facts that the requirements depend on."""

    def __init__(self, snapshot: Snapshot, requirements: Requirements) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._with_ancestry = bool(requirements.same_subtrees) or not requirements.nested
        columns = [(name, snapshot.column(name)) for name in requirements.summed_classes]
        self.available = [(name, column.available(snapshot.size)) for name, column in columns if column is not None]

    def __missing__(self, slot: int) -> ProviderFacts:
        provider = self._snapshot.provider(slot)
        traits = provider.traits
        facts = self[slot] = ProviderFacts(
            ancestry=_Ancestry(self._snapshot, slot) if self._with_ancestry else (slot,),
            root=provider.root,
            traits=traits,
            shares=SHARES in traits,
            available={name: available.item(slot) for name, available in self.available},
        )
        return facts
