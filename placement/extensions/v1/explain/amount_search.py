"""The amounts of a class with which a query has candidates, found by bisection (docs: v1-explain)."""

from __future__ import annotations

import bisect

from placement.extensions.v1.explain.class_inventories import AllowedAmounts, ClassInventories, InventoriesByClass
from placement.extensions.v1.explain.conditions import Changes, Condition, group_of
from placement.extensions.v1.explain.variations import Tried, Variations, narrowed_as
from placement.index.slots import SlotSet
from placement.index.snapshot import SHARES
from placement.search.query.query import UNSUFFIXED

#: How many kinds of units are tried, and how many of the smallest amounts.
UNITS = 12


class AmountSearch:
    """Tries other amounts in variations of a query."""

    def __init__(self, variations: Variations, amounts: InventoriesByClass) -> None:
        """Begin with all inventories."""
        self._variations = variations
        self._searches = variations.searches
        self._snapshot = variations.searches.snapshot
        self._amounts = amounts

    def stocks(self, condition: Condition) -> ClassInventories | None:
        """Return the inventories of an amount's class; None if no provider has one."""
        return self._amounts.stocks(condition.resource_class)

    def smallest(self, condition: Condition) -> list[int]:
        """Return the smallest other amounts that inventories of a class have room for, ascending."""
        stocks = self.stocks(condition)
        return [] if stocks is None else [amount for amount in stocks.smallest[:UNITS] if amount != condition.amount]

    def is_looser_without(self, condition: Condition) -> bool:
        """Whether a query that has candidates with another amount also has some without the class.

        A provider that supplies the class may be the one with a trait that all need between them, or the common
        ancestor in a same_subtree.
        """
        if condition.kind != "amount":
            return True
        query, suffix = self._variations.query, condition.suffix
        if suffix == UNSUFFIXED:
            return not group_of(query, UNSUFFIXED).traits.any_of
        return not any(suffix in names and len(names) > 2 for names in query.same_subtrees)

    def roots(self, condition: Condition, dropped: Tried | None, among: SlotSet | None) -> SlotSet | None:
        """Return the roots of the trees where another amount may be enough; None for all.

        Args:
            dropped: The query without the class; None if nothing else is requested.
            among: The roots of the trees to look at; None for all.
        """
        if dropped is None or dropped.outcome.narrowed is None or not self.is_looser_without(condition):
            return among
        return dropped.outcome.narrowed.roots.compact()

    def reachable(self, condition: Condition, among: SlotSet | None) -> ClassInventories | None:
        """Return the inventories of an amount's class that the rules before it left; None if its rule was not reached.

        Args:
            among: The roots of the trees; None for all.
        """
        rule = f"resources:{condition.resource_class}", narrowed_as(self._variations.query)[condition.suffix or ""]
        narrowing = self._variations.outcome.refusals.narrowing
        reachable = next((one.before for one in narrowing if (one.rule, one.suffix) == rule), None)
        stocks = self.stocks(condition)
        if stocks is None or reachable is None:
            return None
        return self._of(stocks, reachable if among is None else reachable & self._usable(among))

    def _usable(self, roots: SlotSet) -> SlotSet:
        """Return the providers of trees, and those that share with any."""
        return self._snapshot.forest.trees_of(roots) | self._snapshot.with_trait(SHARES)

    def _of(self, stocks: ClassInventories, providers: SlotSet) -> ClassInventories:
        return stocks.of(providers.mask(self._snapshot.size)[stocks.slots])

    def raised(self, tried: Tried, condition: Condition) -> Tried:
        """Return a variation that has candidates, with this amount raised as far as it keeps some."""
        stocks, among = self.stocks(condition), None
        if stocks is not None and tried.outcome.narrowed is not None and stocks.uniform:
            # A tree without room for the smallest amount has none for a larger one.
            among = tried.outcome.narrowed.roots.compact()
            stocks = self._of(stocks, self._usable(among))
        return tried if stocks is None else self.largest(tried.changes, condition, stocks, among, tried) or tried

    def largest(
        self,
        changes: Changes,
        condition: Condition,
        stocks: ClassInventories,
        among: SlotSet | None,
        best: Tried | None = None,
    ) -> Tried | None:
        """Return the variation with the largest smaller amount that gives candidates.

        The amounts that one kind of units allows fit up to a bound.  Above it only those fit that other units allow,
        too: so bisection ends at the bound or above it.

        Args:
            changes: Those of other conditions.
            best: A variation that is known to give candidates.
        """
        for number, units in enumerate(stocks.by_units(condition.amount - 1)):
            if best is not None and units.most <= best.changes[condition]:
                break
            if number == UNITS:
                self._searches.complete = False
                break
            best = self._within(units, changes, condition, among, best)
        return best

    def _within(
        self, units: AllowedAmounts, changes: Changes, condition: Condition, among: SlotSet | None, best: Tried | None
    ) -> Tried | None:
        """Return the variation with the largest amount that some units allow, or ``best`` if that is larger."""
        found = self._with_amount(changes, condition, units.most, among)
        if found is not None or units.least == units.most:
            return found or best
        # Where the largest amount does not fit, most often no other does: the smallest tells.
        known = best is not None and best.changes[condition] == units.least
        least = best if known else self._with_amount(changes, condition, units.least, among)
        if least is None:
            return best
        if best is None or units.least > best.changes[condition]:
            best = least
        # If only one group asks for the class, the bound is the room of some inventory.
        groups = self._variations.query.groups
        alone = sum(condition.resource_class in group.resources for group in groups) == 1
        amounts = units.bounds if alone else range(units.least, units.most + 1, units.step)
        fits, beyond = bisect.bisect_right(amounts, best.changes[condition]) - 1, len(amounts) - 1
        guess = bisect.bisect_right(amounts, units.least + self._spare(condition, least)) - 1
        following = [number for number in (guess, guess + 1) if fits < number < beyond]
        while beyond - fits > 1:
            middle = following.pop(0) if following else (fits + beyond) // 2
            found = self._with_amount(changes, condition, amounts[middle], among)
            if found is None:
                beyond, following = middle, []
            else:
                fits, best = middle, found
        return best

    def _spare(self, condition: Condition, tried: Tried) -> int:
        """Return the most that a provider of an amount could give beyond what it gives in a candidate."""
        name = condition.resource_class
        column = self._snapshot.column(name)
        assert column is not None
        return max(
            column.amounts(slot).available - candidate.amounts[slot][name]
            for candidate in tried.outcome.candidates
            for slot in candidate.mappings[condition.suffix or ""]
            if name in candidate.amounts.get(slot, ())
        )

    def higher(self, condition: Condition, stocks: ClassInventories, among: SlotSet | None) -> Tried | None:
        """Return a variation with the least larger amount that gives candidates if units forbid this one."""
        larger = (self._with_amount({}, condition, amount, among) for amount in stocks.above(condition.amount)[:UNITS])
        return next((tried for tried in larger if tried is not None), None)

    def _with_amount(self, changes: Changes, condition: Condition, amount: int, among: SlotSet | None) -> Tried | None:
        tried = self._variations.tried({**changes, condition: amount}, among)
        return tried if tried is not None and tried.outcome.found else None
