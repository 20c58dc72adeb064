"""Explanations against the brute force, over random forests and queries."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.explain.conditions import Condition, conditions, parameter, with_amounts, without
from placement.extensions.v1.explain.explaining import explain
from placement.extensions.v1.explain.explanation import Explanation, Relaxation
from placement.extensions.v1.explain.steps import NAMED
from placement.index.snapshot import Snapshot
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search.narrowing_oracle import Expected, Narrowing, blocking, most
from tests.search.oracle import answers, answers_of, fits, meets
from tests.strategies import crowded_queries, crowds, examples, search_queries, worlds
from tests.world import Stock, World

#: What amounts are multiplied by, so that many do not fit.
FACTORS = (1, 1, 1, 2, 3, 5)


@st.composite
def cases(draw: st.DrawFn) -> tuple[World, SearchQuery]:
    """A world, and a query that often has no candidate in it."""
    if draw(st.integers(0, 2)) == 0:
        world, query = draw(crowds()), draw(crowded_queries())
    else:
        world = draw(worlds())
        query = draw(search_queries(world))
    groups = tuple(
        replace(
            group, resources={name: amount * draw(st.sampled_from(FACTORS)) for name, amount in group.resources.items()}
        )
        for group in query.groups
    )
    return world, replace(query, groups=groups, nested=True)


def names(snapshot: Snapshot, slots: tuple[int, ...]) -> frozenset[str]:
    return frozenset(snapshot.provider(slot).uuid for slot in slots)


# --- what a search found ---


@examples(200)
@given(case=cases())
def test_the_number_of_candidates_is_that_of_the_search(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    assert (explanation.found, explanation.limited) == (len(answers(world, query)), False)
    assert (explanation.obstacle is None) == (explanation.found > 0)
    if explanation.found:
        assert (explanation.near_misses, explanation.relaxations) == ((), ())


# --- steps ---


@examples(200)
@given(case=cases())
def test_every_count_of_every_rule(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    expected = list(Narrowing(world, query).steps())
    assert [(step.rule, step.group) for step in explanation.steps] == [(each.rule, each.group) for each in expected]
    for step, each in zip(explanation.steps, expected, strict=True):
        assert (tuple(step.before), tuple(step.after)) == (each.before, each.after)
        removed = names(explanation.snapshot, step.removed)
        assert removed <= each.removed
        assert len(removed) == min(NAMED, len(each.removed))
        check_amounts(world, step.amounts, each)


def check_amounts(world: World, amounts: object, expected: Expected) -> None:
    if expected.amount is None:
        assert amounts is None
        return
    class_, amount, before = expected.amount
    assert (amounts.resource_class, amounts.amount) == (class_, amount)
    assert amounts.blocked_by == blocking(world, class_, amount, expected.removed)
    assert amounts.most == most(world, class_, before)


@examples(200)
@given(case=cases())
def test_combinations_account_for_every_tree_that_narrowing_leaves(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    if explanation.found:
        return
    narrowing = Narrowing(world, query)
    list(narrowing.steps())
    assert sum(combination.trees for combination in explanation.combinations) == len(narrowing.roots)
    for combination in explanation.combinations:
        assert names(explanation.snapshot, combination.examples) <= narrowing.roots
        assert len(combination.examples) == min(NAMED, combination.trees)


# --- relaxations ---


@examples(200)
@given(case=cases())
def test_each_relaxation_helps_and_is_minimal_in_its_kind(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    for relaxation in explanation.relaxations:
        found = answers(world, relaxation.query)
        assert found
        assert (relaxation.found, relaxation.limited) == (min(len(found), 100), len(found) >= 100)
        check_size(world, query, relaxation)


def check_size(world: World, query: SearchQuery, relaxation: Relaxation) -> None:
    """Check that a relaxation changes one condition, and an amount no more than needed."""
    changed = [condition for condition in conditions(query) if parameter(condition, query) == relaxation.parameter]
    if relaxation.kind == "several":
        assert not any(answers(world, single) for c in conditions(query) if (single := without(query, c)) is not None)
        return
    assert relaxation.size <= 1.5
    condition = changed[0]
    if relaxation.kind == "amount":
        (new,) = {
            group.resources[condition.resource_class]
            for group in relaxation.query.groups
            if group.suffix == condition.suffix
        }
        between = range(min(new, condition.amount) + 1, max(new, condition.amount))
        assert not any(answers(world, with_amount(query, condition, amount)) for amount in between)
        assert relaxation.query == with_amount(query, condition, new)
    elif relaxation.text.startswith("without"):
        assert relaxation.query == without(query, condition)


def with_amount(query: SearchQuery, condition: Condition, amount: int) -> SearchQuery:
    return with_amounts(query, condition.suffix or "", {condition.resource_class: amount})


@examples(200)
@given(case=cases())
def test_no_relaxation_of_one_condition_is_missing(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    if explanation.found:
        return
    offered = {relaxation.parameter for relaxation in explanation.relaxations if relaxation.kind != "several"}
    for condition in conditions(query):
        relaxed = without(query, condition)
        if relaxed is not None and answers(world, relaxed):
            assert parameter(condition, query) in offered
        lower = (with_amount(query, condition, n) for n in range(1, condition.amount))
        if condition.kind == "amount" and any(answers(world, each) for each in lower):
            assert parameter(condition, query) in offered


def texts(world: World, query: SearchQuery) -> list[str]:
    return [relaxation.text for relaxation in explain(query, world.snapshot()).relaxations]


def test_three_other_aggregates_are_offered_those_of_the_most_candidates_first() -> None:
    world = World()
    for number, aggregates in enumerate((("B",), ("E", "C"), ("D", "E"), ("E", "D", "C"))):
        world.host(f"host{number}", aggregates=aggregates, VCPU=1)
    in_a = NameCondition((frozenset({"A"}),))
    assert texts(world, SearchQuery((Group("", {"VCPU": 1}, aggregates=in_a),))) == [
        *(f"with member_of={name}" for name in "ECD"),
        "without member_of=A",
    ]


def test_aggregates_that_were_asked_for_are_not_among_the_three_others() -> None:
    """A part of each candidate is in them."""
    world = World()
    world.host("host", aggregates=["P"], VCPU=1)
    world.sharing("pool", aggregates=["P", "A", "B", "C"], DISK_GB=1)
    in_any = NameCondition((frozenset("ABC"),))
    assert texts(world, SearchQuery((Group("", {"VCPU": 1, "DISK_GB": 1}, aggregates=in_any),))) == [
        "with member_of=P",
        "without member_of=in:A,B,C",
        "without resources=VCPU:1",
    ]


# --- near misses ---


@examples(200)
@given(case=cases())
def test_each_near_miss_has_candidates_with_what_is_missing(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    for near in explanation.near_misses:
        root = explanation.snapshot.provider(near.root).uuid
        assert meets(near.query.root_traits, world.members[root].traits)
        assert answers_of(world, near.query, root)
        assert near.missing
        check_missing(world, query, explanation, near.missing)


def check_missing(world: World, query: SearchQuery, explanation: Explanation, missing: object) -> None:
    for lack in missing:
        if lack.provider is None or lack.needed is None:
            continue
        member = world.members[explanation.snapshot.provider(lack.provider).uuid]
        (condition,) = [c for c in conditions(query) if parameter(c, query) == lack.parameter]
        assert lack.needed == condition.amount
        fitting = [n for n in range(1, lack.needed) if fits(member, condition.resource_class, n)]
        assert lack.available == max(fitting, default=0)


@examples(200)
@given(case=cases())
def test_a_tree_comes_near_if_one_change_is_enough(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    # Where groups compete for the same providers, each of them lacks nothing by itself.
    compete = bool(explanation.combinations)
    if not compete and any(one.kind not in ("several", "resource") for one in explanation.relaxations):
        assert explanation.near_misses


def test_near_misses_are_ordered_by_what_they_lack() -> None:
    world = World()
    world.host("both", VCPU=2, aggregates=["B"])
    world.host("amount", VCPU=3, aggregates=["A"])
    world.host("more", VCPU=4, aggregates=["A"])
    world.host("aggregate", VCPU=8, aggregates=["B"])
    query = SearchQuery((Group("1", {"VCPU": 5}, aggregates=NameCondition((frozenset({"A"}),))),))
    explanation = explain(query, world.snapshot())
    nearest = {explanation.snapshot.provider(near.root).uuid: near.missing for near in explanation.near_misses}
    assert [*nearest] == ["aggregate", "more", "amount"]
    assert [(lack.parameter, lack.needed, lack.available) for lack in nearest["more"]] == [("resources1=VCPU:5", 5, 4)]
    assert [lack.text for lack in nearest["aggregate"]] == ["aggregate is not in A"]


def test_a_provider_that_gives_more_comes_nearer_than_one_without_inventory() -> None:
    world = World()
    world.host("host", DISK_GB=4)
    world.host("child", parent="host", VCPU=Stock(4, min_unit=2))
    (near,) = explain(SearchQuery((Group("", {"VCPU": 1}),)), world.snapshot()).near_misses
    assert [lack.text for lack in near.missing] == ["child has units of VCPU that allow 2"]


def test_a_query_of_very_many_groups_has_no_near_misses() -> None:
    world = World()
    world.host("host", VCPU=4)
    groups = tuple(Group(f"_{number}", {"VCPU": 5}) for number in range(33))
    few, many = explain(SearchQuery(groups[:32]), world.snapshot()), explain(SearchQuery(groups), world.snapshot())
    # A tree that lacks 32 amounts is not near; with one more it is not looked at.
    assert (few.near_misses, few.complete) == ((), True)
    assert (many.near_misses, many.complete) == ((), False)


def test_what_the_root_lacks_is_missing() -> None:
    world = World()
    world.host("host", VCPU=4, traits=["OLD"])
    root = NameCondition((frozenset({"FAST"}),), frozenset({"OLD", "BROKEN"}))
    (near,) = explain(SearchQuery((Group("", {"VCPU": 1}),), root_traits=root), world.snapshot()).near_misses
    assert [lack.text for lack in near.missing] == ["the root host has OLD", "the root host does not have FAST"]
    assert near.query.root_traits == NameCondition((), frozenset({"BROKEN"}))


def test_amounts_that_add_up_are_lowered_to_what_fits() -> None:
    world = World()
    world.host("host", VCPU=2, traits=["FAST"])
    world.host("child", parent="host", VCPU=4, traits=["FAST"])
    fast = NameCondition((frozenset({"FAST"}),))
    query = SearchQuery((Group("", {"VCPU": 4}), Group("1", {"VCPU": 6}, fast)))
    (near,) = explain(query, world.snapshot()).near_misses
    assert near.changes == ("with resources1=VCPU:2",)
    assert [lack.parameter for lack in near.missing] == ["resources1=VCPU:6"]
