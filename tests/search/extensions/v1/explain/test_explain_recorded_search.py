"""Searches for explanations have the results of a plain search, but examine only one of several equivalent trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.explain import recorded_search
from placement.extensions.v1.explain.equivalent_trees import (
    MAX_PROVIDERS,
    _Rows,
    are_comparable,
    equivalent_trees,
    small_trees,
)
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.explain.recorded_search import full_budget_search, refusal_reasons, search
from placement.index.slots import SlotSet
from placement.search.budget import Budget
from placement.search.find import Settings, find
from placement.search.narrow.narrowing import narrow
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.query.query import Group, SearchQuery
from placement.search.refusals import EXAMPLES, Refusals
from placement.search.solver.canonical_form import canonical_form
from placement.search.solver.constraints import NotOnlyShared
from placement.search.solver.problem import Requirements
from tests.search.test_combine import EVEN
from tests.strategies import crowded_queries, examples, explanation_cases, search_queries, similar_trees
from tests.world import Stock, World


@st.composite
def similar(draw: st.DrawFn) -> tuple[World, SearchQuery]:
    """Draw similar trees, and a query for them."""
    world = draw(similar_trees())
    query = draw(st.one_of(crowded_queries(), search_queries(world)))
    return world, replace(query, nested=True)


def check_search(world: World, query: SearchQuery) -> None:
    """Check that a search for an explanation has the results and records of a plain search."""
    snapshot, query = world.snapshot(), replace(query, limit=None)
    plain = find(query, snapshot)
    outcome = search(query, snapshot, len(plain.candidates) + 1, Budget())
    assert outcome.refusals.combining == plain.refusals.combining
    for constraint, roots in outcome.refusals.examples.items():
        assert len(set(roots)) == min(outcome.refusals.combining[constraint], EXAMPLES)
    assert sorted(map(str, outcome.candidates)) == sorted(map(str, plain.candidates))
    if not plain.candidates:
        alone = refusal_reasons(outcome, Budget()).combining
        assert NotOnlyShared.name not in alone
        assert sum(alone.values()) == outcome.roots.count


@examples(200)
@given(case=explanation_cases())
def test_a_recorded_search_has_the_results_of_a_plain_search(case: tuple[World, SearchQuery]) -> None:
    check_search(*case)


@examples(200)
@given(case=similar() | explanation_cases())
def test_a_search_of_equivalent_trees_has_the_results_of_a_plain_search(case: tuple[World, SearchQuery]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_search, "FRUITLESS", 0)
        check_search(*case)


@examples(200)
@given(case=similar())
def test_trees_are_equivalent_if_their_canonical_forms_are_equal(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    narrowed = narrow(query, world.snapshot(), Budget(), Refusals())
    if not narrowed.roots or not are_comparable(narrowed):
        return
    problems = TreeProblems(narrowed, None, Budget())
    # The problem of a single-provider tree omits the traits that narrowing has checked.
    requirements = Requirements.from_query(query)
    forms: dict[object, list[int]] = {}
    for root in narrowed.roots.slots().tolist():
        problem = problems.complete_problem(root)._replace(requirements=requirements)
        forms.setdefault(canonical_form(problem, Budget())[0], []).append(root)
    equivalent = equivalent_trees(narrowed, narrowed.roots, Budget())
    classes = [equivalent.of_classes([number]).slots().tolist() for number in range(len(equivalent.first))]
    assert classes == [*forms.values()]
    assert equivalent.first.tolist() == [trees[0] for trees in classes]
    other_roots = [root for trees in classes[1:] for root in trees[1:]]
    assert equivalent.other_trees([0]).slots().tolist() == sorted(other_roots)


def test_trees_of_many_providers_are_not_compared() -> None:
    world = World()
    for host, children in (("small", MAX_PROVIDERS - 1), ("large", MAX_PROVIDERS)):
        world.host(host)
        for number in range(children):
            world.host(f"{host}-{number}", parent=host, VCPU=1)
    snapshot = world.snapshot()
    small = small_trees(snapshot.forest.all_roots, snapshot.forest)
    assert [snapshot.provider(slot).uuid for slot in small.slots()] == ["small"]
    groups = (Group("_1", {"VCPU": 1}), Group("_2", {"VCPU": 1}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_search, "FRUITLESS", 0)
        outcome = search(SearchQuery(groups, isolate=True), snapshot, 10_000, Budget())
    assert len(outcome.candidates) == 63 * 62 + 64 * 63


def test_the_nearest_relevant_ancestor_distinguishes_trees() -> None:
    world = World()
    for host, above in (("h1", "other"), ("h2", "top"), ("h3", "top")):
        world.host(host)
        world.host(f"{host}-top", parent=host, CUSTOM_TOP=1)
        world.host(f"{host}-other", parent=host, CUSTOM_OTHER=1)
        world.host(f"{host}-x", parent=f"{host}-{above}")
        world.host(f"{host}-y", parent=f"{host}-x")
        world.host(f"{host}-gpu", parent=f"{host}-y", PGPU=1)
    groups = (Group("_top", {"CUSTOM_TOP": 1}), Group("_other", {"CUSTOM_OTHER": 1}), Group("_gpu", {"PGPU": 1}))
    query = SearchQuery(groups, same_subtrees=(frozenset({"_top", "_gpu"}),))
    narrowed = narrow(query, world.snapshot(), Budget(), Refusals())
    equivalent = equivalent_trees(narrowed, narrowed.roots, Budget())
    assert [equivalent.of_classes([number]).count for number in range(len(equivalent.first))] == [1, 2]


def test_groups_that_together_exceed_32_bits_are_searched() -> None:
    world = World()
    for host in ("h1", "h2"):
        world.host(host, VCPU=Stock(2**31 - 1, allocation_ratio=4.0))
        world.host(f"{host}-child", parent=host, VCPU=2**31 - 1)
    groups = (Group("_1", {"VCPU": 2**31 - 1}), Group("_2", {"VCPU": 2**31 - 1}))
    check_search(world, SearchQuery(groups))
    narrowed = narrow(SearchQuery(groups), world.snapshot(), Budget(), Refusals())
    assert [*equivalent_trees(narrowed, narrowed.roots, Budget()).first] == [0]


def test_rows_with_large_numbers_are_distinguished() -> None:
    first, second = np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 1])
    rows = _Rows(5)
    for column in (first, second, np.zeros(5, np.int64), np.zeros(5, np.int64)):
        rows.append(column, 2**32)
    assert len({*rows.numbers.tolist()}) == 4
    assert rows.numbers[0] == rows.numbers[4]
    assert rows.numbers.max() < rows.bound


def test_only_one_of_many_equivalent_trees_is_searched() -> None:
    world = World()
    for number in range(400):
        world.host(f"h{number}")
        for device in range(1 + number % 2):
            world.host(f"h{number}-{device}", parent=f"h{number}", PGPU=2)
    query = SearchQuery(tuple(Group(f"_{number}", {"PGPU": 2}) for number in range(3)), isolate=True)
    snapshot, operations = world.snapshot(), 1_400
    outcome = search(query, snapshot, 10, Budget(operations))
    assert (outcome.candidates, outcome.complete, outcome.refusals.combining) == ([], True, {"group_policy": 400})
    assert find(query, snapshot, Settings(operations=operations)).shortage == "operations"


# --- an explanation finds the candidates of the search ---


def hard_hosts(number: int) -> World:
    """Return hosts where ``EVEN`` groups do not fit, which only trials show, and one where they fit."""
    world = World()
    capacity = sum(EVEN) // 4
    for host in range(number + 1):
        world.host(f"h{host}")
        free = (capacity - 2 * host, capacity + 2 * host, capacity, capacity) if host < number else (5_000,) * 4
        for device, amount in enumerate(free):
            world.host(f"h{host}-{device}", parent=f"h{host}", VGPU=amount)
    return world


def test_an_explanation_finds_a_candidate_where_the_search_does() -> None:
    query = SearchQuery(tuple(Group(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(EVEN)))
    snapshot = hard_hosts(5).snapshot()
    assert find(replace(query, limit=1), snapshot).candidates
    explanation = explain(query, snapshot)
    assert (explanation.found, explanation.limited, explanation.complete) == (1, True, False)
    assert (explanation.summary, explanation.obstacle) == ("There is at least 1 candidate.", None)
    # With a budget too small for the search, neither finds one.
    settings = Settings(operations=60_000)
    assert not find(query, snapshot, settings).candidates
    assert (explain(query, snapshot, settings).found, explain(query, snapshot, settings).complete) == (0, False)


def test_a_search_with_the_full_budget_stops_at_the_first_candidate() -> None:
    world = World()
    world.host("host", VCPU=1)
    outcome = full_budget_search(SearchQuery((Group("", {"VCPU": 1}),)), world.snapshot(), Settings())
    assert (len(outcome.candidates), outcome.limited, outcome.complete) == (1, True, False)


def test_a_count_that_is_cut_short_is_limited() -> None:
    world = World()
    for number in range(60):
        world.host(f"h{number}", CUSTOM_NUMBER=number + 1)
        for device in range(10):
            world.host(f"h{number}-{device}", parent=f"h{number}", VGPU=10 + device + number)
    query = SearchQuery(tuple(Group(f"_{number}", {"VGPU": 1 + number}) for number in range(20)))
    explanation = explain(query, world.snapshot(), Settings(operations=12_000))
    assert 0 < explanation.found < 1_000
    assert (explanation.limited, explanation.complete) == (True, False)


def test_equivalent_trees_are_sorted_even_if_their_first_roots_are_not() -> None:
    """Sets of slots are searched by bisection, so equivalent trees are sorted even if their first roots are not."""
    world = World()
    for number in range(6):
        world.host(f"h{number}")
        world.host(f"h{number}-a", parent=f"h{number}", PGPU=2 - number % 2)
        world.host(f"h{number}-b", parent=f"h{number}", PGPU=2)
    query = SearchQuery((Group("_1", {"PGPU": 1}), Group("_2", {"PGPU": 2})))
    narrowed = narrow(query, world.snapshot(), Budget(), Refusals())
    equivalent = equivalent_trees(narrowed, SlotSet.sparse(narrowed.roots.slots()), Budget())
    assert equivalent.other_trees([]).slots().tolist() == sorted(equivalent.other_trees([]).slots().tolist())
    assert len(equivalent.other_trees([])) == 4


def test_equal_groups_are_relaxed_once() -> None:
    world = World()
    world.host("host")
    for number in range(3):
        world.host(f"gpu-{number}", parent="host", PGPU=2)
    query = SearchQuery(tuple(Group(f"_{number}", {"PGPU": 2}) for number in range(4)), isolate=True)
    relaxations = explain(query, world.snapshot()).relaxations
    assert [(relaxation.text, relaxation.found) for relaxation in relaxations] == [("without resources_0=PGPU:2", 6)]
