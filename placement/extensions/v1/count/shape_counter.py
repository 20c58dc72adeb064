"""The counts of trees whose demands depend on each other, each as if nothing were placed elsewhere.

Trees of one shape have the same alternatives (``alternatives``) and are counted together, with a greedy count as the
lower bound (``greedy``) and an upper bound (``upper_bounds``).  Where the bounds differ, dynamic programs tighten them
while the effort lasts (``dynamic_program``).
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

#: Divisor of the budget: dynamic programs may use one half of it.
EFFORT = 2
#: Operations per shape; providers per operation.
_SHAPE, _PROVIDERS_PER_OPERATION = 100, 20


class ShapeCounter:
    """A counter for the trees of one narrowed query, shape by shape."""

    def __init__(self, inputs: CountInputs, placer: Placer) -> None:
        self._inputs = inputs
        self._placer = placer
        self._effort = inputs.budget.operations // EFFORT
        self._parts: dict[CanonicalForm, list[Part] | None] = {}
        # The limiting rule of trees that do not reach the arithmetic bound.
        rules = (
            (SameSubtree.name, bool(inputs.requirements.same_subtrees)),
            (RequiredTraits.name, bool(inputs.requirements.required)),
            (Isolation.name, inputs.requirements.isolate),
        )
        self._rule = next((name for name, applies in rules if applies), COMBINATION)

    def count(self, shape: Shape) -> tuple[CountRange, Integers]:
        """Return bounds for the counts of trees of one shape, and the positions of the rules that limit them.

        Raises:
            Exhausted: The budget is exhausted.
        """
        self._inputs.budget.spend(_SHAPE + shape.providers.size // _PROVIDERS_PER_OPERATION)
        free = {name: amounts[shape.providers] for name, amounts in self._inputs.free.items()}
        bound = self._arithmetic_bound(shape)
        if shape.form not in self._parts:
            self._parts[shape.form] = independent_parts(shape.requirements, shape.form)
        parts = self._parts[shape.form]
        low, high = np.zeros_like(bound.counts), bound.counts
        if parts is not None:
            blocks = [[greedy_count(block, free, high) for block in part] for part in parts]
            low, high = _combine(blocks, high)
            for part, ranges in zip(parts, blocks, strict=True):
                self._tighten(part, ranges, free, high)
            low, high = _combine(blocks, high)
        for tree in np.flatnonzero((low < high) & ((low == 0) | (parts is None))).tolist():
            low[tree] = self._placer.place([shape.roots.item(tree)], int(high[tree]), int(high[tree]))
        rule = self._inputs.position(self._rule)
        return CountRange(low, high), np.where(low == bound.counts, bound.rules, rule)

    def _arithmetic_bound(self, shape: Shape) -> TightestBound:
        """Return the bounds that ignore all rules between providers except the isolation of equal groups."""
        domains = []
        for kind in self._inputs.kinds:
            domain = shape.form.domains[self._inputs.narrowed.eligible.index(kind.eligible)]
            slots = shape.providers[:, list(domain)]
            domains.append((slots.ravel(), np.repeat(np.arange(len(slots)), slots.shape[1])))
        return upper_bounds(self._inputs, domains, len(shape.roots))

    def _tighten(self, part: Part, ranges: list[CountRange], free: FreeAmounts, limit: Integers) -> None:
        """Tighten the bounds of the blocks of a part, in the trees where they differ.

        Raises:
            Exhausted: The budget is exhausted.
        """
        for block, (low, high) in zip(part, ranges, strict=True):
            trees = np.flatnonzero((low < high) & (sum(bounds.low for bounds in ranges) < limit))
            free_amounts = {name: amounts[trees] for name, amounts in free.items()}
            effort = Budget(self._effort)
            low[trees], high[trees] = dynamic_program.tighten(
                block, free_amounts, CountRange(low[trees], high[trees]), effort
            )
            self._inputs.budget.spend(self._effort - max(0, effort.operations))
            self._effort = max(0, effort.operations)


def _combine(parts: Sequence[Sequence[CountRange]], limit: Integers) -> CountRange:
    """Return bounds for the trees from the bounds of the blocks of each part."""
    # A part without blocks has no alternative: its count is 0.
    high = np.min([limit, *(np.sum([0 * limit, *(block.high for block in part)], axis=0) for part in parts)], axis=0)
    low = np.min([high, *(np.sum([0 * limit, *(block.low for block in part)], axis=0) for part in parts)], axis=0)
    return CountRange(low, high)
