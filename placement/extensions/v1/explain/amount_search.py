"""The amounts of a class for which a query has candidates, found by bisection (docs: v1-explain)."""

from __future__ import annotations

import bisect

from placement.extensions.v1.explain.class_inventories import AllowedAmounts, ClassInventories, InventoriesByClass
from placement.extensions.v1.explain.conditions import Changes, Condition, group_of
from placement.extensions.v1.explain.variations import Variation, Variations, recorded_suffixes
from placement.index.slots import SlotSet
from placement.index.snapshot import SHARES
from placement.search.query.query import UNSUFFIXED

#: Maximum number of combinations of units, of smallest amounts and of larger amounts tried per condition.
MAX_UNITS = 12


class AmountSearch:
    """A search for other amounts of one class that produce candidates."""

    def __init__(self, variations: Variations, amounts: InventoriesByClass) -> None:
        self._variations = variations
        self._searches = variations.searches
        self._snapshot = variations.searches.snapshot
        self._amounts = amounts

    def inventories(self, condition: Condition) -> ClassInventories | None:
        """Return the inventories of the class of an amount; None if the class has none."""
        return self._amounts.of_class(condition.resource_class)

    def smallest_amounts(self, condition: Condition) -> list[int]:
        """Return the smallest other amounts that inventories of the class have room for, ascending."""
        inventories = self.inventories(condition)
        return (
            []
            if inventories is None
            else [amount for amount in inventories.smallest[:MAX_UNITS] if amount != condition.amount]
        )

    def dropping_is_loosest(self, condition: Condition) -> bool:
        """Whether dropping the condition produces candidates whenever another change produces candidates.

        The exceptions are amounts whose provider may be the only one with a required trait of the unsuffixed group, or
        the common ancestor in a same_subtree.
        """
        if condition.kind != "amount":
            return True
        query, suffix = self._variations.query, condition.suffix
        if suffix == UNSUFFIXED:
            return not group_of(query, UNSUFFIXED).traits.any_of
        return not any(suffix in names and len(names) > 2 for names in query.same_subtrees)

    def roots(self, condition: Condition, dropped: Variation | None, tree_roots: SlotSet | None) -> SlotSet | None:
        """Return the roots of the trees where another amount may be enough; None for all.

        Args:
            dropped: The query without the class; None if it requests nothing else.
            tree_roots: Roots of the trees to search; None for all.
        """
        if dropped is None or dropped.outcome.narrowed is None or not self.dropping_is_loosest(condition):
            return tree_roots
        return dropped.outcome.narrowed.roots.compact()

    def reachable_inventories(self, condition: Condition, tree_roots: SlotSet | None) -> ClassInventories | None:
        """Return the inventories of the class that the earlier rules left; None if narrowing ended before this rule.

        Args:
            tree_roots: Roots of the trees to search; None for all.
        """
        rule = (
            f"resources:{condition.resource_class}",
            recorded_suffixes(self._variations.query)[condition.suffix or ""],
        )
        narrowing = self._variations.outcome.refusals.narrowing
        reachable = next((step.before for step in narrowing if (step.rule, step.suffix) == rule), None)
        inventories = self.inventories(condition)
        if inventories is None or reachable is None:
            return None
        return self._inventories_of(
            inventories, reachable if tree_roots is None else reachable & self._usable_slots(tree_roots)
        )

    def _usable_slots(self, roots: SlotSet) -> SlotSet:
        """Return the providers of the trees, and all sharing providers."""
        return self._snapshot.forest.trees_of(roots) | self._snapshot.with_trait(SHARES)

    def _inventories_of(self, inventories: ClassInventories, providers: SlotSet) -> ClassInventories:
        """Return the inventories of these providers."""
        return inventories.select(providers.mask(self._snapshot.size)[inventories.slots])

    def raise_amount(self, variation: Variation, condition: Condition) -> Variation:
        """Return a variation with candidates whose amount is raised as far as possible."""
        inventories, tree_roots = self.inventories(condition), None
        if inventories is not None and variation.outcome.narrowed is not None and inventories.uniform:
            # A tree without room for the smallest amount has no room for a larger one.
            tree_roots = variation.outcome.narrowed.roots.compact()
            inventories = self._inventories_of(inventories, self._usable_slots(tree_roots))
        return (
            variation
            if inventories is None
            else self.search_largest(variation.changes, condition, inventories, tree_roots, variation) or variation
        )

    def search_largest(
        self,
        changes: Changes,
        condition: Condition,
        inventories: ClassInventories,
        tree_roots: SlotSet | None,
        best: Variation | None = None,
    ) -> Variation | None:
        """Return the variation with the largest amount below the requested one that produces candidates.

        For one combination of units, the allowed amounts fit up to a bound.  Amounts above it fit only if other units
        also allow them, so bisection ends at the bound or above it.

        Args:
            changes: The changes of other conditions.
            best: A variation known to produce candidates.
        """
        for number, units in enumerate(inventories.allowed_amounts(condition.amount - 1)):
            if best is not None and units.largest <= best.changes[condition]:
                break
            if number == MAX_UNITS:
                self._searches.complete = False
                break
            best = self._largest_within(units, changes, condition, tree_roots, best)
        return best

    def _largest_within(
        self,
        units: AllowedAmounts,
        changes: Changes,
        condition: Condition,
        tree_roots: SlotSet | None,
        best: Variation | None,
    ) -> Variation | None:
        """Return the variation with the largest fitting amount that the units allow, or ``best`` if that is larger."""
        largest = self._with_amount(changes, condition, units.largest, tree_roots)
        if largest is not None or units.smallest == units.largest:
            return largest or best
        # If the largest amount does not fit, usually none fits: try the smallest next.
        smallest_fits = best is not None and best.changes[condition] == units.smallest
        least = best if smallest_fits else self._with_amount(changes, condition, units.smallest, tree_roots)
        if least is None:
            return best
        if best is None or units.smallest > best.changes[condition]:
            best = least
        # If only one group requests the class, the bound is the largest amount that fits in one of the inventories.
        groups = self._variations.query.groups
        in_one_group = sum(condition.resource_class in group.resources for group in groups) == 1
        amounts = units.bounds if in_one_group else range(units.smallest, units.largest + 1, units.step)
        low, high = bisect.bisect_right(amounts, best.changes[condition]) - 1, len(amounts) - 1
        estimate = bisect.bisect_right(amounts, units.smallest + self._spare_amount(condition, least)) - 1
        probes = [number for number in (estimate, estimate + 1) if low < number < high]
        while high - low > 1:
            middle = probes.pop(0) if probes else (low + high) // 2
            variation = self._with_amount(changes, condition, amounts[middle], tree_roots)
            if variation is None:
                high, probes = middle, []
            else:
                low, best = middle, variation
        return best

    def _spare_amount(self, condition: Condition, variation: Variation) -> int:
        """Return the largest free capacity that remains, in any candidate, on a provider of the amount."""
        name = condition.resource_class
        column = self._snapshot.column(name)
        assert column is not None
        return max(
            column.amounts(slot).available - candidate.amounts[slot][name]
            for candidate in variation.outcome.candidates
            for slot in candidate.mappings[condition.suffix or ""]
            if name in candidate.amounts.get(slot, ())
        )

    def search_higher(
        self, condition: Condition, inventories: ClassInventories, tree_roots: SlotSet | None
    ) -> Variation | None:
        """Return the variation with the smallest larger amount that produces candidates, if units forbid the amount."""
        larger = (
            self._with_amount({}, condition, amount, tree_roots)
            for amount in inventories.next_larger(condition.amount)[:MAX_UNITS]
        )
        return next((variation for variation in larger if variation is not None), None)

    def _with_amount(
        self, changes: Changes, condition: Condition, amount: int, tree_roots: SlotSet | None
    ) -> Variation | None:
        variation = self._variations.variation({**changes, condition: amount}, tree_roots)
        return variation if variation is not None and variation.outcome.candidates else None
