"""How much each tree lacks, as one number for each: the conditions that its best providers do not meet.

Computed with arrays over all providers, and approximate where providers share: the best trees are looked at one by one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from placement.index.slots import Mask, Slots, SlotSet
from placement.index.snapshot import SHARES, Snapshot
from placement.search.explain.amounts import AmountsByClass
from placement.search.explain.conditions import Condition, conditions, group_of
from placement.search.query.query import UNSUFFIXED, SearchQuery
from placement.search.solver.problem import Demand, Requirements

#: The score of a condition that is not met.  An amount that does not fit adds the missing part of it, at most 1; one
#: that could be given only larger adds a bit less than 1, and an absent inventory 2.
_CONDITION = 1000.0
#: Conditions beyond so many do not count.
_CONDITIONS = 64
#: Sharing providers, with each of their aggregates, beyond so many do not count.
_SHARING = 256

_Scores = npt.NDArray[np.float64]


class TreeScores:
    """Scores of all providers for each demand, and of all trees; the smallest is the best.

    Attributes:
        conditions: The first 64 of the query.
        complete: Whether these are all.
        demands: In the order of their numbers.
    """

    def __init__(self, query: SearchQuery, snapshot: Snapshot, amounts: AmountsByClass) -> None:
        self._query = query
        self._snapshot = snapshot
        self._forest = snapshot.forest
        self._amounts = amounts
        first = [*islice(conditions(query), _CONDITIONS + 1)]
        self.conditions = first[:_CONDITIONS]
        self.complete = len(first) <= _CONDITIONS
        self.demands: tuple[Demand, ...] = Requirements.of(query).demands
        self._known: dict[object, _Scores] = {}
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

    def of_demand(self, number: int) -> _Scores:
        """Return the scores of all providers for a demand."""
        return self._of_demands[number]

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

    def best(self, combined: SlotSet, count: int) -> list[int]:
        """Return the roots of the trees with the best scores, the best first.

        Args:
            combined: The roots of trees that lack nothing but a combination.
        """
        total: _Scores = _CONDITION * combined.mask(self._forest.size).astype(np.float64)
        sharing = self._sharing()
        for scores in self._of_demands:
            total = total + self._of_trees(scores, sharing)
        for condition in self.conditions:
            if condition.kind == "root_required":
                total += _CONDITION * (self._having(condition) == condition.forbidden)
            elif condition.kind == "trait" and condition.suffix == UNSUFFIXED and not condition.forbidden:
                total += self._of_trees(np.where(self._having(condition), 0.0, _CONDITION), sharing)
        roots = self._forest.all_roots.slots()
        scores = total[roots]
        if len(roots) > count:
            few = np.argpartition(scores, count - 1)[:count]
            roots, scores = roots[few], scores[few]
        best: list[int] = roots[np.lexsort((roots, scores))].tolist()
        return best

    def _sharing(self) -> list[tuple[int, Slots]]:
        """Return sharing providers with the roots of the trees that they share with."""
        found: list[tuple[int, Slots]] = []
        roots: dict[str, SlotSet] = {}
        pairs = 0
        for slot in self._snapshot.with_trait(SHARES).slots().tolist():
            aggregates = self._snapshot.provider(slot).aggregates
            pairs += len(aggregates)
            if pairs > _SHARING:
                break
            for name in aggregates - roots.keys():
                roots[name] = self._forest.roots_of(self._snapshot.in_aggregate(name))
            found.append((slot, SlotSet.union([roots[name] for name in aggregates], self._forest.size).slots()))
        return found

    def _of_trees(self, scores: _Scores, sharing: list[tuple[int, Slots]]) -> _Scores:
        """Return, at each root, the best score of the providers that can supply its tree."""
        best: _Scores = scores.copy()
        children = self._forest.children
        np.minimum.at(best, self._forest.roots(children), scores[children])
        for slot, roots in sharing:
            best[roots] = np.minimum(best[roots], scores[slot])
        return best

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
            scores: _Scores = np.full(size, _CONDITION)
            if slot is not None:
                scores[list(self._forest.tree(self._snapshot.provider(slot).root))] = 0.0
            return scores
        return np.where(self._having(condition) == condition.forbidden, _CONDITION, 0.0)

    def _having(self, condition: Condition) -> Mask:
        """Return a mask of the providers that have one of the traits, or are in one of the aggregates."""
        with_name = self._snapshot.in_aggregate if condition.kind == "aggregate" else self._snapshot.with_trait
        having = SlotSet.union([with_name(name) for name in condition.names], self._forest.size)
        if condition.kind == "aggregate" and condition.suffix == UNSUFFIXED:
            having |= self._forest.trees_of(having & self._forest.all_roots)
        return having.mask(self._forest.size)

    def _amount(self, condition: Condition) -> _Scores:
        scores: _Scores = np.full(self._forest.size, _CONDITION + 2.0)
        stocks = self._amounts.stocks(condition.resource_class)
        if stocks is None:
            return scores
        lower = stocks.largest(condition.amount)
        larger_only = (lower == 0) & (stocks.smallest_above(condition.amount) > 0)
        lacking = np.where(larger_only, 0.99, 1.0 - lower / condition.amount)
        scores[stocks.slots] = np.where(stocks.fits(condition.amount), 0.0, _CONDITION + lacking)
        return scores
