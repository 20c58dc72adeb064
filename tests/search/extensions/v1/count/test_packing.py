"""Packings are compared with the brute force: all ways to place patterns in free amounts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.count import branching, packing, simplex
from placement.extensions.v1.count.packing import pack
from placement.search.budget import Budget
from tests.strategies import examples

Rows = list[tuple[int, ...]]
#: More than is free in any tree of these tests.
MOST = 1000


def most(patterns: Rows, free: tuple[int, ...]) -> int:
    """Return how many patterns fit, by trying all numbers of each."""

    @cache
    def best(first: int, free: tuple[int, ...]) -> int:
        if first == len(patterns):
            return 0
        fitting = min(have // take for have, take in zip(free, patterns[first], strict=True) if take)
        return max(
            times + best(first + 1, tuple(a - times * b for a, b in zip(free, patterns[first], strict=True)))
            for times in range(fitting + 1)
        )

    return best(0, free)


def packed(
    patterns: Rows, trees: Rows, limits: list[int] | None = None, operations: int = 10**6
) -> list[tuple[int, int]]:
    """Return the sum and the bound of each tree; a solution takes no more than is free."""
    limits = [MOST] * len(trees) if limits is None else limits
    result = pack(np.array(patterns), np.array(trees), np.array(limits), Budget(operations))
    assert (result.times >= 0).all()
    assert (result.times @ np.array(patterns) <= np.array(trees)).all()
    return list(zip(result.times.sum(axis=1).tolist(), result.bounds.tolist(), strict=True))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Rows, Rows]:
    rows = draw(st.integers(1, 5))
    pattern = st.tuples(*[st.sampled_from((0, 1, 0, 2, 1, 3))] * rows).filter(any)
    patterns = draw(st.lists(pattern, min_size=1, max_size=6))
    tree = st.tuples(*[st.one_of(st.integers(0, 9), st.sampled_from((5, 7, 40)))] * rows)
    return patterns, draw(st.lists(tree, min_size=1, max_size=4))


@examples(300)
@given(program=programs())
def test_small_packings_are_solved(program: tuple[Rows, Rows]) -> None:
    patterns, trees = program
    greatest = [most(patterns, free) for free in trees]
    assert packed(patterns, trees) == [(each, each) for each in greatest]
    assert packed(patterns, trees, limits=greatest) == [(each, each) for each in greatest]


@examples(150)
@given(program=programs(), operations=st.integers(0, 400))
def test_with_little_effort_the_solution_is_below_and_the_bound_above(
    program: tuple[Rows, Rows], operations: int
) -> None:
    patterns, trees = program
    for free, (found, bound) in zip(trees, packed(patterns, trees, operations=operations), strict=True):
        assert found <= most(patterns, free) <= bound


@examples(150)
@given(program=programs())
def test_the_search_for_whole_numbers_needs_no_good_start(program: tuple[Rows, Rows]) -> None:
    patterns, trees = program
    ones = branching.Weights((1,) * len(trees[0]), min(map(sum, patterns)))
    for free in trees:
        search = branching.Branching(patterns, [0] * len(patterns), [ones])
        search.run(free)
        greatest = most(patterns, free)
        assert sum(search.times) <= greatest
        assert sum(search.times) == greatest or not search.complete


def pairs(devices: int) -> Rows:
    """Return the patterns of two isolated groups on the devices of a host."""
    return [
        tuple(int(device in (one, other)) for device in range(devices))
        for one in range(devices)
        for other in range(one)
    ]


def test_one_relaxation_counts_all_trees_where_its_basis_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand trees of two nodes with a device each, all with other amounts, take a few relaxations."""
    solved: list[object] = []
    solve = simplex.solve
    monkeypatch.setattr(packing.simplex, "solve", lambda *which: solved.append(which) or solve(*which))
    # A disk, and the processors and devices of two nodes.
    patterns = [(10, 2, 1, 0, 0), (10, 0, 0, 2, 1)]
    trees = [(10 * (number % 97), number % 40, number % 23, number % 31, number % 7) for number in range(1000)]
    expected = [min(disk // 10, min(a // 2, b) + min(c // 2, d)) for disk, a, b, c, d in trees]
    assert packed(patterns, trees) == [(each, each) for each in expected]
    assert 0 < len(solved) < 20


def test_parts_without_a_common_row_are_solved_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three devices with room for one each have 3/2 pairs, if not in whole numbers; eight such nodes have 8, not 12."""
    monkeypatch.setattr(branching, "STATES", 20)
    node = pairs(3)
    patterns = [(0,) * 3 * place + pair + (0,) * 3 * (7 - place) + (1,) for place in range(8) for pair in node]
    assert packed(patterns, [(1,) * 24 + (100,)], limits=[12]) == [(8, 8)]
    # The last row binds: the nodes are no longer apart.
    assert packed(patterns, [(1,) * 24 + (5,)], limits=[5]) == [(5, 5)]


def test_the_search_reaches_a_state_again_with_more() -> None:
    """The first pattern leaves as much of the first row as the second one, twice, which is more."""
    search = branching.Branching([(2, 0), (1, 0), (0, 1)], [0, 0, 0], [branching.Weights((1, 1), 1)])
    search.run((2, 1))
    assert (search.times, search.complete) == ([0, 2, 1], True)


@pytest.mark.parametrize(
    ("patterns", "free", "bound"),
    [
        ([(3, 0), (0, 5)], 2**50, 2**50 // 3 + 2**50 // 5),
        # Weights of such amounts are large: their sums would exceed 64 bits.
        ([(4093, 1), (1, 4091)], 2**52 - 1, 2**52 // 4093 + 2**52 // 4091),
    ],
)
def test_large_amounts_do_not_overflow(patterns: Rows, free: int, bound: int) -> None:
    ((found, least),) = packed(patterns, [(free, free)], limits=[2**52])
    assert bound * 0.999 < found <= least <= bound


def test_a_search_of_too_many_states_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = [(0, 2, 2), (3, 1, 1), (0, 2, 0), (1, 0, 3)]
    assert packed(patterns, [(3, 4, 3)]) == [(3, 3)]
    monkeypatch.setattr(branching, "STATES", 3)
    assert packed(patterns, [(3, 4, 3)]) == [(2, 3)]
