"""Trees of providers: filtering, sorting and pagination (docs: v1-overview).

A page contains whole trees.  It begins after a *mark*, which contains the sort key of a tree (keyset pagination), so
trees that are created or deleted between two pages do not affect other trees.
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

#: Maximum capacity in a sort key: the limit of exact integers in a float.  Extreme allocation ratios exceed it.
_MAX_CAPACITY = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFilter:
    """Conditions that one provider of a tree must meet; None means no condition."""

    #: The slot of the root of the tree.
    root: int | None = None
    #: The class of an inventory of the provider.
    resource_class: str | None = None
    aggregate: str | None = None
    trait: str | None = None
    #: Whether the provider must be over-committed, in ``resource_class`` if given.
    over_committed: bool = False


class Amount(StrEnum):
    """The amount to sort trees by, a sum over the inventories of one class in the tree."""

    FREE = "free"
    USED = "used"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """An order by sums, the greatest first by default, then by id; trees without the class are left out."""

    amount: Amount
    resource_class: str
    least_first: bool = False


class Mark(NamedTuple):
    """The sort key of a tree."""

    #: The sum to sort by; None in the order of ids.
    sum: int | None
    #: The id of the root.
    id: int


class TreePage(NamedTuple):
    """The root slots of a page of trees, and the mark of the last tree if more follow."""

    roots: list[int]
    last: Mark | None


def find_trees(
    snapshot: Snapshot,
    tree_filter: TreeFilter,
    order: TreeOrder | None = None,
    limit: int | None = None,
    after: Mark | None = None,
) -> TreePage:
    """Return a page of the trees that pass a filter.

    Args:
        snapshot: The snapshot of the trees.
        tree_filter: The filter.
        order: The order; None for the order of the ids of the roots.
        limit: The maximum number of providers on the page; a larger tree gets a page to itself.  None means no limit.
        after: The mark of the last tree on the previous page; it contains a sum if ``order`` is given.
    """
    roots = _roots(snapshot, tree_filter).slots()
    sums, sign = None, 1 if order is not None and order.least_first else -1
    if order is not None:
        sums, has_class = _sums(snapshot, order)
        roots = roots[has_class[roots]]
    ids = snapshot.providers.ids(roots)
    keys = np.zeros(len(roots)) if sums is None else sums[roots] * sign
    sequence = np.lexsort((ids, keys))
    roots, ids, keys = roots[sequence], ids[sequence], keys[sequence]
    if after is not None:
        key = 0.0 if after.sum is None else float(sign * after.sum)
        following = (keys > key) | ((keys == key) & (ids > after.id))
        roots, ids, keys = roots[following], ids[following], keys[following]
    count = len(roots) if limit is None else _count_fitting(snapshot, roots, limit)
    if count == len(roots):
        return TreePage(roots.tolist(), None)
    last = Mark(None if order is None else sign * int(keys[count - 1]), int(ids[count - 1]))
    return TreePage(roots[:count].tolist(), last)


def depth_first(snapshot: Snapshot, top: int) -> Iterator[int]:
    """Yield a provider and all providers below it in pre-order; siblings are in the order of their ids."""
    members = snapshot.forest.tree(snapshot.provider(top).root)
    if len(members) == 1:
        yield top
        return
    children: dict[int, list[int]] = {}
    for slot in sorted(members, key=lambda slot: snapshot.provider(slot).id, reverse=True):
        children.setdefault(snapshot.provider(slot).parent, []).append(slot)
    stack = [top]
    while stack:
        slot = stack.pop()
        yield slot
        stack += children.get(slot, ())


def shared_by(snapshot: Snapshot, root: int) -> list[int]:
    """Return the sharing providers of other trees that supply this tree (docs: api-sharing)."""
    members = snapshot.forest.tree(root)
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in members))
    sharing = snapshot.with_trait(SHARES) & _in_one_of(snapshot, aggregates)
    return _slots(sharing - SlotSet.sparse(np.array(members, dtype=np.intp)))


def shares_with(snapshot: Snapshot, root: int) -> list[int]:
    """Return the roots of the other trees that sharing providers of the tree supply."""
    sharing = [slot for slot in snapshot.forest.tree(root) if SHARES in snapshot.provider(slot).traits]
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in sharing))
    roots = snapshot.forest.roots_of(_in_one_of(snapshot, aggregates))
    return _slots(roots - SlotSet.sparse(np.array([root], dtype=np.intp)))


def _slots(members: SlotSet) -> list[int]:
    slots: list[int] = members.slots().tolist()
    return slots


def _in_one_of(snapshot: Snapshot, aggregates: Iterable[str]) -> SlotSet:
    return _union(snapshot, (snapshot.in_aggregate(uuid).slots() for uuid in aggregates))


def _roots(snapshot: Snapshot, tree_filter: TreeFilter) -> SlotSet:
    matches = SlotSet.dense(snapshot.forest.alive)
    if tree_filter.trait is not None:
        matches &= snapshot.with_trait(tree_filter.trait)
    if tree_filter.aggregate is not None:
        matches &= snapshot.in_aggregate(tree_filter.aggregate)
    if tree_filter.over_committed:
        matches &= _union(
            snapshot, (column.over_committed() for column in _columns(snapshot, tree_filter.resource_class))
        )
    elif tree_filter.resource_class is not None:
        with_class = (column.inventories().slots for column in _columns(snapshot, tree_filter.resource_class))
        matches &= _union(snapshot, with_class)
    roots = snapshot.forest.roots_of(matches)
    return roots if tree_filter.root is None else roots & SlotSet.sparse(np.array([tree_filter.root], dtype=np.intp))


def _columns(snapshot: Snapshot, resource_class: str | None) -> list[Column]:
    if resource_class is None:
        return [*snapshot.columns.values()]
    column = snapshot.column(resource_class)
    return [] if column is None else [column]


def _union(snapshot: Snapshot, arrays: Iterable[Slots]) -> SlotSet:
    mask = np.zeros(snapshot.size, dtype=np.bool_)
    for slots in arrays:
        mask[slots] = True
    return SlotSet.dense(mask)


def _sums(snapshot: Snapshot, order: TreeOrder) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return the sum of each tree by the slot of its root, and whether the tree has the class."""
    sums, has_class = np.zeros(snapshot.size), np.zeros(snapshot.size, dtype=np.bool_)
    for column in _columns(snapshot, order.resource_class):
        inventories = column.inventories()
        capacity = np.clip(np.trunc(inventories.capacity), 0, _MAX_CAPACITY)
        amounts = {
            Amount.FREE: np.clip(capacity - inventories.used, 0, None),
            Amount.USED: inventories.used,
            Amount.CAPACITY: capacity,
        }
        roots = snapshot.forest.roots(inventories.slots)
        np.add.at(sums, roots, amounts[order.amount])
        has_class[roots] = True
    return sums, has_class


def _count_fitting(snapshot: Snapshot, roots: Slots, limit: int) -> int:
    """Return the number of leading trees that have at most ``limit`` providers together, but at least 1."""
    sizes = np.array([len(snapshot.forest.tree(root)) for root in roots.tolist()], dtype=np.int64)
    return min(len(roots), max(1, int(np.searchsorted(np.cumsum(sizes), limit, side="right"))))
