"""The count of trees whose demands depend on each other, each as if nothing was placed elsewhere.

Trees of one shape have the same candidates.  Where these are not too many, their amounts are the patterns of an integer
program (``packing``), which is solved for all trees of the shape.  Otherwise candidates are placed (``placing``), and
the number is compared with a bound from above (``closed.bounds``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count.closed import bounds
from placement.extensions.v1.count.packing import Packed, distinct, pack
from placement.extensions.v1.count.placing import Placing, Taken
from placement.extensions.v1.count.shapes import Shape, Shapes
from placement.extensions.v1.count.supply import Integers, Kind, Supply
from placement.index.slots import Slots
from placement.search.budget import Budget, Exhausted
from placement.search.narrow.narrowing import Narrowed
from placement.search.solver.combine import SolutionCache, combine
from placement.search.solver.problem import Requirements, TreeProblem
from placement.search.solver.work_limit import WORK_LIMIT

#: A shape with more candidates, or with more different amounts, is counted by placing.
_CANDIDATES, _PATTERNS = 2000, 200
#: Integer programs may use this part of the budget, a half.
_EFFORT = 2


class Placed(NamedTuple):
    """How often a request was placed in trees of one shape.

    Attributes:
        times: By tree.
        bounds: By tree, a number that no way to place exceeds.
        left: What is free afterwards, by tree and place.
    """

    times: Integers
    bounds: Integers
    left: Integers


class Programs:
    """Counts trees of one narrowed query."""

    def __init__(
        self,
        narrowed: Narrowed,
        requirements: Requirements,
        kinds: Sequence[Kind],
        supply: Supply,
        shapes: Shapes,
        placing: Placing,
        budget: Budget,
    ) -> None:
        self._requirements = requirements
        self._kinds = kinds
        self._supply = supply
        self._shapes = shapes
        self._placing = placing
        self._budget = budget
        self._effort = Budget(budget.operations // _EFFORT, budget.memory // _EFFORT)
        #: The patterns of each shape; None where they are too many.
        self._known: dict[Hashable, Integers | None] = {}
        #: For each kind, the position of its first demand.
        self._positions = [narrowed.eligible.index(kind.eligible) for kind in kinds]

    def count(self, shape: Shape) -> Placed:
        """Return the counts of trees of one shape.

        Raises:
            Exhausted: The budget is used up.
        """
        free = self._shapes.free(shape)
        patterns = self._patterns(shape)
        if patterns is None:
            return self._place(shape, free)
        packed = self._pack(patterns, free, [name for _, name in shape.places])
        return Placed(packed.times.sum(axis=1), packed.bounds, free - packed.times @ patterns)

    def together(self, roots: Slots) -> tuple[int, int] | None:
        """Return the count of several trees, and a number that no way to place exceeds; None if patterns are too many.

        Raises:
            Exhausted: The budget is used up.
        """
        if len(roots) > _PATTERNS:
            return None
        together: dict[frozenset[tuple[tuple[int, str], int]], None] = {}
        for shape in self._shapes.of(roots):
            patterns = self._patterns(shape)
            if patterns is None:
                return None
            for providers in shape.providers.tolist():
                places = [(providers[number], name) for number, name in shape.places]
                for pattern in patterns.tolist():
                    taken = zip(places, pattern, strict=True)
                    together[frozenset((place, amount) for place, amount in taken if amount)] = None
                if len(together) > _PATTERNS:
                    return None
        columns = {place: None for pattern in together for place, _ in pattern}
        amounts = [dict(pattern) for pattern in together]
        rows = np.array([[pattern.get(place, 0) for place in columns] for pattern in amounts], np.int64)
        free = np.array([[self._supply.free[name].item(slot) for slot, name in columns]], np.int64)
        packed = self._pack(rows, free, [name for _, name in columns])
        return int(packed.times.sum()), packed.bounds.item(0)

    def _pack(self, patterns: Integers, free: Integers, classes: Sequence[str]) -> Packed:
        """Solve a program with what is left of the effort.

        Args:
            patterns: By pattern and place.
            free: By tree and place.
            classes: By place.
        """
        self._effort.operations = operations = min(self._effort.operations, self._budget.operations)
        # Each placement takes the total of each class.
        names = np.array(classes)
        sums = [free[:, names == name].sum(axis=1) // total for name, total in self._requirements.total.items()]
        packed = pack(patterns, free, np.min(sums, axis=0), self._effort)
        self._budget.spend(operations - self._effort.operations)
        return packed

    def endings(self, shape: Shape, placed: Placed) -> list[str]:
        """Return the rule that ends the count of each tree, in the words of refusals.

        Raises:
            Exhausted: The budget is used up.
        """
        greatest = [self._requirements.total[name] for _, name in shape.places]
        _, first, inverse = distinct(np.minimum(placed.left, greatest))
        taken = self._shapes.free(shape) - placed.left
        rules = []
        for tree in first.tolist():
            places = [(shape.providers.item(tree, number), name) for number, name in shape.places]
            used = Taken(zip(places, taken[tree].tolist(), strict=True))
            rules.append(self._placing.place(self._shapes.problem(shape.roots.item(tree)), used)[1])
        return [rules[number] for number in inverse.tolist()]

    def _patterns(self, shape: Shape) -> Integers | None:
        """Return the amounts of the candidates by place, each once; None if they are too many."""
        if shape.form not in self._known:
            self._effort.operations = operations = min(self._effort.operations, self._budget.operations)
            self._known[shape.form] = self._find_patterns(shape)
            self._budget.spend(operations - self._effort.operations)
        return self._known[shape.form]

    def _find_patterns(self, shape: Shape) -> Integers | None:
        columns = {
            (shape.providers.item(0, number), name): column for column, (number, name) in enumerate(shape.places)
        }
        patterns: dict[tuple[int, ...], None] = {}
        self._effort.shortage = None
        try:
            for number, candidate in enumerate(combine(shape.problem, SolutionCache(self._effort))):
                pattern = [0] * len(columns)
                for provider, amounts in candidate.amounts.items():
                    for name, amount in amounts.items():
                        pattern[columns[provider, name]] = amount
                patterns[tuple(pattern)] = None
                if number == _CANDIDATES or len(patterns) > _PATTERNS:
                    return None
        except Exhausted:
            return None
        return None if self._effort.shortage else np.array(list(patterns), np.int64).reshape(-1, len(columns))

    def _place(self, shape: Shape, free: Integers) -> Placed:
        """Place candidates until there is none, once for all trees with the same free amounts."""
        free, first, inverse = distinct(free)
        times, limits, left = np.zeros(len(free), np.int64), np.zeros(len(free), np.int64), free.copy()
        for number, tree in enumerate(first.tolist()):
            problem, taken = self._shapes.problem(shape.roots.item(tree)), Taken()
            times[number], rule = self._placing.place(problem, taken)
            left[number] -= [taken[shape.providers.item(tree, place), name] for place, name in shape.places]
            none = not times[number] and rule != WORK_LIMIT  # the solver has shown it
            limits[number] = 0 if none else self._bound(problem)
        return Placed(times[inverse], limits[inverse], left[inverse])

    def _bound(self, problem: TreeProblem) -> int:
        domains = [np.array(problem.domains[position], np.intp) for position in self._positions]
        inside = [(domain, np.zeros(len(domain), np.intp)) for domain in domains]
        return int(bounds(self._requirements, self._kinds, self._supply, inside, 1).counts[0])
