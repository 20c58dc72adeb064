"""How far each provider is from supplying a demand, and a lower bound of the distance of each tree (docs: v1-explain).

The distance of a provider from a demand is the number of conditions that it does not meet; of equal numbers, the
missing parts of amounts, added up, decide.  Both are in one number, computed with arrays over all providers.  A tree is
at least as far as the nearest providers of its demands together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.explain.amounts import AmountsByClass
from placement.extensions.v1.explain.conditions import Condition, conditions, group_of
from placement.index.slots import Mask, Slots, SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.search.query.query import UNSUFFIXED, SearchQuery
from placement.search.solver.problem import Demand, Requirements

#: The distance of a condition that is not met.  An amount adds the part of it that is missing, at most 1.
CONDITION = 1000.0
#: Distances are equal if they are to so many decimals.
DECIMALS = 6
#: Conditions beyond so many do not count.
_CONDITIONS = 64
#: Sharing providers, with each of their aggregates, beyond so many do not count.
_SHARING = 256

_Scores = npt.NDArray[np.float64]


class TreeScores:
    """Distances of all providers from each demand, and lower bounds of those of all trees.

    Attributes:
        conditions: The first 64 of the query.
        complete: Whether these are all, and all sharing providers are regarded.
        demands: In the order of their numbers.
    """

    def __init__(self, query: SearchQuery, snapshot: Snapshot, amounts: AmountsByClass) -> None:
        self._query = query
        self._snapshot = snapshot
        self._forest = snapshot.forest
        self._roots = snapshot.forest.all_roots.slots()
        self._amounts = amounts
        first = [*islice(conditions(query), _CONDITIONS + 1)]
        self.conditions = first[:_CONDITIONS]
        self.complete = len(first) <= _CONDITIONS
        self.demands: tuple[Demand, ...] = Requirements.of(query).demands
        self._known: dict[object, _Scores] = {}
        self._of_amounts: dict[Condition, _Scores] = {}
        self._of_demands = [self._scores_of(number) for number in range(len(self.demands))]

    def conditions_of(self, number: int) -> list[Condition]:
        """Return the conditions that the provider of a demand has to meet by itself."""
        suffix, amounts = self.demands[number]
        return [
            condition
            for condition in self.conditions
            if condition.suffix == suffix
            and (condition.kind != "amount" or condition.resource_class in amounts)
            and not (condition.kind == "trait" and suffix == UNSUFFIXED and not condition.forbidden)
        ]

    def nearest(self, number: int, slots: Sequence[int], root: int) -> int:
        """Return the provider that is nearest to a demand in a tree.

        Of several it is one that could give a larger amount, rather than one that can give none, or has no inventory;
        and of these the first.

        Args:
            slots: The providers that can supply the tree.
        """
        distances = self._of_demands[number][list(slots)].round(DECIMALS).tolist()
        # A root in a forbidden aggregate bars all providers alike.
        alike = any(one.forbidden and one.kind == "aggregate" for one in self.conditions_of(number))
        for position, slot in enumerate(slots):
            if alike or self._snapshot.provider(slot).root != root:
                distances[position] = self._in_tree(number, slot, root)
        nearest = [slot for slot, distance in zip(slots, distances, strict=True) if distance == min(distances)]
        return min(nearest, key=lambda slot: (self._lack_of_inventory(number, slot), slot))

    def _in_tree(self, number: int, slot: int, root: int) -> float:
        """Return the distance of a provider in a tree; the arrays know no aggregates of roots of other trees."""
        distance = 0.0
        for condition in self.conditions_of(number):
            if condition.kind == "amount":
                distance += self._amount(condition).item(slot)
            elif not self.meets(condition, slot, root):
                distance += CONDITION
        return round(distance, DECIMALS)

    def _lack_of_inventory(self, number: int, slot: int) -> int:
        """Return 1 for each amount of a demand that no allocation of a provider comes near, 2 without inventory."""
        lack = 0
        for name, amount in self.demands[number].amounts.items():
            stocks = self._amounts.stocks(name)
            own = None if stocks is None else stocks.at(slot)
            if not own:
                lack += 2
            elif not (own.largest(amount)[0] or own.smallest_above(amount)[0]):
                lack += 1
        return lack

    def meets(self, condition: Condition, slot: int, root: int) -> bool:
        """Whether a provider meets a condition in a tree, its own or one that it shares with."""
        provider = self._snapshot.provider(slot)
        match condition.kind:
            case "trait":
                return provider.traits.isdisjoint(condition.names) == condition.forbidden
            case "aggregate":
                inside = provider.aggregates
                if condition.suffix == UNSUFFIXED and (provider.root == root or condition.forbidden):
                    inside |= self._snapshot.provider(root).aggregates
                return inside.isdisjoint(condition.names) == condition.forbidden
            case "in_tree":
                named = self._snapshot.by_uuid.get(group_of(self._query, condition.suffix or "").in_tree or "")
                return named is not None and provider.root == self._snapshot.provider(named).root
            case _:
                column = self._snapshot.column(condition.resource_class)
                if column is None:
                    return False
                only = SlotSet.sparse(np.array([slot], np.intp))
                return bool(column.fitting(condition.amount, only))

    # --- trees ---

    def bounds(self, combined: SlotSet, count: int) -> list[tuple[float, int]]:
        """Return lower bounds of the distances of the nearest trees, with their roots, ascending.

        Args:
            combined: The roots of trees that lack nothing but a combination.
            count: Of so many trees.
        """
        sharing = self._sharing()
        bounds = np.where(combined.mask(self._forest.size)[self._roots], CONDITION, 0.0)
        if any(demand.suffix == UNSUFFIXED for demand in self.demands):
            bounds += self._bound_of_unsuffixed(sharing)
        for demand, scores in zip(self.demands, self._of_demands, strict=True):
            if demand.suffix != UNSUFFIXED:
                bounds += self._of_trees(scores, sharing)
        for condition in self.conditions:
            if condition.kind == "root_required":
                bounds += CONDITION * (self._having(condition)[self._roots] == condition.forbidden)
            elif condition.kind == "trait" and condition.suffix == UNSUFFIXED and not condition.forbidden:
                bounds += self._of_trees(np.where(self._having(condition), 0.0, CONDITION), sharing)
        bounds, roots = bounds.round(DECIMALS), self._roots
        if len(roots) > count:
            last = np.partition(bounds, count - 1)[count - 1]
            nearer, equal = np.flatnonzero(bounds < last), np.flatnonzero(bounds == last)
            few = np.concatenate([nearer, equal[: count - len(nearer)]])
            roots, bounds = roots[few], bounds[few]
        return sorted(zip(bounds.tolist(), roots.tolist(), strict=True))

    def _bound_of_unsuffixed(self, sharing: list[tuple[int, Slots]]) -> _Scores:
        """Return a bound for what the unsuffixed group lacks in each tree: conditions of all its classes count once."""
        added: _Scores = np.zeros(len(self._roots))
        greatest: _Scores = np.zeros(len(self._roots))
        for number, demand in enumerate(self.demands):
            if demand.suffix != UNSUFFIXED:
                continue
            amounts = [condition for condition in self.conditions_of(number) if condition.kind == "amount"]
            whole = self._of_trees(self._of_demands[number], sharing)
            alone = len(amounts) == len(self.conditions_of(number))
            added += whole if alone else sum(self._of_trees(self._amount(one), sharing) for one in amounts)
            greatest = np.maximum(greatest, whole)
        for condition in self.conditions:
            if condition.kind == "aggregate" and condition.suffix == UNSUFFIXED and condition.forbidden:
                greatest = np.maximum(greatest, np.where(self._having(condition)[self._roots], CONDITION, 0.0))
        return np.maximum(added, greatest)

    def _sharing(self) -> list[tuple[int, Slots]]:
        """Return sharing providers with the trees that they share with, as positions of their roots."""
        found: list[tuple[int, Slots]] = []
        roots: dict[str, SlotSet] = {}
        pairs = 0
        for slot in self._snapshot.with_trait(SHARES).slots().tolist():
            aggregates = self._snapshot.provider(slot).aggregates
            pairs += len(aggregates)
            if pairs > _SHARING:
                self.complete = False
                break
            for name in aggregates - roots.keys():
                roots[name] = self._forest.roots_of(self._snapshot.in_aggregate(name))
            shared = SlotSet.union([roots[name] for name in aggregates], self._forest.size).slots()
            found.append((slot, np.searchsorted(self._roots, shared)))
        return found

    def _of_trees(self, scores: _Scores, sharing: list[tuple[int, Slots]]) -> _Scores:
        """Return, for each tree, the least score of the providers that can supply it."""
        least: _Scores = scores[self._roots]
        children, trees, starts = self._children
        if len(children):
            least[trees] = np.minimum(least[trees], np.minimum.reduceat(scores[children], starts))
        for slot, shared in sharing:
            least[shared] = np.minimum(least[shared], scores[slot])
        return least

    @cached_property
    def _children(self) -> tuple[Slots, Slots, Slots]:
        """The children of all trees, tree by tree; the positions of the roots of these trees, and where each begins."""
        children = self._forest.children
        roots = self._forest.roots(children)
        if (roots[1:] < roots[:-1]).any():
            order = np.argsort(roots, kind="stable")
            children, roots = children[order], roots[order]
        starts = np.flatnonzero(np.diff(roots, prepend=-1))
        return children, np.searchsorted(self._roots, roots[starts]), starts

    # --- providers ---

    def _scores_of(self, number: int) -> _Scores:
        relevant = self.conditions_of(number)
        key = frozenset(replace(condition, suffix=condition.suffix or None) for condition in relevant)
        if self.demands[number].suffix != UNSUFFIXED:
            key = frozenset(replace(condition, suffix="any") for condition in relevant if condition.kind != "in_tree")
            key |= {condition for condition in relevant if condition.kind == "in_tree"}
        if key not in self._known:
            scores: _Scores = np.zeros(self._forest.size)
            for condition in relevant:
                scores += self._amount(condition) if condition.kind == "amount" else self._rule(condition)
            self._known[key] = scores
        return self._known[key]

    def _rule(self, condition: Condition) -> _Scores:
        size = self._forest.size
        if condition.kind == "in_tree":
            slot = self._snapshot.by_uuid.get(group_of(self._query, condition.suffix or "").in_tree or "")
            scores: _Scores = np.full(size, CONDITION)
            if slot is not None:
                scores[list(self._forest.tree(self._snapshot.provider(slot).root))] = 0.0
            return scores
        return np.where(self._having(condition) == condition.forbidden, CONDITION, 0.0)

    def _having(self, condition: Condition) -> Mask:
        """Return a mask of the providers that have one of the traits, or are in one of the aggregates."""
        with_name = self._snapshot.in_aggregate if condition.kind == "aggregate" else self._snapshot.with_trait
        having = SlotSet.union([with_name(name) for name in condition.names], self._forest.size)
        if condition.kind == "aggregate" and condition.suffix == UNSUFFIXED and not condition.forbidden:
            having |= self._forest.trees_of(having & self._forest.all_roots)
        return having.mask(self._forest.size)

    def _amount(self, condition: Condition) -> _Scores:
        if condition not in self._of_amounts:
            self._of_amounts[condition] = self._missing_part(condition)
        return self._of_amounts[condition]

    def _missing_part(self, condition: Condition) -> _Scores:
        scores: _Scores = np.full(self._forest.size, CONDITION + 1.0)
        stocks = self._amounts.stocks(condition.resource_class)
        if stocks is None:
            return scores
        lacking = 1.0 - stocks.largest(condition.amount) / condition.amount
        scores[stocks.slots] = np.where(stocks.fits(condition.amount), 0.0, CONDITION + lacking)
        return scores
