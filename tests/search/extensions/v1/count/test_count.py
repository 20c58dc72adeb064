"""A count is the number of possible placements: by brute force, and by placing until no candidate is left."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement.extensions.v1.count import shape_counter, sharing
from placement.extensions.v1.count.alternatives import Block, Item
from placement.extensions.v1.count.count import Count, count
from placement.extensions.v1.count.dynamic_program import tighten
from placement.extensions.v1.count.greedy import CountRange, greedy_count
from placement.extensions.v1.count.sharing import SharingProviders
from placement.search.budget import Budget
from placement.search.find import Settings, find
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search import oracle
from tests.search.capacity_oracle import TooManyError, fit_on_devices, max_placements
from tests.strategies import crowded_queries, crowds, device_host, examples, scale, search_queries, worlds
from tests.world import Stock, World

QUERIES = 3


def by_root(counted: Count) -> dict[str, int]:
    return {
        counted.snapshot.provider(slot).uuid: times for slot, times in zip(counted.roots, counted.counts, strict=True)
    }


def compare(world: World, query: SearchQuery) -> Count:
    """Compare a count with the brute force, in total, by root and by aggregate."""
    query = replace(query, nested=True)
    counted = count(query, world.snapshot())
    assert counted.at_most is not None
    assert counted.exact == (counted.count == counted.at_most)
    try:
        by_anchor = {anchor: oracle.candidates_of(world, query, anchor) for anchor in oracle.anchors(world, query)}
        greatest = max_placements(world, set().union(*by_anchor.values()))
        by_tree = {anchor: max_placements(world, candidates) for anchor, candidates in by_anchor.items()}
        inside = {
            aggregate: max_placements(world, set().union(*(by_anchor[root] for root in roots & by_anchor.keys())))
            for aggregate, roots in trees_in_aggregates(world).items()
        }
    except TooManyError:
        return counted
    positive = {root: times for root, times in by_tree.items() if times}
    assert counted.count <= greatest <= counted.at_most
    assert bool(counted.count) == bool(greatest)
    assert by_root(counted).keys() == positive.keys()
    assert all(times <= by_tree[root] for root, times in by_root(counted).items())
    aggregates = dict(counted.aggregates)
    assert all(times <= inside[name] for name, times in aggregates.items())
    if ordinary(world):
        assert counted.exact
        assert by_root(counted) == positive
        assert aggregates == {name: times for name, times in inside.items() if times}
    assert counted.limiting_rule
    return counted


def ordinary(world: World) -> bool:
    """Whether no provider shares or limits the amount of one consumer."""
    members = world.members.values()
    limits = any(
        stock.effective_max_unit < stock.total * stock.allocation_ratio
        for member in members
        for stock in member.stock.values()
    )
    return not limits and not any(oracle.SHARES in member.traits for member in members)


def trees_in_aggregates(world: World) -> dict[str, set[str]]:
    trees: dict[str, set[str]] = {}
    for member in world.members.values():
        for aggregate in member.aggregates:
            trees.setdefault(aggregate, set()).add(world.root(member.name))
    return trees


@examples(400)
@given(data=st.data(), world=worlds())
def test_a_count_equals_the_placements_of_the_brute_force(data: st.DataObject, world: World) -> None:
    for _ in range(QUERIES):
        compare(world, data.draw(search_queries(world)))


@examples(250)
@given(data=st.data(), world=crowds())
def test_a_count_is_right_where_capacity_is_short(data: st.DataObject, world: World) -> None:
    for _ in range(QUERIES):
        compare(world, data.draw(crowded_queries()))


@pytest.mark.parametrize("seed", range(scale(200)))
def test_hosts_of_sixteen_devices_and_four_groups_are_exact(seed: int) -> None:
    world, query = device_host(random.Random(seed))
    counted = count(query, world.snapshot())
    assert counted.count == counted.at_most
    devices = [{name: stock.total for name, stock in member.stock.items()} for member in world.members.values()]
    groups = [group.resources for group in query.groups]
    assert fit_on_devices(devices, groups, query.isolate, counted.count)
    assert not fit_on_devices(devices, groups, query.isolate, counted.count + 1)


def test_the_greedy_count_gives_a_lower_and_an_upper_bound() -> None:
    for seed in range(scale(800)):
        order = random.Random(seed)
        totals = [(order.randint(1, 5), order.randint(0, 2)) for _ in range(order.randint(1, 4))]
        amounts = [(order.randint(1, 3), order.randint(0, 1)) for _ in range(order.randint(1, 3))]
        compare_on_devices(totals, amounts, isolate=order.random() < 0.7)


def compare_on_devices(totals: list[tuple[int, ...]], amounts: list[tuple[int, ...]], isolate: bool) -> None:
    """Compare the bounds of a count with the brute force."""
    names = "PGPU", "VGPU"
    groups = [{name: amount for name, amount in zip(names, demand, strict=True) if amount} for demand in amounts]
    devices = tuple((device, 9) for device in range(len(totals)))
    times_of = Counter(tuple(group.items()) for group in groups)
    block: Block = (tuple(Item(demand, devices, isolate, times) for demand, times in times_of.items()),)
    free = {
        name: np.array([[total[place] for total in ordering] for ordering in (totals, totals[::-1])])
        for place, name in enumerate(names)
    }
    fits = [
        fit_on_devices([dict(zip(names, total, strict=True)) for total in totals], groups, isolate, times)
        for times in range(sum(map(sum, totals)) + 2)
    ]
    greatest = fits.index(False) - 1
    bounds = greedy_count(block, free, np.full(2, 99))
    assert (bounds.low <= greatest).all()
    assert (bounds.high >= greatest).all()
    solved = tighten(block, free, CountRange(np.zeros(2, np.int64), np.full(2, len(fits))), Budget())
    assert [solved.low.tolist(), solved.high.tolist()] == [[greatest] * 2] * 2


def test_devices_are_used_in_several_orders_if_one_does_not_suffice() -> None:
    """An order that uses the large devices first ends at six."""
    query = SearchQuery((group("1", PGPU=2), group("2", PGPU=3)), isolate=True)
    counted = count(query, gpus(5, 3, 5, 5, 5, 3, 5, 4).snapshot())
    assert (counted.count, counted.at_most) == (7, 7)


def test_two_subtrees_on_different_nodes_are_exact() -> None:
    """Each request takes one of ten pairs of nodes, with its devices there, which always differ."""
    world = World()
    world.host("host")
    for node, (cpus, totals) in enumerate(((8, (3, 1)), (4, (2, 2, 1)), (6, (1,)), (2, (4, 4)))):
        world.host(f"node{node}", parent="host", VCPU=cpus)
        for number, total in enumerate(totals):
            world.host(f"gpu{node}-{number}", parent=f"node{node}", PGPU=total)
    groups = group("a", VCPU=2), group("b", PGPU=1), group("c", VCPU=1), group("d", PGPU=2)
    query = SearchQuery(groups, isolate=True, same_subtrees=(frozenset("ab"), frozenset("cd")))
    compare(world, query)
    compare(world, replace(query, isolate=False))


def test_a_count_between_two_bounds_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dynamic programming, the greedy count is below the upper bound."""
    world, query = gpus(5, 4, 6), SearchQuery((group("1", PGPU=2), group("2", PGPU=3)), isolate=True)
    everything = count(query, world.snapshot())
    monkeypatch.setattr(shape_counter, "EFFORT", 10**9)
    partial = count(query, world.snapshot())
    assert partial.at_most is not None
    assert partial.count <= everything.count <= partial.at_most
    assert (partial.count < partial.at_most, partial.exact, partial.reason) == (True, False, "combinations")


def test_one_provider_of_a_subtree_is_an_ancestor_of_the_others() -> None:
    """Each of two siblings has two VCPU, but each request needs their parent, too."""
    world = World()
    world.host("host", VCPU=1)
    for number in range(2):
        world.host(f"node{number}", parent="host", VCPU=2)
    query = SearchQuery((group("1", VCPU=1), group("2", VCPU=1)), isolate=True, same_subtrees=(frozenset("12"),))
    assert compare(world, query).count == 1


def test_a_demand_on_top_and_others_below_do_not_exceed_max_unit() -> None:
    """Each provider serves one unit per consumer, and each node has two: the third demand needs another node."""
    world = World()
    world.host("host")
    for name, parent in (("node0", "host"), ("device0", "node0"), ("node1", "host")):
        world.host(name, parent=parent, VCPU=Stock(8, max_unit=1))
    groups = tuple(group(suffix, VCPU=1) for suffix in "123")
    query = SearchQuery(groups, same_subtrees=(frozenset("12"), frozenset("13")))
    assert compare(world, query).roots == []
    world.host("device1", parent="node0", VCPU=Stock(8, max_unit=1))
    assert compare(world, query).count


def test_an_isolated_demand_and_another_do_not_exceed_max_unit() -> None:
    world = World()
    world.host("host", VCPU=Stock(8, max_unit=1))
    world.host("node", parent="host", VCPU=Stock(8, max_unit=1))
    query = SearchQuery(tuple(group(suffix, VCPU=1) for suffix in ("", "1", "2")), isolate=True)
    assert compare(world, query).roots == []
    world.host("other", parent="host", VCPU=Stock(8, max_unit=1))
    assert compare(world, query).count


def test_a_placement_is_found_even_if_no_greedy_order_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 + 3 + 2 and 4 + 3 + 3 are 10 each, but a greedy order combines 5 and 4."""
    monkeypatch.setattr(shape_counter, "EFFORT", 10**9)
    query = SearchQuery(tuple(group(str(number), PGPU=amount) for number, amount in enumerate((5, 4, 3, 3, 3, 2))))
    assert count(query, gpus(10, 10).snapshot()).count == 1


# --- copies in different trees ---


def jobs(counts: list[int], copies: int) -> int:
    """Return the number of jobs that fit, by trying all sets of trees for each."""
    ways = [
        [times - (tree in trees) for tree, times in enumerate(counts)]
        for trees in itertools.combinations([tree for tree, times in enumerate(counts) if times], copies)
    ]
    return max((1 + jobs(sorted(remaining), copies) for remaining in ways), default=0)


@examples(100)
@given(data=st.data(), counts=st.lists(st.integers(0, 3), min_size=1, max_size=5), copies=st.integers(1, 3))
def test_counted_copies_are_in_different_trees(data: st.DataObject, counts: list[int], copies: int) -> None:
    world = World()
    for number, times in enumerate(counts):
        world.host(f"host{number}", VCPU=1 + times, aggregates=[f"A{data.draw(st.integers(0, 1))}"])
    counted = count(SearchQuery((group("", VCPU=2),)), world.snapshot(), copies=copies)
    fitting = [(1 + times) // 2 for times in counts]
    assert (counted.count, counted.at_most, counted.exact) == (jobs(fitting, copies), counted.count, True)
    inside = {
        name: jobs(
            [
                (1 + times) // 2
                for number, times in enumerate(counts)
                if name in world.members[f"host{number}"].aggregates
            ],
            copies,
        )
        for name in ("A0", "A1")
    }
    assert dict(counted.aggregates) == {name: times for name, times in inside.items() if times}
    assert counted.limiting_rule == ("resources:VCPU" if counted.count == sum(fitting) // copies else "count")


def test_copies_share_a_pool() -> None:
    """The pool serves three jobs of three; with only two hosts, or four copies, the number of trees is the limit."""
    counted = count(QUERY, pool(100, 3).snapshot(), copies=3)
    assert (counted.count, counted.at_most, counted.limiting_rule) == (3, 3, "resources:DISK_GB")
    assert dict(counted.aggregates) == {"A0": 3}
    two = count(QUERY, pool(100, 2).snapshot(), copies=2)
    assert (two.count, two.at_most, two.limiting_rule) == (4, 4, "resources:VCPU")
    uneven = pool(100, 0)
    for number, cpus in enumerate((8, 8, 2)):
        uneven.host(f"host{number}", VCPU=cpus, aggregates=["A0"])
    assert count(QUERY, uneven.snapshot(), copies=3).count == 2
    none = count(QUERY, pool(100, 2).snapshot(), copies=3)
    assert (none.count, none.at_most, none.limiting_rule) == (0, 0, "count")


@pytest.mark.parametrize(("until", "times"), [(2, 2), (50, 20)])
def test_until_is_a_number_of_jobs(until: int, times: int) -> None:
    world = World()
    for number in range(30):
        world.host(f"host{number}", VCPU=2)
    counted = count(SearchQuery((group("", VCPU=1),)), world.snapshot(), until=until, copies=3)
    assert (counted.count, counted.reason) == (times, "until" if until == times else "exact")


# --- placing until no candidate is left ---


def place(world: World, amounts: oracle.Amounts) -> None:
    """Add the amounts to the usage."""
    for name, class_, amount in amounts:
        member = world.members[name]
        stock = member.stock[class_]
        world.members[name] = replace(member, stock={**member.stock, class_: replace(stock, used=stock.used + amount)})


def placed_at_random(world: World, query: SearchQuery, order: random.Random) -> int:
    """Return the number of candidates placed at random, until the search finds none."""
    world = World({**world.members}, world.classes, world.ids, world.trait_ids)
    for times in itertools.count():
        result = find(query, world.snapshot(), Settings(randomize=True, seed=order.random()))
        if not result.candidates:
            return times
        candidate = order.choice(result.candidates)
        name = result.snapshot.provider
        place(
            world,
            frozenset(
                (name(slot).uuid, class_, amount)
                for slot, amounts in candidate.amounts.items()
                for class_, amount in amounts.items()
            ),
        )
    raise AssertionError


@examples(150)
@given(data=st.data(), world=st.one_of(worlds(), crowds()))
def test_placing_until_nothing_fits_reaches_the_count(data: st.DataObject, world: World) -> None:
    """Random placements reach it in trees of one provider, and never exceed it elsewhere."""
    query: SearchQuery = data.draw(st.one_of(search_queries(world), crowded_queries()))
    assume(query.resource_classes <= world.classes.keys())
    counted = count(query, world.snapshot())
    placed = placed_at_random(world, query, random.Random(data.draw(st.integers(0, 99))))
    assert bool(placed) == bool(counted.count)
    if counted.exact:
        assert placed <= counted.count
    flat = all(member.parent is None and oracle.SHARES not in member.traits for member in world.members.values())
    if flat:
        assert (counted.reason, placed) == ("exact", counted.count)


def test_the_number_of_placements_depends_on_the_choice_of_candidates() -> None:
    """The count is the maximum over all choices: using the small devices together spares the large one."""
    world, query = gpus(2, 1, 1), SearchQuery((group("1", PGPU=1), group("2", PGPU=1)), isolate=True)

    def count_after(*pairs: tuple[str, str]) -> int:
        later_world = World({**world.members}, world.classes, world.ids, world.trait_ids)
        for pair in pairs:
            assert pair in {
                tuple(sorted(name for name, _, _ in amounts)) for amounts, _ in oracle.candidates(later_world, query)
            }
            place(later_world, frozenset((name, "PGPU", 1) for name in pair))
        return count(query, later_world.snapshot()).count

    assert count_after() == 2
    assert count_after(("gpu0", "gpu1")) == count_after(("gpu0", "gpu2")) == 1
    assert count_after(("gpu1", "gpu2")) == 0


@examples(100)
@given(data=st.data(), world=crowds())
def test_the_best_candidate_reduces_the_count_by_one_and_no_other_by_less(data: st.DataObject, world: World) -> None:
    """So placing the right candidate each time reaches the count."""
    query: SearchQuery = data.draw(crowded_queries())
    assume(query.resource_classes <= world.classes.keys())
    counted = count(query, world.snapshot())
    later_counts = set()
    for amounts in {amounts for amounts, _ in oracle.candidates(world, query)}:
        later_world = World({**world.members}, world.classes, world.ids, world.trait_ids)
        place(later_world, amounts)
        later_counts.add(count(query, later_world.snapshot()).count)
    assume(counted.exact)
    assert max(later_counts, default=-1) == counted.count - 1


# --- until, budget ---


@examples(150)
@given(data=st.data(), world=worlds())
def test_a_count_ends_at_until(data: st.DataObject, world: World) -> None:
    query: SearchQuery = data.draw(search_queries(world))
    snapshot = world.snapshot()
    everything = count(query, snapshot)
    until = data.draw(st.integers(1, 6))
    limited = count(query, snapshot, until=until)
    assert limited.count == min(everything.count, until)
    assert (limited.reason == "until") == (everything.count >= until) == (limited.at_most is None)
    if everything.count < until:
        assert replace(limited, snapshot=snapshot) == everything


@examples(100)
@given(data=st.data(), world=worlds(), operations=st.integers(0, 400))
def test_a_count_that_is_cut_short_is_a_lower_bound(data: st.DataObject, world: World, operations: int) -> None:
    query: SearchQuery = data.draw(search_queries(world))
    everything = count(query, world.snapshot())
    partial = count(query, world.snapshot(), Settings(operations=operations))
    assert partial.count <= everything.count
    assert partial.reason in (everything.reason, "operations")
    assert not partial.complete or partial == replace(everything, snapshot=partial.snapshot)


# --- worked examples ---


def group(suffix: str, *required: str, **resources: int) -> Group:
    return Group(suffix, resources, NameCondition(tuple(frozenset({trait}) for trait in required)))


def gpus(*totals: int) -> World:
    world = World()
    world.host("host", VCPU=64)
    for number, total in enumerate(totals):
        world.host(f"gpu{number}", parent="host", PGPU=total)
    return world


@pytest.mark.parametrize(
    ("totals", "groups", "times"),
    [
        ((3, 2, 1), 2, 3),
        ((2, 1, 1), 2, 2),
        ((3, 2, 1), 3, 1),
        ((5, 1), 2, 1),
        ((4, 4, 4), 3, 4),
        ((4, 4, 4), 2, 6),
        ((9, 1, 1, 1), 4, 1),
        ((0, 0), 2, 0),
    ],
)
def test_equal_groups_on_different_devices_are_counted_exactly(
    totals: tuple[int, ...], groups: int, times: int
) -> None:
    """No placement uses a device twice: if one has more free capacity than all others, the others limit the count."""
    query = SearchQuery(tuple(group(str(number), PGPU=1) for number in range(groups)), isolate=True)
    counted = count(query, gpus(*totals).snapshot())
    assert (counted.count, counted.exact) == (times, True)


def test_groups_that_may_share_a_device_are_bounded_by_its_largest_unit() -> None:
    world = World()
    world.host("host")
    world.host("one", parent="host", VGPU=Stock(8, max_unit=2))
    world.host("other", parent="host", VGPU=2)
    query = SearchQuery(tuple(group(str(number), VGPU=1) for number in range(3)))
    # Each placement uses the other device at least once.
    assert count(query, world.snapshot()).count == 2
    unequal = SearchQuery((group("1", VGPU=1), group("2", VGPU=2)))
    assert count(unequal, world.snapshot()).count == 2


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (SearchQuery((group("", VCPU=3, MEMORY_MB=1),)), "resources:VCPU"),
        (SearchQuery((group("", VCPU=1, MEMORY_MB=30),)), "resources:MEMORY_MB"),
        (SearchQuery((group("", VCPU=64),)), "resources:VCPU"),
        (SearchQuery((group("", "T1", VCPU=1),)), "required"),
        (SearchQuery((group("1", VCPU=1), group("2", VCPU=1)), isolate=True), "group_policy"),
        (SearchQuery((group("", VCPU=1),), root_traits=NameCondition((frozenset({"T1"}),))), "root_required"),
    ],
)
def test_a_count_names_the_rule_that_limits_it(query: SearchQuery, rule: str) -> None:
    world = World()
    world.host("host", VCPU=16, MEMORY_MB=64, traits=["T0"])
    world.trait_ids["T1"] = 9
    assert count(query, world.snapshot()).limiting_rule == rule


def test_a_count_names_the_limiting_rule_of_most_trees() -> None:
    world = World()
    world.host("odd", VCPU=100, MEMORY_MB=1)
    for number in range(2):
        world.host(f"host{number}", VCPU=2, MEMORY_MB=100)
    counted = count(SearchQuery((group("", VCPU=1, MEMORY_MB=1),)), world.snapshot())
    assert (counted.count, counted.limiting_rule) == (5, "resources:VCPU")
    assert counted.limiting_rules == ["resources:VCPU", "resources:VCPU", "resources:MEMORY_MB"]


def test_a_subtree_limits_a_count_although_its_groups_fit_separately() -> None:
    world = World()
    world.host("host")
    for node, (cpus, devices) in enumerate(((4, 1), (1, 4))):
        world.host(f"numa{node}", parent="host", VCPU=cpus)
        world.host(f"gpu{node}", parent=f"numa{node}", PGPU=devices)
    query = SearchQuery((group("1", VCPU=1), group("2", PGPU=1)), same_subtrees=(frozenset("12"),))
    counted = count(query, world.snapshot())
    assert (counted.count, counted.limiting_rule) == (2, "same_subtree")
    apart = count(replace(query, same_subtrees=()), world.snapshot())
    assert (apart.count, apart.reason) == (5, "exact")


# --- sharing providers ---


def pool(total: int, hosts: int, **local: int) -> World:
    world = World()
    world.sharing("pool", DISK_GB=total, aggregates=["A0"])
    for number in range(hosts):
        aggregates = ["A0", "A1"] if number else ["A0", "A2"]
        world.host(f"host{number}", VCPU=4, aggregates=aggregates, **local)
    return world


QUERY = SearchQuery((group("", VCPU=1, DISK_GB=10),))


def test_a_sharing_provider_may_have_another_class_for_its_own_tree() -> None:
    """The pool is in no aggregate, so it does not serve requests that name one."""
    world = World()
    world.host("host", VCPU=4, DISK_GB=4, aggregates=["A1"])
    world.sharing("pool", parent="host", VCPU=4, DISK_GB=4)
    disk = Group("", {"DISK_GB": 1}, aggregates=NameCondition((frozenset({"A1"}),)))
    assert compare(world, SearchQuery((disk, group("1", VCPU=1)))).count == 8


@pytest.mark.parametrize(
    ("total", "times", "first"), [(1000, 12, 4), (120, 12, 4), (119, 11, 4), (50, 5, 4), (30, 3, 3), (9, 0, 0)]
)
def test_hosts_compete_for_a_pool(total: int, times: int, first: int) -> None:
    counted = count(QUERY, pool(total, 3).snapshot())
    assert (counted.count, counted.exact) == (times, True)
    assert counted.counts == [first] * 3 if first else counted.counts == []
    assert dict(counted.aggregates) == ({"A0": times, "A1": min(times, 8), "A2": first} if first else {})
    assert counted.limiting_rule == ("resources:VCPU" if total >= 120 else "resources:DISK_GB")


def test_hosts_with_two_pools_spare_the_only_pool_of_another_host() -> None:
    """Host by host, the first host would take from the second host's only pool."""
    world = World()
    world.sharing("one", DISK_GB=40, aggregates=["A0", "A1"])
    world.sharing("other", DISK_GB=40, aggregates=["A0"])
    world.host("host0", VCPU=4, aggregates=["A0"])
    world.host("host1", VCPU=4, aggregates=["A1"])
    counted = count(QUERY, world.snapshot())
    assert (counted.count, counted.reason, counted.counts) == (8, "exact", [4, 4])
    assert dict(counted.aggregates) == {"A0": 4, "A1": 4}


def test_a_pool_serves_only_the_hosts_of_its_aggregates() -> None:
    world = World()
    world.sharing("one", DISK_GB=20, aggregates=["A0"])
    world.sharing("other", DISK_GB=30, aggregates=["A1"])
    for number in range(2):
        world.host(f"host{number}", VCPU=4, aggregates=[f"A{number}"])
    counted = count(QUERY, world.snapshot())
    assert (counted.count, counted.exact) == (5, True)
    assert by_root(counted) == {"host0": 2, "host1": 3}


def test_the_inventory_of_hosts_spares_the_pool() -> None:
    counted = count(QUERY, pool(20, 3, DISK_GB=25).snapshot())
    assert (counted.count, counted.exact) == (8, True)


# --- counts that end early ---


def devices(hosts: int, disk: int) -> World:
    world = World()
    world.sharing("pool", DISK_GB=disk, aggregates=["A0"])
    for number in range(hosts):
        world.host(f"host{number}", VCPU=16 + number % 7, aggregates=["A0"])
    return world


TWO_CPUS = SearchQuery((group("", VCPU=1), group("1", VCPU=1), group("2", DISK_GB=10)))


def test_a_count_that_is_cut_short_includes_at_least_one_tree() -> None:
    counted = count(TWO_CPUS, devices(200, 1_000_000).snapshot(), Settings(operations=2000))
    assert counted.reason == "operations"
    assert counted.roots
    assert counted.count >= max(counted.counts) > 0
    assert counted.obstacle == ""


def test_trees_that_share_end_at_until_in_the_first_sufficient_tree() -> None:
    counted = count(TWO_CPUS, devices(200, 1_000_000).snapshot(), Settings(operations=2000), until=5)
    assert (counted.count, counted.reason, len(counted.roots)) == (5, "until", 1)


def test_many_pools_of_many_hosts_are_counted_in_batches_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    world = devices(50, 100)
    for number in range(40):
        world.sharing(f"pool{number}", DISK_GB=100, aggregates=["A0"])
    snapshot = world.snapshot()
    everything = count(QUERY, snapshot)
    assert (everything.count, everything.exact) == (410, True)
    lengths: list[int] = []

    def domain(self: SharingProviders, *which: Any) -> Any:
        slots, roots = pairs(self, *which)
        lengths.append(len(slots))
        return slots, roots

    pairs = SharingProviders.domain
    monkeypatch.setattr(sharing, "PAIRS", 400)
    monkeypatch.setattr(SharingProviders, "domain", domain)
    assert count(QUERY, snapshot) == everything
    assert sum(lengths) >= 41 * 50
    assert max(lengths) <= 400
    partial = count(QUERY, snapshot, Settings(operations=1900))
    assert (partial.reason, partial.complete, partial.obstacle) == ("operations", False, "")
    assert 0 < partial.count < 410
    first = count(QUERY, snapshot, until=5)
    assert len(first.roots) < 50
    assert (first.count, first.reason) == (5, "until")


def nested(hosts: int, kinds: int) -> World:
    """Return hosts of two nodes with a device each; ``kinds`` of them differ in usage."""
    world = World()
    for number in range(hosts):
        world.host(f"host{number}", DISK_GB=1000)
        for node in range(2):
            used = number % kinds
            world.host(f"node{number}-{node}", parent=f"host{number}", VCPU=Stock(32, used=used // 4))
            world.host(f"gpu{number}-{node}", parent=f"node{number}-{node}", PGPU=Stock(4, used=used % 4))
    return world


BELOW = SearchQuery(
    (group("", DISK_GB=10), group("1", VCPU=2), group("2", PGPU=1)), same_subtrees=(frozenset({"1", "2"}),)
)


@pytest.mark.parametrize(("kinds", "times"), [(1, 8), (16, 5)])
def test_a_thousand_equivalent_trees_cost_little_more_than_one(kinds: int, times: int) -> None:
    snapshot = nested(1008, kinds).snapshot()
    counted = count(BELOW, snapshot, Settings(operations=2500))
    assert (counted.count, counted.exact, counted.complete) == (1008 * times, True, True)
    assert (counted.reason, len(counted.roots)) == ("exact", 1008)


def test_until_ends_a_count_after_few_trees() -> None:
    snapshot = nested(1008, 16).snapshot()
    everything = count(BELOW, snapshot, Settings(operations=500))
    assert (everything.complete, everything.reason) == (False, "operations")
    until_thirty = count(BELOW, snapshot, Settings(operations=500), until=30)
    assert (until_thirty.count, until_thirty.reason, until_thirty.complete) == (30, "until", True)
    assert len(until_thirty.roots) < 20


def test_trees_of_different_shapes_are_counted_separately() -> None:
    """The second host has both devices below one node, the third has no device below a node."""
    world = World()
    for number, places in enumerate(((0, 1), (0, 0), (2, 2))):
        world.host(f"host{number}", DISK_GB=1000)
        above = [f"node{number}-0", f"node{number}-1", f"host{number}"]
        for node in range(2):
            world.host(above[node], parent=f"host{number}", VCPU=4)
        for device, place in enumerate(places):
            world.host(f"gpu{number}-{device}", parent=above[place], PGPU=2)
    counted = count(BELOW, world.snapshot())
    assert by_root(counted) == {"host0": 4, "host1": 2}
    assert (counted.count, counted.exact) == (6, True)


def many_aggregates() -> World:
    world = World()
    for number in range(100):
        world.host(f"host{number}", VCPU=4, aggregates=[f"A{number}", f"B{number}", "A"])
    return world


def test_aggregates_do_not_cut_a_count_short() -> None:
    snapshot, query = many_aggregates().snapshot(), SearchQuery((group("", VCPU=1),))
    everything = count(query, snapshot)
    assert (everything.count, everything.complete, len(everything.aggregates)) == (400, True, 201)
    assert everything.aggregates[:2] == [("A", 400), ("A0", 4)]
    partial = count(query, snapshot, Settings(operations=150))
    assert (partial.count, partial.exact, partial.complete, partial.aggregates) == (400, True, False, [])
    until_one = count(query, snapshot, Settings(operations=150), until=1)
    assert (until_one.count, until_one.reason, until_one.complete, until_one.aggregates) == (1, "until", True, [])


@pytest.mark.parametrize(("ratio", "exact"), [(1.0, True), (16.0, True), (2.0**7, False), (2.0**30, False)])
def test_truncated_amounts_are_not_exact(ratio: float, exact: bool) -> None:
    world = World()
    world.host("host", VCPU=Stock(2**31 - 1, allocation_ratio=ratio))
    counted = count(SearchQuery((group("", VCPU=1),)), world.snapshot())
    assert (counted.exact, counted.reason) == ((True, "exact") if exact else (False, "amounts"))
    assert counted.count <= (2**31 - 1) * ratio
