"""The order in which trees are searched, beyond the first chunk of them."""

from __future__ import annotations

import random

import pytest

from placement.index.snapshot import Snapshot
from placement.search.budget import Budget
from placement.search.narrow.narrowing import narrow
from placement.search.narrow.tree_problems import _CHUNK, tree_problems
from placement.search.query.query import Group, NameCondition, SearchQuery
from placement.search.refusals import Refusals
from tests.world import World

COUNT = 5 * _CHUNK


def order_of_trees(snapshot: Snapshot, trait: str, seed: int | None) -> list[int]:
    """Return the roots of the trees with the trait, in the order of their problems."""
    query = SearchQuery((Group("", {"VCPU": 1}, traits=NameCondition((frozenset({trait}),))),))
    narrowed = narrow(query, snapshot, Budget(), Refusals())
    order = None if seed is None else random.Random(seed)
    return [problem.tree for problem in tree_problems(narrowed, order, Budget(), Refusals())]


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """Return hosts of which four fifths have the trait COMMON, and one ninth the trait SELDOM."""
    world = World()
    for number in range(COUNT):
        traits = ["COMMON"] * bool(number % 5) + ["SELDOM"] * (number % 9 == 0)
        world.host(f"host{number}", traits=traits, VCPU=4)
    return world.snapshot()


@pytest.mark.parametrize(("trait", "is_sparse"), [("COMMON", False), ("SELDOM", True)])
def test_every_tree_is_searched_once(snapshot: Snapshot, trait: str, is_sparse: bool) -> None:
    members = snapshot.with_trait(trait)
    assert members.is_sparse == is_sparse
    expected = members.slots().tolist()
    assert order_of_trees(snapshot, trait, None) == expected
    orders = [order_of_trees(snapshot, trait, seed) for seed in range(5)]
    assert [sorted(order) for order in orders] == [expected] * 5


def test_a_random_order_is_random_in_and_beyond_the_first_chunk(snapshot: Snapshot) -> None:
    orders = [order_of_trees(snapshot, "COMMON", seed) for seed in range(200)]
    assert orders[0] == order_of_trees(snapshot, "COMMON", 0)
    expected = snapshot.with_trait("COMMON").slots().tolist()
    low = set(expected[: len(expected) // 2])
    for place in (0, _CHUNK - 1, _CHUNK, len(expected) - 1):
        # Half of the trees are low; the probability of fewer than 50 or more than 150 of 200 is one in a trillion.
        assert 50 < sum(order[place] in low for order in orders) < 150


def test_a_query_that_no_tree_serves_has_no_problem_in_any_order(snapshot: Snapshot) -> None:
    query = SearchQuery((Group("", {"VCPU": 5}),))
    for order in (None, random.Random(0)):
        narrowed = narrow(query, snapshot, Budget(), Refusals())
        assert narrowed.eligible
        assert not list(tree_problems(narrowed, order, Budget(), Refusals()))
