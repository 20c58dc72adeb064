"""The count of trees whose demands depend on each other, each as if nothing was placed elsewhere.

Trees of one shape have the same alternatives (``blocks``) and are counted together: greedily, with a bound from above
(``dealing``, ``closed``).  Where both differ, programs are solved while the effort lasts (``dynamic``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.extensions.v1.count import dynamic
from placement.extensions.v1.count.blocks import Part, parts_of
from placement.extensions.v1.count.closed import Least, bounds
from placement.extensions.v1.count.dealing import Dealt, Free, deal
from placement.extensions.v1.count.placing import Placing, Taken
from placement.extensions.v1.count.shapes import Shape, Shapes
from placement.extensions.v1.count.supply import Integers, Kind, Supply
from placement.search.budget import Budget
from placement.search.narrow.narrowing import Narrowed
from placement.search.refusals import COMBINATION
from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.constraints import Isolation, RequiredTraits, SameSubtree
from placement.search.solver.problem import Requirements

#: Programs may use this part of the budget, a half.
EFFORT = 2
#: Operations to count a shape; and one operation deals to so many providers of trees.
_SHAPE, _AT_ONCE = 100, 20


class Trees:
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
        self._effort = budget.operations // EFFORT
        self._parts: dict[CanonicalForm, list[Part] | None] = {}
        #: For each kind, the position of its first demand.
        self._positions = [narrowed.eligible.index(kind.eligible) for kind in kinds]
        #: The rule that ends counts which arithmetic alone would not end.
        rules = (
            (SameSubtree.name, bool(requirements.same_subtrees)),
            (RequiredTraits.name, bool(requirements.required)),
            (Isolation.name, requirements.isolate),
        )
        self._rule = next((name for name, applies in rules if applies), COMBINATION)

    def count(self, shape: Shape) -> tuple[Dealt, list[str]]:
        """Return the counts of trees of one shape, and the rule that ends each of them, in the words of refusals.

        Raises:
            Exhausted: The budget is used up.
        """
        self._budget.spend(_SHAPE + shape.providers.size // _AT_ONCE)
        free = {name: amounts[shape.providers] for name, amounts in self._supply.free.items()}
        least = self._least(shape)
        rules = [least.rules[number] for number in least.ending.tolist()]
        if shape.form not in self._parts:
            self._parts[shape.form] = parts_of(shape.requirements, shape.form)
        parts = self._parts[shape.form]
        low, high = np.zeros_like(least.counts), least.counts
        if parts is not None:
            blocks = [[deal(block, free, high) for block in part] for part in parts]
            low, high = _together(blocks, high)
            for part, known in zip(parts, blocks, strict=True):
                self._narrow(part, known, free, high)
            low, high = _together(blocks, high)
        for tree in np.flatnonzero((low < high) & ((low == 0) | (parts is None))).tolist():
            low[tree] = self._placing.place(self._shapes.problem(shape.roots.item(tree)), Taken(), int(high[tree]))
        at_bound = (low == least.counts).tolist()
        return Dealt(low, high), [rule if closed else self._rule for rule, closed in zip(rules, at_bound, strict=True)]

    def _least(self, shape: Shape) -> Least:
        """Return the bounds that ignore all rules between providers but isolation of equal groups."""
        domains = []
        for position in self._positions:
            slots = shape.providers[:, list(shape.form.domains[position])]
            domains.append((slots.ravel(), np.repeat(np.arange(len(slots)), slots.shape[1])))
        return bounds(self._requirements, self._kinds, self._supply, domains, len(shape.roots))

    def _narrow(self, part: Part, known: list[Dealt], free: Free, most: Integers) -> None:
        """Narrow what is known of the blocks of a part, in the trees where that is needed.

        Raises:
            Exhausted: The budget is used up.
        """
        for place, block in enumerate(part):
            counts, bounds = known[place]
            trees = np.flatnonzero((counts < bounds) & (sum(each.counts for each in known) < most))
            inside = {name: amounts[trees] for name, amounts in free.items()}
            effort = Budget(self._effort)
            found = dynamic.narrow(block, inside, Dealt(counts[trees], bounds[trees]), effort)
            self._budget.spend(self._effort - max(0, effort.operations))
            self._effort = max(0, effort.operations)
            counts[trees], bounds[trees] = found


def _together(blocks: Sequence[Sequence[Dealt]], most: Integers) -> Dealt:
    """Return what is known of trees whose parts have these blocks."""
    # A part without blocks has no alternative.
    counts = [np.sum([0 * most, *(each.counts for each in part)], axis=0) for part in blocks]
    high = np.min([most, *(np.sum([0 * most, *(each.bounds for each in part)], axis=0) for part in blocks)], axis=0)
    return Dealt(np.min([high, *counts], axis=0), high)
