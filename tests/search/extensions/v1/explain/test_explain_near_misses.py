"""Near misses against the brute force: none is nearer by the distance that the documents define."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.explain.conditions import Condition, with_amounts, without
from placement.extensions.v1.explain.explaining import explain
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search.distance_oracle import Lack, lacks_of_tree
from tests.search.extensions.v1.explain.test_explain import cases
from tests.search.oracle import SHARES, answers, answers_of
from tests.strategies import crowded_queries, examples, similar_trees
from tests.world import World

#: A tree that lacks more is not near; how many near misses there are at most.
MOST, RETURNED = 8, 3


def relaxed_by(query: SearchQuery, lacks: frozenset[Lack]) -> SearchQuery | None:
    """Return the query relaxed by all that a tree lacks; None if no query string has what remains."""
    relaxed: SearchQuery | None = query
    # Without its amounts a group may say nothing, so they are the last to go.
    for lack in sorted(lacks, key=lambda lack: lack.kind == "amount"):
        if relaxed is None:
            return None
        if lack.kind == "amount" and lack.fitting:
            (name,) = lack.names
            relaxed = with_amounts(relaxed, lack.suffix or "", {name: lack.fitting})
        else:
            relaxed = without(relaxed, Condition(lack.kind, lack.suffix, lack.names, lack.forbidden))
    return relaxed


def distance(world: World, query: SearchQuery, root: str) -> tuple[float, float, bool] | None:
    """Return the conditions and the parts of amounts that a tree lacks, and whether it lacks a combination, too.

    None if it is not near.
    """
    lacks = lacks_of_tree(world, query, root)
    relaxed = relaxed_by(query, lacks)
    if relaxed is None or len(lacks) > MOST:
        return None
    combined = bool(answers_of(world, relaxed, root))
    return len(lacks) + (not combined), round(sum(lack.part for lack in lacks), 6), combined


@st.composite
def many_trees(draw: st.DrawFn) -> tuple[World, SearchQuery]:
    """More trees than are shown, and a query that often has no candidate in them."""
    world, query = draw(similar_trees(8)), draw(crowded_queries())
    groups = tuple(
        replace(group, resources={name: amount * draw(st.integers(1, 4)) for name, amount in group.resources.items()})
        for group in query.groups
    )
    return world, replace(query, groups=groups, nested=True)


@examples(300)
@given(case=cases() | many_trees())
def test_no_other_tree_is_nearer_than_a_near_miss(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    if explanation.found or not explanation.complete:
        assert explanation.complete or not answers(world, query)
        return
    roots = [name for name, member in world.members.items() if member.parent is None]
    distances = {root: distance(world, query, root) for root in roots}
    shown = [explanation.snapshot.provider(near.root).uuid for near in explanation.near_misses]
    order = [(*(distances[root] or ())[:2], world.ids[root]) for root in shown]
    assert order == sorted(order)
    assert all(len(each) == 3 for each in order)
    for root in {*roots} - {*shown}:
        known = distances[root]
        # What rules out a combination can be more than a near miss may lack.
        if known is not None and known[2]:
            assert len(shown) == RETURNED
            assert (*known[:2], world.ids[root]) > order[-1]


def nearest(world: World, query: SearchQuery) -> list[str]:
    explanation = explain(query, world.snapshot())
    assert explanation.complete
    return [explanation.snapshot.provider(near.root).uuid for near in explanation.near_misses]


def test_a_tree_that_seems_nearer_but_lacks_a_combination_is_farther() -> None:
    world = World()
    for name in ("one", "two", "three"):
        world.host(name, VCPU=4, DISK_GB=3)
    world.host("four", VCPU=4)
    world.host("disk", parent="four", DISK_GB=2)
    query = SearchQuery((Group("_1", {"VCPU": 4}), Group("_2", {"DISK_GB": 4})), isolate=True)
    assert nearest(world, query) == ["four", "one", "two"]


def test_roots_supply_their_trees_too() -> None:
    world = World()
    for number in range(17):
        world.host(f"far-{number}", VCPU=2)
    world.host("near", VCPU=3)
    world.host("child", parent="near", VCPU=1)
    world.host("parent", VCPU=1)
    world.host("also near", parent="parent", VCPU=3)
    assert nearest(world, SearchQuery((Group("", {"VCPU": 4}),))) == ["near", "parent", "far-0"]


def test_a_condition_of_the_unsuffixed_group_counts_once() -> None:
    world = World()
    for number in range(4):
        world.host(f"traits-{number}", VCPU=4, DISK_GB=4, aggregates=["A"], traits=["BAD"])
    world.host("amounts", VCPU=3, DISK_GB=3, aggregates=["A"])
    world.host("elsewhere", VCPU=4, DISK_GB=4)
    group = Group(
        "", {"VCPU": 4, "DISK_GB": 4}, NameCondition((), frozenset({"BAD"})), NameCondition((frozenset("A"),))
    )
    assert nearest(world, SearchQuery((group,))) == ["traits-0", "traits-1", "traits-2"]
    group = replace(group, traits=NameCondition((), frozenset({"BAD", "NEW"})))
    for number in range(3):
        world.host(f"traits-{number}", VCPU=4, DISK_GB=4, aggregates=["A"], traits=["BAD", "NEW"])
    assert nearest(world, SearchQuery((group,))) == ["traits-3", "elsewhere", "traits-0"]


def test_no_tree_is_shown_as_nearest_if_too_many_were_not_looked_at() -> None:
    world = World()
    for number in range(17):
        world.host(f"host-{number}", VCPU=4, DISK_GB=3)
    query = SearchQuery((Group("_1", {"VCPU": 4}), Group("_2", {"DISK_GB": 4})), isolate=True)
    explanation = explain(query, world.snapshot())
    # Each lacks an amount and a combination, which only a search shows.
    assert (len(explanation.near_misses), explanation.complete) == (3, False)


def test_trees_that_lack_only_a_combination_are_as_near_as_each_other() -> None:
    world = World()
    for number in range(17):
        world.host(f"host-{number}", VCPU=4)
    assert nearest(world, SearchQuery((Group("_1", {"VCPU": 1}), Group("_2", {"VCPU": 1})), isolate=True)) == [
        "host-0",
        "host-1",
        "host-2",
    ]


def test_what_the_root_lacks_is_one_condition() -> None:
    world = World()
    for number in range(3):
        world.host(f"host-{number}", VCPU=2, DISK_GB=2, traits=["GOOD"])
    world.host("root", VCPU=4, DISK_GB=4)
    good = NameCondition((frozenset({"GOOD"}),))
    query = SearchQuery((Group("", {"VCPU": 4, "DISK_GB": 4}),), root_traits=good)
    assert nearest(world, query) == ["root", "host-0", "host-1"]


def test_a_sharing_provider_is_in_its_own_aggregates_only() -> None:
    """In its own tree a provider is in the aggregates of its root, too, but not where it shares."""
    world = World()
    world.host("owner", aggregates=["A"])
    world.host("child", parent="owner", traits=[SHARES], aggregates=["S"], VCPU=3)
    world.host("pool", traits=[SHARES], aggregates=["S", "A"], VCPU=1)
    world.host("host", aggregates=["S"])
    query = SearchQuery((Group("", {"VCPU": 4}, aggregates=NameCondition((frozenset({"A"}),))),))
    explanation = explain(query, world.snapshot())
    missing = {explanation.snapshot.provider(near.root).uuid: near.missing for near in explanation.near_misses}
    assert [lack.text for lack in missing["host"]] == ["pool has room for 1 of 4 VCPU"]
    assert [lack.text for lack in missing["owner"]] == ["child has room for 3 of 4 VCPU"]


def test_a_root_in_a_forbidden_aggregate_bars_all_providers_alike() -> None:
    world = World()
    world.host("root", aggregates=["A"], VCPU=2)
    world.host("child", parent="root", VCPU=1)
    query = SearchQuery((Group("", {"VCPU": 4}, aggregates=NameCondition((), frozenset({"A"}))),))
    (near,) = explain(query, world.snapshot()).near_misses
    assert [lack.text for lack in near.missing] == ["root is in A", "root has room for 2 of 4 VCPU"]
