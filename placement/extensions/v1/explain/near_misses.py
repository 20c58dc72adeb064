"""Trees that have candidates after the smallest changes, and the conditions that each does not meet (docs: v1-explain).

The search for the changed query found a candidate in each tree.  The providers of this candidate are compared with the
conditions before the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placement.extensions.v1.explain.class_inventories import InventoriesByClass
from placement.extensions.v1.explain.conditions import Condition
from placement.extensions.v1.explain.explanation import Missing, NearMiss
from placement.extensions.v1.explain.relaxations import RelaxationSearch
from placement.extensions.v1.explain.variations import QueryChange
from placement.index.slots import SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.search.narrow.narrowing import roots_served
from placement.search.query.query import SearchQuery
from placement.search.solver.problem import Candidate

#: Maximum number of near misses.
MAX_NEAR_MISSES = 3


def near_misses(
    changes: Sequence[QueryChange], relaxation_search: RelaxationSearch, snapshot: Snapshot, amounts: InventoriesByClass
) -> tuple[NearMiss, ...]:
    """Return up to three trees, ordered by the size of the smallest change that is enough for each.

    Args:
        changes: The changes that produce candidates.
    """
    nearest: list[NearMiss] = []
    remaining = list(changes)
    chosen: set[int] = set()
    while remaining and len(nearest) < MAX_NEAR_MISSES:
        size = min(change.size for change in remaining)
        smallest = [change for change in remaining if change.size == size]
        remaining = [change for change in remaining if change.size != size]
        trees: dict[int, tuple[QueryChange, Candidate]] = {}
        for change in smallest:
            for root, candidate in _trees(change):
                if root not in chosen:
                    trees.setdefault(root, (change, candidate))
        for root in sorted(trees, key=lambda slot: snapshot.provider(slot).id)[: MAX_NEAR_MISSES - len(nearest)]:
            change, candidate = trees[root]
            missing = tuple(_MissingConditions(snapshot, amounts, root, candidate).for_change(change))
            nearest.append(NearMiss(root, missing, change.query))
            chosen.add(root)
        if len(nearest) < MAX_NEAR_MISSES:
            excluded = SlotSet.from_slots(np.array(sorted(chosen), np.intp), snapshot.size)
            remaining += relaxation_search.in_other_trees(smallest, excluded)
    return tuple(nearest)


def _trees(change: QueryChange) -> Iterator[tuple[int, Candidate]]:
    """Yield the roots of the trees with candidates of a changed query, each with one of the candidates."""
    narrowed = change.outcome.narrowed
    assert narrowed is not None
    for candidate in change.outcome.candidates:
        used = {slot for slots in candidate.mappings.values() for slot in slots}
        for root in roots_served(narrowed, used).slots()[:MAX_NEAR_MISSES].tolist():
            yield root, candidate


class _MissingConditions:
    """The changed conditions that a tree does not meet, measured on a candidate of the changed query."""

    def __init__(self, snapshot: Snapshot, amounts: InventoriesByClass, root: int, candidate: Candidate) -> None:
        self._snapshot = snapshot
        self._amounts = amounts
        self._root = root
        self._candidate = candidate

    def for_change(self, change: QueryChange) -> Iterator[Missing]:
        """Yield the missing amount or property for each changed condition."""
        for condition, part in zip(change.conditions, change.parameters, strict=True):
            if change.kind == "spread":
                yield self._of_spreading(condition, part, change.query)
            elif condition.kind == "amount":
                yield self._of_amount(condition, part, change.query)
            else:
                provider, text = self._of_rule(condition, part)
                yield Missing(part, provider, None, None, text)

    def _name(self, slot: int) -> str:
        provider = self._snapshot.provider(slot)
        return provider.name or provider.uuid

    def _of_spreading(self, condition: Condition, part: str, query: SearchQuery) -> Missing:
        name, needed = condition.resource_class, condition.amount
        available = max(self._room(slot, name, needed) for slot in self._usable_slots())
        text = f"no provider that {self._name(self._root)} can use has room for {needed:,} {name}"
        if available < needed:
            return Missing(part, None, needed, available, f"{text}: the most is {available:,}")
        supplied = min(group.resources[name] for group in query.groups if name in group.resources)
        return Missing(part, None, needed, supplied, f"{text} alongside the rest of the request")

    def _of_amount(self, condition: Condition, part: str, query: SearchQuery) -> Missing:
        name, needed = condition.resource_class, condition.amount
        slot, supplied = self._supplying_slot(condition, query)
        if slot is None:
            return Missing(part, None, needed, 0, self._without_room(name, needed, part))
        available = self._room(slot, name, needed)
        text = f"{self._name(slot)} has room for {min(available, supplied):,} of {needed:,} {name}"
        if supplied > needed:
            text = f"{self._name(slot)} allocates {name} in units that allow {supplied:,}, not {needed:,}"
        elif available > supplied:
            text += " alongside the rest of the request"
        return Missing(part, slot, needed, min(available, supplied), text)

    def _usable_slots(self) -> list[int]:
        """Return the providers of the tree, and the providers that share with it."""
        snapshot, tree = self._snapshot, self._snapshot.forest.tree(self._root)
        aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in tree))
        members = SlotSet.union([*map(snapshot.in_aggregate, aggregates)], snapshot.size)
        return [*tree, *(snapshot.with_trait(SHARES) & members).slots().tolist()]

    def _without_room(self, resource_class: str, amount: int, part: str) -> str:
        """Return the reason why no provider can supply any amount of a class to the request."""
        usable = self._usable_slots()
        names, provider = self._snapshot.class_names, self._snapshot.provider
        if not any(names[class_id] == resource_class for slot in usable for class_id in provider(slot).classes):
            return f"no provider that {self._name(self._root)} can use has {resource_class}"
        if any(self._room(slot, resource_class, amount) for slot in usable):
            return self._no_provider_meets(part)
        return f"no provider that {self._name(self._root)} can use has room for any {resource_class}"

    def _no_provider_meets(self, part: str) -> str:
        return f"no provider that {self._name(self._root)} can use meets {part} together with the rest of the request"

    def _room(self, slot: int, resource_class: str, amount: int) -> int:
        """Return the largest allocation up to an amount that a provider has room for."""
        inventories = self._amounts.of_class(resource_class)
        return 0 if inventories is None else int(inventories.of_provider(slot).largest(amount).max(initial=0))

    def _supplying_slot(self, condition: Condition, query: SearchQuery) -> tuple[int | None, int]:
        """Return the provider of an amount in the candidate, and the amount; None if the class was dropped."""
        name = condition.resource_class
        by_suffix = {group.suffix: group.resources.get(name, 0) for group in query.groups}
        amount = by_suffix.pop(condition.suffix or "", 0)
        if not amount:
            return None, 0
        for slot in self._used_slots(condition):
            other_amounts = (
                amount_of_group
                for suffix, amount_of_group in by_suffix.items()
                if suffix and slot in self._candidate.mappings[suffix]
            )
            if condition.suffix or self._candidate.amounts.get(slot, {}).get(name, 0) - sum(other_amounts) == amount:
                return slot, amount
        return None, 0

    def _used_slots(self, condition: Condition) -> tuple[int, ...]:
        return self._candidate.mappings.get(condition.suffix or "", ())

    def _of_rule(self, condition: Condition, part: str) -> tuple[int | None, str]:
        """Return the only provider that does not meet a condition, or None for several, and a sentence."""
        names = " or ".join(sorted(condition.names))
        if condition.kind == "root_required":
            return (
                self._root,
                f"the root {self._name(self._root)} {'has' if condition.forbidden else 'does not have'} {names}",
            )
        if condition.kind == "group_policy":
            return None, "there are not enough different providers for the groups"
        if condition.kind == "same_subtree":
            return (
                None,
                "no provider that serves one of these groups is at or above the providers that serve the others",
            )
        used, provider = self._used_slots(condition), self._snapshot.provider
        if not used:  # the group was removed with its last condition
            return None, self._of_removed_group(condition, part)
        if condition.kind == "in_tree":
            return _only_slot(used), f"{self._names(used)} {'is' if len(used) == 1 else 'are'} in another tree"
        if condition.kind == "trait":
            holders = [slot for slot in used if condition.names & provider(slot).traits]
            if condition.forbidden and holders:
                return _only_slot(holders), f"{self._names(holders)} {'has' if len(holders) == 1 else 'have'} {names}"
            return _only_slot(used), self._none_of(used, f"has {names}", f"does not have {names}")
        concerned = used if condition.suffix else dict.fromkeys((*used, self._root))
        members = [slot for slot in concerned if condition.names & provider(slot).aggregates]
        if condition.forbidden and members:
            return _only_slot(members), f"{self._names(members)} {'is' if len(members) == 1 else 'are'} in {names}"
        outsiders = [slot for slot in used if slot not in members]
        if not outsiders:
            return None, f"neither {self._names(used)} nor the root is in all of the aggregates by itself"
        return _only_slot(outsiders), self._none_of(outsiders, f"is in {names}", f"is not in {names}")

    def _of_removed_group(self, condition: Condition, part: str) -> str:
        """Return the reason why no provider meets a condition of a removed group."""
        traits = (self._snapshot.provider(slot).traits for slot in self._usable_slots())
        if condition.kind == "trait" and not condition.forbidden and not any(map(condition.names.intersection, traits)):
            return f"no provider that {self._name(self._root)} can use has {' or '.join(sorted(condition.names))}"
        return self._no_provider_meets(part)

    def _names(self, slots: Sequence[int], last: str = "and") -> str:
        *first, end = map(self._name, slots)
        return f"{', '.join(first)} {last} {end}" if first else end

    def _none_of(self, slots: Sequence[int], positive: str, negative: str) -> str:
        """Return a clause saying that a predicate holds for none of the providers."""
        if len(slots) == 1:
            return f"{self._name(slots[0])} {negative}"
        if len(slots) == 2:
            return f"neither {self._names(slots, 'nor')} {positive}"
        return f"none of {self._names(slots)} {positive}"


def _only_slot(slots: Sequence[int]) -> int | None:
    """Return the only slot; None for several."""
    return slots[0] if len(slots) == 1 else None
