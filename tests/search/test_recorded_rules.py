"""The record of a rule: the sets before and after it, the trees, examples of them, and the obstacle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.index.snapshot import Snapshot
from placement.search.find import SearchResult, Settings, find
from placement.search.query.query import Group, SearchQuery
from placement.search.refusals import COMBINATION, Refusal
from tests.search import oracle
from tests.strategies import examples, search_queries, worlds
from tests.world import World


def names(snapshot: Snapshot, refusal: Refusal) -> tuple[set[str], set[str]]:
    """Return the providers before and after a rule."""
    before, after = (
        {snapshot.provider(slot).uuid for slot in slot_set.slots()} for slot_set in (refusal.before, refusal.after)
    )
    return before, after


def check_narrowing(world: World, query: SearchQuery, result: SearchResult) -> None:
    for refusal in result.refusals.narrowing:
        before, after = names(result.snapshot, refusal)
        assert after <= before
        assert refusal.providers == len(before - after)
        assert refusal.trees == len({*map(world.root, before)}) - len({*map(world.root, after)})
        parameter, _, class_ = refusal.rule.partition(":")
        if parameter == "resources":
            (group,) = (group for group in query.groups if group.suffix == refusal.suffix)
            amount = group.resources[class_]
            assert after == {name for name in before if oracle.fits(world.members[name], class_, amount)}


def check_obstacle(result: SearchResult) -> None:
    removed_all = [refusal.rule for refusal in result.refusals.narrowing if not refusal.after.count]
    if result.candidates:
        assert result.obstacle == ""
    else:
        assert result.obstacle == (removed_all[0].partition(":")[0] if removed_all else COMBINATION)


@examples(300)
@given(data=st.data(), world=worlds())
def test_rules_record_the_sets_before_and_after(data: st.DataObject, world: World) -> None:
    query = data.draw(search_queries(world))
    result = find(query, world.snapshot())
    check_narrowing(world, query, result)
    check_obstacle(result)


def pairs(hosts: int, *, isolate: bool = False, amount: int = 1) -> SearchResult:
    """Return the result for two groups, on hosts with one device of two units each."""
    world = World()
    for number in range(hosts):
        world.host(f"cn{number}")
        world.host(f"device{number}", parent=f"cn{number}", VGPU=2)
    groups = Group("_A", {"VGPU": amount}), Group("_B", {"VGPU": amount})
    return find(SearchQuery(groups, isolate=isolate), world.snapshot())


def test_a_tree_is_recorded_under_the_constraint_that_refused_it_last() -> None:
    assert pairs(7).refusals.combining == {}
    assert pairs(7, isolate=True).refusals.combining == {"group_policy": 7}
    assert pairs(7, amount=2).refusals.combining == {"resources:VGPU": 7}


def test_a_recorded_rule_has_at_most_five_trees_as_examples() -> None:
    result = pairs(7, isolate=True)
    roots = [result.snapshot.provider(slot).uuid for slot in result.refusals.examples["group_policy"]]
    assert roots == ["cn0", "cn1", "cn2", "cn3", "cn4"]
    assert result.obstacle == COMBINATION


def test_records_are_kept_if_the_budget_runs_out() -> None:
    world = World()
    for number in range(100):
        world.host(f"cn{number}")
        world.host(f"numa{number}", parent=f"cn{number}", VCPU=1)
    query = SearchQuery(tuple(Group(f"_{number}", {"VCPU": 1}) for number in range(100)))
    result = find(query, world.snapshot(), Settings(operations=300))
    assert (result.complete, result.shortage, result.candidates) == (False, "operations", [])
    assert result.refusals.narrowing
