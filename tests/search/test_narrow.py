"""What narrowing leaves out, and what it says about it."""

from __future__ import annotations

from placement.search.find import find
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search import oracle
from tests.search.test_search import found_once
from tests.world import Stock, World


def test_every_rule_says_what_it_left_out() -> None:
    """Three hosts; the trait is on the first two, the processors are on the last two, and one of these is full."""
    world = World()
    world.host("cn1", traits=["T0"], DISK_GB=10)
    world.host("cn2", traits=["T0"], VCPU=Stock(8, used=8))
    world.host("cn3", VCPU=8)
    world.host("numa", parent="cn3", VCPU=2)
    request = SearchQuery(
        (Group("_A", {"VCPU": 4}, traits=NameCondition(none_of=frozenset({"T1"}))),),
        root_traits=NameCondition((frozenset({"T0"}),)),
    )
    found = find(request, world.snapshot())
    assert not found.candidates
    assert [(step.rule, step.suffix, step.providers, step.trees) for step in found.refusals.narrowing] == [
        ("root_required", None, 1, 1),
        ("required", "_A", 0, 0),
        ("resources:VCPU", "_A", 2, 2),
        ("group", "_A", 2, 2),
    ]


def test_hosts_with_nothing_to_give_are_told_apart_by_who_shares_with_them() -> None:
    """Only the third host is shared with by a pool of disks and by a pool of addresses."""
    world = World()
    world.sharing("disks", aggregates=["A"], DISK_GB=100)
    world.sharing("addresses", aggregates=["B"], IPV4_ADDRESS=100)
    for name, aggregates in {"cn1": "A", "cn2": "B", "cn3": "AB", "cn4": "AB"}.items():
        world.host(name, aggregates=aggregates)
    request = SearchQuery((Group(resources={"DISK_GB": 1, "IPV4_ADDRESS": 1}),))
    found = found_once(find(request, world.snapshot()))
    assert len(found) == 1
    assert found == oracle.answers(world, request)


def test_however_many_aggregates_there_are() -> None:
    """A ring of seventy pools; every host, which has nothing, is shared with by two neighbours."""
    world = World()
    for number in range(70):
        world.sharing(f"pool{number}", aggregates=[f"A{number}"], DISK_GB=1)
        world.host(f"cn{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
        world.host(f"twin{number}", aggregates=[f"A{number}", f"A{(number + 1) % 70}"])
    groups = Group("_A", {"DISK_GB": 1}), Group("_B", {"DISK_GB": 1})
    request = SearchQuery(groups, isolate=True)
    found = found_once(find(request, world.snapshot()))
    assert len(found) == 140
    assert found == oracle.answers(world, request)


def test_the_root_of_who_shares_does_not_speak_for_it_elsewhere() -> None:
    """The pool is below a root in B.  In its own tree it counts as being in B; for the host it is in A alone."""
    world = World()
    world.host("cabinet", aggregates=["B"])
    world.sharing("pool", parent="cabinet", aggregates=["A"], DISK_GB=10)
    world.host("cn", aggregates=["A", "B"], VCPU=4)
    in_b = NameCondition((frozenset({"B"}),))
    with_processor = SearchQuery((Group(resources={"VCPU": 1, "DISK_GB": 1}, aggregates=in_b),))
    assert not found_once(find(with_processor, world.snapshot()))
    alone = SearchQuery((Group(resources={"DISK_GB": 1}, aggregates=in_b),))
    assert found_once(find(alone, world.snapshot())) == oracle.answers(world, alone) != set()


def test_more_than_any_inventory_can_hold_fits_nowhere() -> None:
    world = World()
    world.host("cn", VCPU=2**31 - 1)
    for amount, candidates in ((2**31 - 1, 1), (2**31, 0), (2**80, 0)):
        request = SearchQuery((Group(resources={"VCPU": amount}),))
        assert len(find(request, world.snapshot()).candidates) == candidates


def test_a_tree_where_only_the_idle_have_the_trait_is_left_out_before_combining() -> None:
    """The device has the trait and nothing to give; the others of its tree give everything and have no trait."""
    world = World()
    world.host("cn1", VCPU=8)
    world.host("device", parent="cn1", traits=["T0"])
    world.host("cn2", VCPU=8)
    world.host("twin", parent="cn2", VCPU=8, traits=["T0"])
    request = SearchQuery((Group(resources={"VCPU": 1}, traits=NameCondition((frozenset({"T0"}),))),))
    found = find(request, world.snapshot())
    assert found_once(found) == oracle.answers(world, request) != set()
    assert (found.refusals.narrowing[-1].rule, found.refusals.narrowing[-1].trees) == ("required", 1)
    del world.members["twin"]
    found = find(request, world.snapshot())
    assert not found.candidates
    assert found.obstacle == "required"
