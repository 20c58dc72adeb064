"""What narrowing removes, and what it records."""

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
from tests.search.test_search import found_once
from tests.strategies import examples, search_queries, worlds
from tests.world import Stock, World


def test_every_rule_records_what_it_removed() -> None:
    """Three hosts; the trait is on the first two, the processors are on the last two, and one of these is full."""
    world = World()
    world.host("cn1", traits=["T0"], DISK_GB=10)
    world.host("cn2", traits=["T0"], VCPU=Stock(8, used=8))
    world.host("cn3", VCPU=8)
    world.host("numa", parent="cn3", VCPU=2)
    query = SearchQuery(
        (Group("_A", {"VCPU": 4}, traits=NameCondition(none_of=frozenset({"T1"}))),),
        root_traits=NameCondition((frozenset({"T0"}),)),
    )
    found = find(query, world.snapshot())
    assert not found.candidates
    assert [(step.rule, step.suffix, step.providers, step.trees) for step in found.refusals.narrowing] == [
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
    found = found_once(find(query, world.snapshot()))
    assert len(found) == 1
    assert found == oracle.answers(world, query)


def test_hosts_are_distinguished_by_more_aggregates_than_a_number_has_bits() -> None:
    """A ring of seventy pools; two neighbouring pools share with each host, which has no inventory."""
    world = World()
    for number in range(70):
        world.sharing(f"pool{number}", aggregates=[f"A{number}"], DISK_GB=1)
        world.host(f"cn{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
        world.host(f"twin{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
    groups = Group("_A", {"DISK_GB": 1}), Group("_B", {"DISK_GB": 1})
    query = SearchQuery(groups, isolate=True)
    found = found_once(find(query, world.snapshot()))
    assert len(found) == 140
    assert found == oracle.answers(world, query)


def test_a_root_in_an_aggregate_stands_in_for_its_own_tree_only() -> None:
    """The pool is below a root in B.  In its own tree it counts as being in B, for the host only as being in A."""
    world = World()
    world.host("cabinet", aggregates=["B"])
    world.sharing("pool", parent="cabinet", aggregates=["A"], DISK_GB=10)
    world.host("cn", aggregates=["A", "B"], VCPU=4)
    in_b = NameCondition((frozenset({"B"}),))
    with_processor = SearchQuery((Group(resources={"VCPU": 1, "DISK_GB": 1}, aggregates=in_b),))
    assert not found_once(find(with_processor, world.snapshot()))
    alone = SearchQuery((Group(resources={"DISK_GB": 1}, aggregates=in_b),))
    assert found_once(find(alone, world.snapshot())) == oracle.answers(world, alone) != set()


def test_groups_that_differ_in_nothing_but_their_trees_are_narrowed_apart() -> None:
    """Each host has room for both."""
    world = World()
    world.host("cn1", VCPU=8)
    world.host("cn2", VCPU=8)
    for trees in (("cn1", "cn2"), ("cn2", "cn1"), ("cn2", "cn2")):
        groups = [Group(str(number), {"VCPU": 1}, in_tree=tree) for number, tree in enumerate(trees, 1)]
        query = SearchQuery(tuple(groups))
        found = found_once(find(query, world.snapshot()))
        assert len(found) == (trees[0] == trees[1])
        assert found == oracle.answers(world, query)


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
    found = find(query, world.snapshot())
    assert found_once(found) == oracle.answers(world, query) != set()
    assert (found.refusals.narrowing[-1].rule, found.refusals.narrowing[-1].trees) == ("required", 1)
    del world.members["twin"]
    found = find(query, world.snapshot())
    assert not found.candidates
    assert found.obstacle == "required"


@examples(100)
@given(data=st.data(), world=worlds())
def test_some_of_the_trees_are_narrowed_as_they_are_with_all_others(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    roots = snapshot.forest.all_roots.slots()
    few = SlotSet.sparse(np.array(sorted(data.draw(st.sets(st.sampled_from(roots.tolist())))), np.intp))
    everywhere = narrow(query, snapshot, Budget(), Refusals())
    among = narrow(query, snapshot, Budget(), Refusals(), few)
    assert among.roots.slots().tolist() == (everywhere.roots & few).slots().tolist()
    if among.roots:
        of_all, of_few = (TreeProblems(each, None, Budget()) for each in (everywhere, among))
        for root in among.roots.slots().tolist():
            assert of_few.alone(root).domains == of_all.alone(root).domains
