"""All providers as trees: which trees a client asks for, in which order, and a page of them (docs: v1-overview).

A page has whole trees.  It begins after a *mark*, which holds what the order compares (keyset pagination): trees that
come and go between two pages change nothing about the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index.column import Column
from placement.index.slots import Slots, SlotSet
from placement.index.snapshot import SHARES, Snapshot

#: Capacities of absurd ratios are compared as this one, up to which every integer is exact as a float.
_MOST = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFilter:
    """Which trees: those with a provider that meets every condition; None is no condition."""

    #: The slot of the root of the only tree.
    root: int | None = None
    #: The provider has inventory of the class.
    resource_class: str | None = None
    aggregate: str | None = None
    trait: str | None = None
    #: More is used than the capacity, of the class above if one is given.
    over_committed: bool = False


class Amount(StrEnum):
    """What trees are sorted by: a sum over the inventories of one class in the tree."""

    FREE = "free"
    USED = "used"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """The greatest sum first, or the least, and equal ones by id; trees without the class are left out."""

    amount: Amount
    resource_class: str
    least_first: bool = False


class Mark(NamedTuple):
    """The place of a tree in its order."""

    #: The sum that it is sorted by; None in the order of ids.
    sum: int | None
    #: The id of the root.
    id: int


class TreePage(NamedTuple):
    """Some trees, by the slots of their roots, and the mark of the last one if more follow."""

    roots: list[int]
    last: Mark | None


def find_trees(
    snapshot: Snapshot,
    wanted: TreeFilter,
    order: TreeOrder | None = None,
    limit: int | None = None,
    after: Mark | None = None,
) -> TreePage:
    """Return a page of the trees that the filter leaves, in the order of the ids of their roots or as ``order`` states.

    Args:
        snapshot: Has the trees.
        wanted: Which of them.
        order: Another order.
        limit: How many providers the trees of the page may have together; a greater tree is alone on its page.  None
            is no limit.
        after: The mark of the last tree of the page before; it has a sum if there is an order.
    """
    roots = _roots(snapshot, wanted).slots()
    sums, sign = None, 1 if order is not None and order.least_first else -1
    if order is not None:
        sums, having = _sums(snapshot, order)
        roots = roots[having[roots]]
    ids = np.array([snapshot.provider(slot).id for slot in roots.tolist()], dtype=np.int64)
    keys = np.zeros(len(roots)) if sums is None else sums[roots] * sign
    sequence = np.lexsort((ids, keys))
    roots, ids, keys = roots[sequence], ids[sequence], keys[sequence]
    if after is not None:
        key = 0.0 if after.sum is None else float(sign * after.sum)
        following = (keys > key) | ((keys == key) & (ids > after.id))
        roots, ids, keys = roots[following], ids[following], keys[following]
    count = len(roots) if limit is None else _fitting(snapshot, roots, limit)
    if count == len(roots):
        return TreePage(roots.tolist(), None)
    last = Mark(None if order is None else sign * int(keys[count - 1]), int(ids[count - 1]))
    return TreePage(roots[:count].tolist(), last)


def depth_first(snapshot: Snapshot, top: int) -> Iterator[int]:
    """Yield a provider and all below it, each before its children; siblings are in the order of their ids."""
    members = snapshot.forest.tree(snapshot.provider(top).root)
    if len(members) == 1:
        yield top
        return
    children: dict[int, list[int]] = {}
    for slot in sorted(members, key=lambda slot: snapshot.provider(slot).id, reverse=True):
        children.setdefault(snapshot.provider(slot).parent, []).append(slot)
    waiting = [top]
    while waiting:
        slot = waiting.pop()
        yield slot
        waiting += children.get(slot, ())


def shared_by(snapshot: Snapshot, root: int) -> list[int]:
    """Return the sharing providers that serve the tree and are not in it (docs: api-sharing)."""
    members = snapshot.forest.tree(root)
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in members))
    sharing = snapshot.with_trait(SHARES) & _in_one_of(snapshot, aggregates)
    return _listed(sharing - SlotSet.sparse(np.array(members, dtype=np.intp)))


def shares_with(snapshot: Snapshot, root: int) -> list[int]:
    """Return the roots of the other trees that sharing providers of the tree serve."""
    sharing = [slot for slot in snapshot.forest.tree(root) if SHARES in snapshot.provider(slot).traits]
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in sharing))
    roots = snapshot.forest.roots_of(_in_one_of(snapshot, aggregates))
    return _listed(roots - SlotSet.sparse(np.array([root], dtype=np.intp)))


def _listed(members: SlotSet) -> list[int]:
    slots: list[int] = members.slots().tolist()
    return slots


def _in_one_of(snapshot: Snapshot, aggregates: Iterable[str]) -> SlotSet:
    return _union(snapshot, (snapshot.in_aggregate(uuid).slots() for uuid in aggregates))


def _roots(snapshot: Snapshot, wanted: TreeFilter) -> SlotSet:
    chosen = SlotSet.dense(snapshot.forest.alive)
    if wanted.trait is not None:
        chosen &= snapshot.with_trait(wanted.trait)
    if wanted.aggregate is not None:
        chosen &= snapshot.in_aggregate(wanted.aggregate)
    if wanted.over_committed:
        chosen &= _union(snapshot, (column.over_committed() for column in _columns(snapshot, wanted.resource_class)))
    elif wanted.resource_class is not None:
        having = (column.inventories().slots for column in _columns(snapshot, wanted.resource_class))
        chosen &= _union(snapshot, having)
    roots = snapshot.forest.roots_of(chosen)
    return roots if wanted.root is None else roots & SlotSet.sparse(np.array([wanted.root], dtype=np.intp))


def _columns(snapshot: Snapshot, resource_class: str | None) -> list[Column]:
    if resource_class is None:
        return [*snapshot.columns.values()]
    column = snapshot.column(resource_class)
    return [] if column is None else [column]


def _union(snapshot: Snapshot, several: Iterable[Slots]) -> SlotSet:
    mask = np.zeros(snapshot.size, dtype=np.bool_)
    for slots in several:
        mask[slots] = True
    return SlotSet.dense(mask)


def _sums(snapshot: Snapshot, order: TreeOrder) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the sum of each tree by the slot of its root, and whether it has the class."""
    sums, having = np.zeros(snapshot.size), np.zeros(snapshot.size, dtype=np.bool_)
    for column in _columns(snapshot, order.resource_class):
        held = column.inventories()
        capacity = np.clip(np.trunc(held.capacity), 0, _MOST)
        amounts = {
            Amount.FREE: np.clip(capacity - held.used, 0, None),
            Amount.USED: held.used,
            Amount.CAPACITY: capacity,
        }
        roots = snapshot.forest.roots(held.slots)
        np.add.at(sums, roots, amounts[order.amount])
        having[roots] = True
    return sums, having


def _fitting(snapshot: Snapshot, roots: Slots, limit: int) -> int:
    """Return how many of the trees have ``limit`` providers together, but at least one of them."""
    sizes = np.array([len(snapshot.forest.tree(root)) for root in roots.tolist()], dtype=np.int64)
    return min(len(roots), max(1, int(np.searchsorted(np.cumsum(sizes), limit, side="right"))))
