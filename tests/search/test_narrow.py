"""The providers that narrowing removes, and its records of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.index.slots import SlotSet
from placement.search.budget import Budget
from placement.search.find import find
from placement.search.narrow.narrowing import narrow
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.query.query import Group, NameCondition, SearchQuery
from placement.search.refusals import Refusals
from tests.search import oracle
from tests.search.test_search import distinct_candidates
from tests.strategies import examples, search_queries, worlds
from tests.world import Stock, World


def test_every_rule_records_the_providers_it_removed() -> None:
    """Three hosts: the first two have the trait, the last two have processors, and one of these is full."""
    world = World()
    world.host("cn1", traits=["T0"], DISK_GB=10)
    world.host("cn2", traits=["T0"], VCPU=Stock(8, used=8))
    world.host("cn3", VCPU=8)
    world.host("numa", parent="cn3", VCPU=2)
    query = SearchQuery(
        (Group("_A", {"VCPU": 4}, traits=NameCondition(none_of=frozenset({"T1"}))),),
        root_traits=NameCondition((frozenset({"T0"}),)),
    )
    result = find(query, world.snapshot())
    assert not result.candidates
    assert [(step.rule, step.suffix, step.providers, step.trees) for step in result.refusals.narrowing] == [
        ("root_required", None, 1, 1),
        ("required", "_A", 0, 0),
        ("resources:VCPU", "_A", 2, 2),
        ("group", "_A", 2, 2),
    ]


def test_hosts_without_eligible_providers_are_distinguished_by_the_pools_that_share_with_them() -> None:
    """A pool of disks and a pool of addresses both share with the third and the fourth host only."""
    world = World()
    world.sharing("disks", aggregates=["A"], DISK_GB=100)
    world.sharing("addresses", aggregates=["B"], IPV4_ADDRESS=100)
    for name, aggregates in {"cn1": "A", "cn2": "B", "cn3": "AB", "cn4": "AB"}.items():
        world.host(name, aggregates=aggregates)
    query = SearchQuery((Group(resources={"DISK_GB": 1, "IPV4_ADDRESS": 1}),))
    candidates = distinct_candidates(find(query, world.snapshot()))
    assert len(candidates) == 1
    assert candidates == oracle.candidates(world, query)


def test_hosts_are_distinguished_by_more_aggregates_than_a_number_has_bits() -> None:
    """A ring of seventy pools; two neighbouring pools share with each host, which has no inventory."""
    world = World()
    for number in range(70):
        world.sharing(f"pool{number}", aggregates=[f"A{number}"], DISK_GB=1)
        world.host(f"cn{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
        world.host(f"twin{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
    groups = Group("_A", {"DISK_GB": 1}), Group("_B", {"DISK_GB": 1})
    query = SearchQuery(groups, isolate=True)
    candidates = distinct_candidates(find(query, world.snapshot()))
    assert len(candidates) == 140
    assert candidates == oracle.candidates(world, query)


def test_the_aggregate_of_a_root_counts_for_its_own_tree_only() -> None:
    """The pool is below a root in B.  In its own tree it counts as a member of B, for the host as a member of A."""
    world = World()
    world.host("cabinet", aggregates=["B"])
    world.sharing("pool", parent="cabinet", aggregates=["A"], DISK_GB=10)
    world.host("cn", aggregates=["A", "B"], VCPU=4)
    in_b = NameCondition((frozenset({"B"}),))
    with_processor = SearchQuery((Group(resources={"VCPU": 1, "DISK_GB": 1}, aggregates=in_b),))
    assert not distinct_candidates(find(with_processor, world.snapshot()))
    alone = SearchQuery((Group(resources={"DISK_GB": 1}, aggregates=in_b),))
    assert distinct_candidates(find(alone, world.snapshot())) == oracle.candidates(world, alone) != set()


def test_groups_that_differ_only_in_their_trees_are_narrowed_separately() -> None:
    """Each host fits both groups."""
    world = World()
    world.host("cn1", VCPU=8)
    world.host("cn2", VCPU=8)
    for trees in (("cn1", "cn2"), ("cn2", "cn1"), ("cn2", "cn2")):
        groups = [Group(str(number), {"VCPU": 1}, in_tree=tree) for number, tree in enumerate(trees, 1)]
        query = SearchQuery(tuple(groups))
        candidates = distinct_candidates(find(query, world.snapshot()))
        assert len(candidates) == (trees[0] == trees[1])
        assert candidates == oracle.candidates(world, query)


def test_an_amount_above_every_total_fits_nowhere() -> None:
    world = World()
    world.host("cn", VCPU=2**31 - 1)
    for amount, candidates in ((2**31 - 1, 1), (2**31, 0), (2**80, 0)):
        query = SearchQuery((Group(resources={"VCPU": amount}),))
        assert len(find(query, world.snapshot()).candidates) == candidates


def test_a_tree_whose_eligible_providers_lack_a_required_trait_is_removed() -> None:
    """The device has the trait and no inventory; the others of its tree have inventory and no trait."""
    world = World()
    world.host("cn1", VCPU=8)
    world.host("device", parent="cn1", traits=["T0"])
    world.host("cn2", VCPU=8)
    world.host("twin", parent="cn2", VCPU=8, traits=["T0"])
    query = SearchQuery((Group(resources={"VCPU": 1}, traits=NameCondition((frozenset({"T0"}),))),))
    result = find(query, world.snapshot())
    assert distinct_candidates(result) == oracle.candidates(world, query) != set()
    assert (result.refusals.narrowing[-1].rule, result.refusals.narrowing[-1].trees) == ("required", 1)
    del world.members["twin"]
    result = find(query, world.snapshot())
    assert not result.candidates
    assert result.obstacle == "required"


@examples(100)
@given(data=st.data(), world=worlds())
def test_a_subset_of_the_trees_is_narrowed_like_all_trees(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    roots = snapshot.forest.all_roots.slots()
    subset = SlotSet.sparse(np.array(sorted(data.draw(st.sets(st.sampled_from(roots.tolist())))), np.intp))
    everywhere = narrow(query, snapshot, Budget(), Refusals())
    within = narrow(query, snapshot, Budget(), Refusals(), subset)
    assert within.roots.slots().tolist() == (everywhere.roots & subset).slots().tolist()
    if within.roots:
        of_all, of_subset = (TreeProblems(narrowed, None, Budget()) for narrowed in (everywhere, within))
        for root in within.roots.slots().tolist():
            assert of_subset.complete_problem(root).domains == of_all.complete_problem(root).domains
