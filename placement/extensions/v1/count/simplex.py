"""The linear relaxation of a packing: how many patterns fit if parts of them could be placed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.extensions.v1.count.supply import Integers

Floats = npt.NDArray[np.float64]

#: A number closer to zero counts as zero.
_ZERO = 1e-9


class Optimum(NamedTuple):
    """An optimal vertex of the relaxation.

    Attributes:
        basis: Indices of patterns, and of rows as ``len(patterns) + row`` where some of the row is left.
        solved: The inverse of the basis, by which free amounts give the value of each basis variable.  The vertex is
            optimal for all free amounts for which no value is negative.
        prices: The dual solution: what one more unit of each row is worth, in patterns.
        pivots: How many steps it took.
    """

    basis: npt.NDArray[np.intp]
    solved: Floats
    prices: Floats
    pivots: int


def solve(patterns: Integers, free: Integers, most_pivots: int) -> Optimum | None:
    """Maximise the sum of x, where ``x @ patterns <= free`` and no x is negative.

    The primal simplex method with the rule of Bland, "New finite pivoting rules for the simplex method", Mathematics
    of Operations Research 2, 1977, which does not cycle.

    Args:
        patterns: By pattern and row, not negative.
        free: By row, not negative.
        most_pivots: After so many steps the result is None.
    """
    count, rows = patterns.shape
    table = np.hstack([patterns.T.astype(np.float64), np.eye(rows), free.astype(np.float64)[:, None]])
    costs = np.concatenate([np.full(count, -1.0), np.zeros(rows + 1)])
    basis = np.arange(count, count + rows, dtype=np.intp)
    for pivots in range(most_pivots):
        improving = np.flatnonzero(costs[:-1] < -_ZERO)
        if not len(improving):
            return Optimum(basis, table[:, count:-1], np.maximum(costs[count:-1], 0), pivots)
        entering = improving[0]
        column = table[:, entering]
        candidates = np.flatnonzero(column > _ZERO)
        ratios = table[candidates, -1] / column[candidates]
        tied = candidates[ratios <= ratios.min() + _ZERO]
        leaving = tied[np.argmin(basis[tied])]
        table[leaving] /= table[leaving, entering]
        factors = table[:, entering].copy()
        factors[leaving] = 0
        table -= np.outer(factors, table[leaving])
        costs -= costs[entering] * table[leaving]
        basis[leaving] = entering
    return None
