"""Every tree is accounted for: it yields candidates, or a rule of narrowing or of combining refused it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.search.budget import Budget
from placement.search.find import SearchResult, Settings, find
from placement.search.narrow.narrowing import narrow
from placement.search.query.query import Group, SearchQuery
from placement.search.refusals import EXAMPLES, Refusals
from tests.strategies import crowded_queries, crowds, examples, search_queries, worlds
from tests.world import World

REPEATED = "already searched in another tree"
RULES = {"group_policy", "same_subtree", "required", "one provider per tree", REPEATED}


def refusals_in_combining(result: SearchResult) -> int:
    left_out = sum(refusal.trees for refusal in result.refusals.narrowing if refusal.rule == REPEATED)
    return sum(result.refusals.combining.values()) + left_out


def check(query: SearchQuery, world: World) -> None:
    snapshot = world.snapshot()
    result = find(query, snapshot)
    assert {rule for rule in result.refusals.combining if not rule.startswith("resources:")} <= RULES
    remaining = narrow(query, snapshot, Budget(), Refusals()).roots.count
    if not result.candidates:
        assert refusals_in_combining(result) == remaining
        return
    # The tree of a candidate is certain only if no provider shares.
    if not any("MISC_SHARES_VIA_AGGREGATE" in member.traits for member in world.members.values()):
        trees = {snapshot.provider(next(iter(candidate.mappings.values()))[0]).root for candidate in result.candidates}
        assert refusals_in_combining(result) + len(trees) == remaining


@examples(400)
@given(data=st.data(), world=crowds())
def test_trees_with_little_capacity_are_counted_once(data: st.DataObject, world: World) -> None:
    check(data.draw(crowded_queries()), world)


@examples(400)
@given(data=st.data(), world=worlds())
def test_trees_of_any_world_are_counted_once(data: st.DataObject, world: World) -> None:
    check(data.draw(search_queries(world)), world)


def pool_and_hosts(hosts: int) -> World:
    world = World()
    world.sharing("pool", aggregates=["A"], DISK_GB=10)
    for number in range(hosts):
        world.host(f"cn{number}", aggregates=["A"], VCPU=1)
    return world


def test_trees_that_lead_to_the_same_candidates_are_counted() -> None:
    """Three hosts without disks and the pool's own tree have the same candidate."""
    result = find(SearchQuery((Group(resources={"DISK_GB": 1}),)), pool_and_hosts(3).snapshot())
    assert len(result.candidates) == 1
    assert refusals_in_combining(result) == 3


def test_each_of_several_equivalent_trees_is_counted_as_refused() -> None:
    groups = tuple(Group(suffix, {"VCPU": 1}) for suffix in ("_A", "_B"))
    result = find(SearchQuery(groups, isolate=True), pool_and_hosts(3).snapshot())
    assert result.refusals.combining == {"group_policy": 3}
    names = [result.snapshot.provider(slot).uuid for slot in result.refusals.examples["group_policy"]]
    assert names == ["cn0", "cn1", "cn2"]
    assert result.obstacle == "combination"


def test_unsearched_trees_are_not_counted() -> None:
    groups = tuple(Group(suffix, {"VCPU": 1}) for suffix in ("_A", "_B"))
    world = pool_and_hosts(3)
    world.host("big", VCPU=8)
    world.host("numa", parent="big", VCPU=8)
    result = find(SearchQuery(groups, isolate=True), world.snapshot(), Settings(max_candidates=1))
    assert len(result.candidates) == 1
    assert result.refusals.combining == {"group_policy": 3}
    result = find(SearchQuery(groups, isolate=True), world.snapshot(), Settings(operations=1))
    assert (result.refusals.combining, result.complete) == ({}, False)


def test_refused_trees_are_kept_as_examples_up_to_a_limit() -> None:
    groups = tuple(Group(suffix, {"VCPU": 1}) for suffix in ("_A", "_B"))
    result = find(SearchQuery(groups, isolate=True), pool_and_hosts(EXAMPLES + 2).snapshot())
    assert result.refusals.combining == {"group_policy": EXAMPLES + 2}
    assert len(result.refusals.examples["group_policy"]) == EXAMPLES
