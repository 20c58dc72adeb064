"""The count of trees whose demands depend on each other, each as if nothing was placed elsewhere.

Trees of one shape have the same alternatives (``blocks``) and are counted together: greedily, with a bound from above
(``dealing``, ``closed``).  Where both differ, programs are solved while the effort lasts (``dynamic``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.extensions.v1.count import dynamic_program
from placement.extensions.v1.count.alternatives import Part, independent_parts
from placement.extensions.v1.count.greedy import CountRange, FreeAmounts, greedy_count
from placement.extensions.v1.count.inputs import CountInputs, Integers
from placement.extensions.v1.count.placer import Placer
from placement.extensions.v1.count.shapes import Shape
from placement.extensions.v1.count.upper_bounds import TightestBound, upper_bounds
from placement.search.budget import Budget
from placement.search.refusals import COMBINATION
from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.constraints import Isolation, RequiredTraits, SameSubtree

#: Programs may use this part of the budget, a half.
EFFORT = 2
#: Operations to count a shape; and one operation deals to this many providers of trees.
_SHAPE, _AT_ONCE = 100, 20


class ShapeCounter:
    """Counts trees of one narrowed query."""

    def __init__(self, inputs: CountInputs, placing: Placer) -> None:
        self._inputs = inputs
        self._placing = placing
        self._effort = inputs.budget.operations // EFFORT
        self._parts: dict[CanonicalForm, list[Part] | None] = {}
        #: The rule that ends counts which arithmetic alone would not end.
        rules = (
            (SameSubtree.name, bool(inputs.requirements.same_subtrees)),
            (RequiredTraits.name, bool(inputs.requirements.required)),
            (Isolation.name, inputs.requirements.isolate),
        )
        self._rule = next((name for name, applies in rules if applies), COMBINATION)

    def count(self, shape: Shape) -> tuple[CountRange, Integers]:
        """Return the counts of trees of one shape, and the positions of the rules that end them.

        Raises:
            Exhausted: The budget is used up.
        """
        self._inputs.budget.spend(_SHAPE + shape.providers.size // _AT_ONCE)
        free = {name: amounts[shape.providers] for name, amounts in self._inputs.free.items()}
        least = self._least(shape)
        if shape.form not in self._parts:
            self._parts[shape.form] = independent_parts(shape.requirements, shape.form)
        parts = self._parts[shape.form]
        low, high = np.zeros_like(least.counts), least.counts
        if parts is not None:
            blocks = [[greedy_count(block, free, high) for block in part] for part in parts]
            low, high = _together(blocks, high)
            for part, known in zip(parts, blocks, strict=True):
                self._narrow(part, known, free, high)
            low, high = _together(blocks, high)
        for tree in np.flatnonzero((low < high) & ((low == 0) | (parts is None))).tolist():
            low[tree] = self._placing.place([shape.roots.item(tree)], int(high[tree]), int(high[tree]))
        rule = self._inputs.position(self._rule)
        return CountRange(low, high), np.where(low == least.counts, least.endings, rule)

    def _least(self, shape: Shape) -> TightestBound:
        """Return the bounds that ignore all rules between providers but isolation of equal groups."""
        domains = []
        for kind in self._inputs.kinds:
            domain = shape.form.domains[self._inputs.narrowed.eligible.index(kind.eligible)]
            slots = shape.providers[:, list(domain)]
            domains.append((slots.ravel(), np.repeat(np.arange(len(slots)), slots.shape[1])))
        return upper_bounds(self._inputs, domains, len(shape.roots))

    def _narrow(self, part: Part, known: list[CountRange], free: FreeAmounts, most: Integers) -> None:
        """Narrow what is known of the blocks of a part, in the trees where that is needed.

        Raises:
            Exhausted: The budget is used up.
        """
        for block, (low, high) in zip(part, known, strict=True):
            trees = np.flatnonzero((low < high) & (sum(each.low for each in known) < most))
            inside = {name: amounts[trees] for name, amounts in free.items()}
            effort = Budget(self._effort)
            low[trees], high[trees] = dynamic_program.tighten(
                block, inside, CountRange(low[trees], high[trees]), effort
            )
            self._inputs.budget.spend(self._effort - max(0, effort.operations))
            self._effort = max(0, effort.operations)


def _together(parts: Sequence[Sequence[CountRange]], most: Integers) -> CountRange:
    """Return what is known of trees from what is known of the blocks of each part."""
    # A part without blocks has no alternative.
    high = np.min([most, *(np.sum([0 * most, *(each.high for each in part)], axis=0) for part in parts)], axis=0)
    low = np.min([high, *(np.sum([0 * most, *(each.low for each in part)], axis=0) for part in parts)], axis=0)
    return CountRange(low, high)
