"""An explanation agrees with the brute force: steps, relaxations, near misses, the obstacle, and mistakes.

The examples state the expected results of the brute force.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.query_text import query_string
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search import oracle
from tests.search.explanation_judge import judge
from tests.search.explanation_oracle import Expected, mistakes
from tests.search.trials import Trials
from tests.strategies import examples, explanation_cases
from tests.world import Stock, World


@examples(600)
@given(case=explanation_cases())
def test_an_explanation_agrees_with_the_brute_force(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    assert judge(world, query, explanation) == []


@examples(200)
@given(case=explanation_cases(), forbidden=st.booleans())
def test_an_explanation_agrees_with_the_brute_force_if_a_trait_does_not_exist(
    case: tuple[World, SearchQuery], forbidden: bool
) -> None:
    world, query = case
    first, *other_groups = query.groups
    unknown, traits = frozenset({"UNKNOWN"}), first.traits
    if forbidden:
        traits = replace(traits, none_of=traits.none_of | unknown)
    else:
        traits = replace(traits, any_of=tuple(names | unknown for names in traits.any_of) or (unknown,))
    query = replace(query, groups=(replace(first, traits=traits), *other_groups))
    assert judge(world, query, explain(query, world.snapshot(), None, unknown), unknown) == []


@examples(200)
@given(case=explanation_cases())
def test_trials_and_brute_force_have_the_same_candidates(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    trials = Trials(world)
    assert trials.number(query, 10_000) == len(oracle.candidates(world, query))
    anchors = frozenset(oracle.anchors(world, query))
    assert trials.trees(query) == {root for root in anchors if oracle.candidates_of(world, query, root)}


# --- examples ---


def names(*required: str, forbidden: tuple[str, ...] = ()) -> NameCondition:
    """Return a condition; ``T0|T1`` are alternatives."""
    return NameCondition(tuple(frozenset(alternatives.split("|")) for alternatives in required), frozenset(forbidden))


def pair() -> World:
    """Return a host and its child, each with one VCPU and its own trait."""
    world = World()
    world.host("host", VCPU=1, traits=["T0"])
    world.host("child", parent="host", VCPU=1, traits=["T1"])
    return world


@pytest.mark.parametrize("condition", [names(), names("T2")])
def test_a_group_that_only_forbids_an_unknown_trait_is_removed_with_its_amount(condition: NameCondition) -> None:
    """Otherwise it would still need a provider: the query would be invalid, and its candidates different."""
    groups = (
        Group("1", {"VCPU": 1}, names(forbidden=("UNKNOWN",))),
        Group("2", {"VCPU": 1}, condition),
        Group("3", {"VCPU": 1}),
    )
    query, world = SearchQuery(groups, same_subtrees=(frozenset("12"),)), pair()
    unknown = frozenset({"UNKNOWN"})
    explanation = explain(query, world.snapshot(), None, unknown)
    assert explanation.relaxations
    assert judge(world, query, explanation, unknown) == []


def test_the_obstacle_is_two_traits_if_no_provider_of_the_one_class_has_both() -> None:
    query = SearchQuery((Group("1", {"VCPU": 1}), Group("2", {"VCPU": 1}), Group("", {"VCPU": 1}, names("T0", "T1"))))
    world = pair()
    world.host("sibling", parent="host", VCPU=1, traits=["T0"])
    explanation = explain(query, world.snapshot())
    assert explanation.obstacle == ("required", None)
    assert judge(world, query, explanation) == []


def hosts(number: int, **stock: int | Stock) -> World:
    world = World()
    for host in range(number):
        world.host(f"h{host}", **stock)
    return world


def devices(number: int, **stock: int) -> World:
    """Return a host with ``number`` children."""
    world = World()
    world.host("h0")
    for device in range(number):
        world.host(f"d{device}", parent="h0", **stock)
    return world


def with_pool(world: World, *, aggregates: list[str], **stock: int) -> World:
    world.sharing("pool", aggregates=aggregates, traits=["T0"], **stock)
    return world


def one_host(**more: object) -> World:
    world = World()
    world.host("h0", **more)
    return world


def with_child(world: World, **more: object) -> World:
    world.host("child", parent="h0", **more)
    return world


def subtree(*suffixes: str) -> tuple[frozenset[str], ...]:
    return (frozenset(suffixes),)


@pytest.mark.parametrize(
    ("world", "query", "expected"),
    [
        pytest.param(
            one_host(A=2, traits=["T0"]),
            SearchQuery((Group("", {"A": 1}), Group("_G", {"C": 1}, names("T0")))),
            ["without resources_G=C:1&required_G=T0"],
            id="the last class of a group goes with the other conditions of the group",
        ),
        pytest.param(
            with_pool(one_host(A=2, traits=["T2"], aggregates=["a"]), aggregates=["a"], A=3, C=14),
            SearchQuery((Group("", {"A": 7, "C": 5}, names("T0", "T2")),)),
            ["with resources=A:2"],
            id="the providers of an amount have the traits together with others",
        ),
        pytest.param(
            with_child(one_host(aggregates=["b"]), A=5, aggregates=["a"]),
            SearchQuery((Group("", {"A": 5}, aggregates=names("a", "b")),)),
            ["without member_of=a", "without member_of=b"],
            id="either of two aggregates",
        ),
        pytest.param(
            one_host(C=1),
            SearchQuery((Group("", {"C": 1}), Group("_0", {"C": 2}, names(forbidden=("T1",))))),
            ["without resources_0=C:2&required_0=!T1"],
            id="a group that takes what another one needs",
        ),
        pytest.param(
            with_child(one_host(A=1), traits=["T0"]),
            SearchQuery((Group("_R", {}, names("T0")), Group("_1", {"A": 2})), same_subtrees=subtree("_R", "_1")),
            ["with resources_1=A:1"],
            id="an amount beside a group without resources",
        ),
        pytest.param(
            with_child(one_host(traits=["T1"]), A=1),
            SearchQuery((Group("_R", {}, names("T0")), Group("_1", {"A": 1})), same_subtrees=subtree("_R", "_1")),
            ["without required_R=T0", "without same_subtree=_1,_R&required_R=T0"],
            id="a group without resources goes with its last condition, and with the subtree",
        ),
        pytest.param(
            with_child(one_host(A=1), aggregates=["a"]),
            SearchQuery(
                (Group("_R", {}, aggregates=names("a", "b")), Group("_1", {"A": 1})),
                same_subtrees=subtree("_R", "_1"),
            ),
            ["without member_of_R=b", "without same_subtree=_1,_R&member_of_R=a&member_of_R=b"],
            id="a group without resources keeps its other condition",
        ),
        pytest.param(
            hosts(1, A=3),
            SearchQuery((Group("_1", {"A": 2}), Group("_2", {"A": 1})), isolate=True),
            ["without group_policy=isolate", "without resources_1=A:2", "without resources_2=A:1"],
            id="one provider for two groups",
        ),
        pytest.param(
            devices(5, PGPU=1),
            SearchQuery((Group("", {"PGPU": 4}),)),
            ["spread", "with resources=PGPU:1"],
            id="four devices",
        ),
        pytest.param(
            devices(5, PGPU=1),
            SearchQuery((Group("_1", {"PGPU": 5}, names("T0")),)),
            [],
            id="five devices with a trait that none has",
        ),
        pytest.param(
            hosts(1, A=Stock(8, min_unit=2, step_size=2)),
            SearchQuery((Group("", {"A": 3}),)),
            ["with resources=A:4", "with resources=A:2"],
            id="units",
        ),
        pytest.param(
            one_host(A=2, traits=["T0"]),
            SearchQuery((Group("", {"A": 1}),), root_traits=names("T1", forbidden=("T0",))),
            [],
            id="two conditions on the root",
        ),
        pytest.param(World(), SearchQuery((Group("", {"A": 1}),)), [], id="an empty cloud"),
    ],
)
def test_the_oracle_finds_every_sufficient_single_change(world: World, query: SearchQuery, expected: list[str]) -> None:
    changes = sorted(Expected(world, query).singles, key=lambda change: (change.size, change.place))
    assert [change.text or change.kind for change in changes] == expected


def together(world: World, query: SearchQuery) -> list[set[str]]:
    """Return the accepted queries for every two or three changes."""
    return [{query_string(change.query) for change in ways} for ways in Expected(world, query).several]


def test_combinations_of_two_changes_contain_no_further_change() -> None:
    query = SearchQuery((Group("_1", {"A": 4}), Group("_2", {"A": 4})), isolate=True)
    assert together(hosts(1, A=3), query) == [
        {"resources_1=A:3&group_policy=isolate", "resources_2=A:3&group_policy=isolate"}
    ]
    query = SearchQuery((Group("", {"A": 1}),), root_traits=names("T1", forbidden=("T0",)))
    assert together(one_host(A=2, traits=["T0"]), query) == [{"resources=A:1"}]


def test_amounts_are_raised_one_after_another() -> None:
    query = SearchQuery((Group("_1", {"A": 8}), Group("_2", {"A": 8, "B": 1})))
    assert together(one_host(A=6, B=3), query) == [{"resources_1=A:5&resources_2=A:1,B:1&group_policy=none"}]


def test_each_tree_has_its_own_amount() -> None:
    world = World()
    for name, amount in (("one", 2), ("two", 4), ("three", 3), ("none", 0)):
        world.host(name, **({"A": amount} if amount else {"B": 1}))
    nearest = Expected(world, SearchQuery((Group("", {"A": 5}),))).nearest
    assert {root: query_string(ways[0].query) for root, ways in nearest.items()} == {
        "one": "resources=A:2",
        "two": "resources=A:4",
        "three": "resources=A:3",
    }


def test_mistakes_of_every_group_are_named() -> None:
    world = one_host(A=4, traits=["T0"], aggregates=["a"])
    query = SearchQuery(
        (
            Group("", {"X": 1, "A": 5}, names("T8", "T0|T7", forbidden=("T6",)), names("a|c", "c|d"), "unknown"),
            Group("_1", {"A": 9, "Y": 1}),
        ),
        root_traits=names("T9"),
    )
    assert [(kind, *sorted(mistaken_names)) for kind, mistaken_names in mistakes(Expected(world, query))] == [
        ("trait", "T9"),
        ("trait", "T8"),
        ("aggregate", "c", "d"),
        ("in_tree", "unknown"),
        ("resource_class", "X"),
        ("amount", "resources=A:5"),
        ("amount", "resources_1=A:9"),
        ("resource_class", "Y"),
    ]
