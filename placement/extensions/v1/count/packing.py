"""How many times patterns fit into free amounts: an integer program, for all trees that have the same patterns at once.

A pattern is what one candidate takes: an amount of each row, where a row is a class of a provider (Gilmore and Gomory,
"A linear programming approach to the cutting-stock problem", Operations Research 9, 1961).  Placements make no room, so
that what fits in one order fits in every order: the count of a tree is the greatest sum of whole numbers x for which
``x @ patterns <= free``.

Weights of the rows give a number that no solution exceeds: if each pattern takes at least m of weighted amounts, no
more fit than the weighted free amounts divided by m.  The dual solution of the linear relaxation (``simplex``) gives
the best weights.  They hold for all trees, as does its basis wherever it is feasible, so that few relaxations are
solved for thousands of trees.  Weights are whole numbers, and every solution is verified in whole numbers: results do
not depend on how floats are rounded.  Where the numbers do not meet, branch and bound searches for a better solution.
"""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count import simplex
from placement.extensions.v1.count.branching import Branching, Weights
from placement.extensions.v1.count.supply import Integers
from placement.index.slots import Slots
from placement.search.budget import Budget, Exhausted

#: The greatest denominator of prices, and the greatest weight.
_DENOMINATOR, _GREATEST = 2**12, 2**24
#: Sums above it could exceed 64 bits.
_MOST_SUM = 2.0**62
#: What a float may be off by.
_TOLERANCE = 1e-6
#: The most steps of a relaxation; the operations of one, and for how many cells of its table it takes one more.
_PIVOTS, _PIVOT, _CELLS = 500, 20, 500
#: Operations of a state that branch and bound looks at.
_STATE = 10
#: One operation is for so many cells of the arrays of many trees.
_AT_ONCE = 500


class Packed(NamedTuple):
    """By tree: how often each pattern is placed, and a number that no way to place exceeds."""

    times: Integers
    bounds: Integers


def pack(patterns: Integers, free: Integers, most: Integers, effort: Budget) -> Packed:
    """Return a good way to place the patterns in each tree; it is the best one where its sum is the bound.

    Args:
        patterns: By pattern and row; each takes something.
        free: By tree and row.
        most: For each tree a number that no way to place exceeds.
        effort: When it is used up, the best numbers so far are the result.
    """
    if not len(patterns):
        return Packed(np.zeros((len(free), 0), np.int64), np.zeros(len(free), np.int64))
    units = np.maximum(np.gcd.reduce(patterns, axis=0), 1)
    patterns, free = patterns // units, free // units
    # Rows with enough for ``most`` do not matter: without them patterns become independent of each other.
    binding = free // np.maximum(patterns.max(axis=0), 1) < most[:, None]
    times, bounds = np.zeros((len(free), len(patterns)), np.int64), np.zeros(len(free), np.int64)
    masks, which = np.unique(binding, axis=0, return_inverse=True)
    for number, mask in enumerate(masks):
        trees = np.flatnonzero(which.ravel() == number)
        for component in _components(patterns[:, mask]):
            rows = np.flatnonzero(mask & patterns[component].any(axis=0))
            if not len(rows):
                times[np.ix_(trees, component[:1])] = most[trees, None]
                bounds[trees] += most[trees]
                continue
            inside = _Component(patterns[np.ix_(component, rows)], free[np.ix_(trees, rows)], effort)
            times[np.ix_(trees, component)] = inside.times[inside.inverse]
            bounds[trees] += inside.bounds[inside.inverse]
    # More than ``most`` may fit into the rows that are left.
    before = np.cumsum(times, axis=1) - times
    return Packed(np.minimum(times, np.maximum(most[:, None] - before, 0)), np.minimum(bounds, most))


def _components(patterns: Integers) -> list[Slots]:
    """Return the indices of the patterns of each component: no two of them have a row in common."""
    names = np.arange(len(patterns))
    for row in patterns.T:
        joined = np.unique(names[row > 0])
        names[np.isin(names, joined)] = joined[0] if len(joined) else -1
    return [np.flatnonzero(names == name) for name in np.unique(names)]


class _Component:
    """Patterns that depend on each other, for several trees.

    Attributes:
        inverse: For each tree, the index of the free amounts that it has.
        times: How often each pattern is placed, by free amounts.
        bounds: A number that no way to place exceeds, by free amounts.
    """

    def __init__(self, patterns: Integers, free: Integers, effort: Budget) -> None:
        """Place the patterns."""
        self._patterns = patterns
        self._free, _, self.inverse = distinct(free)
        self._effort = effort
        self._weights: list[Weights] = []
        alone = [self._fitting(pattern, self._free) for pattern in patterns]
        self.bounds: Integers = np.sum(alone, axis=0)
        self.times = np.zeros((len(self._free), len(patterns)), np.int64)
        self._keep_better(np.arange(len(self._free)), self.times)
        with contextlib.suppress(Exhausted):
            self._improve()

    @staticmethod
    def _fitting(pattern: Integers, left: Integers) -> Integers:
        """Return how often a pattern fits, by tree."""
        rows = np.flatnonzero(pattern)
        fitting: Integers = (left[:, rows] // pattern[rows]).min(axis=1)
        return fitting

    def _filled(self, trees: Slots, times: Integers) -> Integers:
        """Return solutions to which no pattern can be added: each is added in turn, as often as it fits."""
        times = times.copy()
        left = self._free[trees] - times @ self._patterns
        for number, pattern in enumerate(self._patterns):
            fitting = self._fitting(pattern, left)
            times[:, number] += fitting
            left -= fitting[:, None] * pattern
        return times

    def _improve(self) -> None:
        """Raise solutions and lower bounds until they meet, or until no way is known.

        Raises:
            Exhausted: The effort is used up.
        """
        tried = np.zeros(len(self._free), np.bool_)
        while len(trees := np.flatnonzero(~tried & (self.times.sum(axis=1) < self.bounds))):
            tried[trees[0]] = True
            self._relax(trees)
            if self.times[trees[0]].sum() < self.bounds[trees[0]]:
                self._branch(trees[0])

    def _relax(self, trees: Slots) -> None:
        """Solve the relaxation of the first of the trees, and use the result for all of them.

        Raises:
            Exhausted: The effort is used up.
        """
        count, rows = self._patterns.shape
        self._effort.spend(_PIVOT + len(trees) * (count + rows) // _AT_ONCE)
        optimum = simplex.solve(self._patterns, self._free[trees[0]], _PIVOTS)
        pivots = _PIVOTS if optimum is None else optimum.pivots
        self._effort.spend(pivots * (_PIVOT + rows * (count + rows) // _CELLS))
        if optimum is None:
            return
        free = self._free[trees]
        weights = _integers(optimum.prices)
        least = int((self._patterns @ weights).min())
        if least > 0 and float(free.max()) * float(weights.sum()) < _MOST_SUM:
            self._weights.append(Weights(tuple(weights.tolist()), least))
            self.bounds[trees] = np.minimum(self.bounds[trees], free @ weights // least)
        # The vertex, rounded down, where the basis is feasible, and all that fits beside it.
        values = free @ optimum.solved.T
        rounded = np.zeros((len(trees), count), np.int64)
        used = optimum.basis < count
        rounded[:, optimum.basis[used]] = np.floor(values[:, used] + _TOLERANCE)
        fitting = (rounded >= 0).all(axis=1) & (rounded @ self._patterns <= free).all(axis=1)
        self._keep_better(trees[fitting], rounded[fitting])

    def _branch(self, tree: int) -> None:
        """Search for a better solution for one tree.

        Raises:
            Exhausted: The effort is used up.
        """
        if not self._weights:
            return
        self._effort.spend(_STATE)
        free = self._free[tree]
        search = Branching(self._patterns.tolist(), self.times[tree].tolist(), self._weights)
        search.run(free.tolist())
        self._keep_better(np.array([tree]), np.array([search.times]))
        if search.complete:
            self.bounds[tree] = sum(search.times)
        self._effort.spend(_STATE * search.states)

    def _keep_better(self, trees: Slots, times: Integers) -> None:
        """Add what fits beside solutions, and keep those that are better than what is known."""
        times = self._filled(trees, times)
        better = times.sum(axis=1) > self.times[trees].sum(axis=1)
        self.times[trees[better]] = times[better]


def distinct(rows: Integers) -> tuple[Integers, Slots, Slots]:
    """Return the distinct rows, the index of the first of each, and for each row the index of its equal in them."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], first, inverse.ravel()


def _integers(prices: simplex.Floats) -> Integers:
    """Return whole numbers in the ratios of the prices, or nearly: prices are fractions of small denominators."""
    fractions = [Fraction(price).limit_denominator(_DENOMINATOR) for price in prices.tolist()]
    common = math.lcm(*(fraction.denominator for fraction in fractions))
    if common > _GREATEST:
        return np.round(prices * _GREATEST).astype(np.int64)
    return np.array([int(fraction * common) for fraction in fractions], np.int64)
