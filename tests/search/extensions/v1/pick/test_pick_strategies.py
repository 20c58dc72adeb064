"""The trees that strategies pick, and the number of picks of each."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from placement.extensions.v1.pick import allowance
from placement.extensions.v1.pick import sample as sample_module
from placement.extensions.v1.pick.picker import Pick, Picker, PickRequest
from placement.extensions.v1.pick.sample import Samples
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.search.budget import Budget
from placement.search.find import Settings
from placement.search.narrow.narrowing import narrow
from placement.search.query.query import Group, SearchQuery
from placement.search.refusals import Refusals
from tests.world import Stock, World

TWO_VCPU = PickRequest(SearchQuery((Group("", {"VCPU": 2}),)))
PACK, RANDOM = Strategy(Preference.PACK), Strategy(Preference.RANDOM)


def hosts(count: int, used: int = 0, total: int = 8) -> World:
    world = World()
    for number in range(count):
        world.host(f"host{number}", VCPU=Stock(total, used=used))
    return world


def roots(world: World, picks: list[Pick | None]) -> Counter[str]:
    """Return the number of picks of each tree."""
    provider = world.snapshot().provider
    return Counter(provider(root).uuid for pick in picks if pick is not None for root in pick.roots)


@pytest.mark.parametrize("seed", range(5))
def test_spread_takes_each_of_several_equivalent_trees_before_any_twice(seed: int) -> None:
    world = hosts(10)
    picker = Picker(world.snapshot(), seed=seed)
    assert {*roots(world, picker.pick([TWO_VCPU] * 20)).values()} == {2}
    assert {*roots(world, picker.pick([TWO_VCPU] * 20)).values()} == {2}
    assert picker.pick([TWO_VCPU]) == [None]


def test_spread_takes_the_least_used_trees() -> None:
    world = hosts(10, used=6)
    for number in (2, 5):
        world.host(f"host{number}", VCPU=8)
    assert roots(world, Picker(world.snapshot(), seed=1).pick([TWO_VCPU] * 6)) == {"host2": 3, "host5": 3}


def test_the_used_share_of_a_tree_is_the_share_of_its_most_used_class() -> None:
    world = World()
    world.host("processors", VCPU=Stock(8, used=6), MEMORY_MB=8, DISK_GB=8)
    world.host("memory", VCPU=Stock(8, used=2), MEMORY_MB=Stock(8, used=2), DISK_GB=8)
    world.host("disk", VCPU=Stock(8, used=1), MEMORY_MB=Stock(8, used=1), DISK_GB=Stock(8, used=8))
    two_classes = PickRequest(SearchQuery((Group("", {"VCPU": 1, "MEMORY_MB": 1}),)))
    assert roots(world, Picker(world.snapshot(), seed=1).pick([two_classes])) == {"disk": 1}
    assert roots(world, Picker(world.snapshot(), PACK, seed=1).pick([two_classes])) == {"processors": 1}


@pytest.mark.parametrize("seed", range(5))
def test_pack_takes_as_few_trees_as_possible_and_the_most_used_first(seed: int) -> None:
    world = hosts(10)
    world.host("used", VCPU=Stock(8, used=2))
    picks = roots(world, Picker(world.snapshot(), PACK, seed=seed).pick([TWO_VCPU] * 9))
    assert picks.pop("used") == 3
    assert sorted(picks.values()) == [2, 4]


def test_a_pick_counts_for_the_used_share_of_its_tree() -> None:
    world = World()
    world.host("empty", VCPU=8)
    world.host("half", VCPU=Stock(8, used=4))
    assert roots(world, Picker(world.snapshot(), seed=1).pick([TWO_VCPU] * 4)) == {"empty": 3, "half": 1}


def test_shared_resources_do_not_count_for_the_used_share_of_a_tree() -> None:
    world = World()
    world.host("empty", aggregates=["A0"], VCPU=8)
    world.host("half", aggregates=["A0"], VCPU=Stock(8, used=4))
    world.sharing("pool", aggregates=["A0"], DISK_GB=1000)
    with_shared_disk = PickRequest(SearchQuery((Group("", {"VCPU": 2, "DISK_GB": 100}),)))
    assert roots(world, Picker(world.snapshot(), seed=1).pick([with_shared_disk] * 2)) == {"empty": 2}


def test_the_first_sample_of_many_trees_is_small_and_all_samples_contain_each_tree_once() -> None:
    world = hosts(3000)
    snapshot, query = world.snapshot(), TWO_VCPU.query
    narrowed = narrow(query, snapshot, Budget(), Refusals())
    generator = np.random.default_rng(1)
    for strategy in (Strategy(), RANDOM, PACK):
        samples = Samples(narrowed, narrowed.roots, strategy, 1, generator)
        roots_of = [sample.roots.tolist() for sample in iter(samples.next, None)]
        assert len(roots_of[0]) < 200
        assert sorted(itertools.chain.from_iterable(roots_of)) == narrowed.roots.slots().tolist()


def test_a_sample_may_contain_all_remaining_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three trees are more than the sample size of one; all three are drawn from their domain."""
    monkeypatch.setattr(sample_module, "SAMPLE", 1)
    monkeypatch.setattr(sample_module, "PER_PICK", 0)
    world = racks((3,))
    snapshot = world.snapshot()
    narrowed = narrow(TWO_VCPU.query, snapshot, Budget(), Refusals())
    rack = snapshot.with_trait("CUSTOM_RACK_0")
    for seed in range(5):
        samples = Samples(narrowed, rack, Strategy(spread_over="CUSTOM_RACK_"), 1, np.random.default_rng(seed))
        drawn = [samples.next() for _ in range(5)]
        roots_of = sorted(root for sample in drawn if sample is not None for root in sample.roots.tolist())
        assert roots_of == rack.slots().tolist()
        assert drawn[-2:] == [None, None]


def test_pack_finds_the_one_used_tree_among_many() -> None:
    world = hosts(3000)
    world.host("host1234", VCPU=Stock(8, used=2))
    assert roots(world, Picker(world.snapshot(), PACK, seed=1).pick([TWO_VCPU])) == {"host1234": 1}


def test_each_pick_examines_a_different_sample_of_many_trees() -> None:
    world = hosts(3000)
    snapshot = world.snapshot()
    picks = roots(world, [Picker(snapshot, seed=seed).pick([TWO_VCPU])[0] for seed in range(50)])
    assert len(picks) > 45


def add_devices(world: World, hosts: int, free: Collection[int]) -> PickRequest:
    """Add hosts with two devices, which are both free in some hosts only, and return a request for two.

    Narrowing does not detect that the other hosts cannot serve it.
    """
    for number in range(hosts):
        world.host(f"host{number}")
        for device in range(2):
            used = 0 if number in free else device
            world.host(f"host{number}-{device}", parent=f"host{number}", PGPU=Stock(1, used=used))
    amounts = {"PGPU": 1}
    return PickRequest(SearchQuery((Group("_1", amounts), Group("_2", amounts)), isolate=True))


def test_the_other_trees_are_examined_if_a_sample_is_full() -> None:
    world = World()
    two_devices = add_devices(world, 2000, free=(500, 1000))
    snapshot, copies = world.snapshot(), replace(two_devices, copies=2)
    for join in (False, True):
        [root] = roots(world, Picker(snapshot, join=join, seed=1).pick([two_devices]))
        assert root in ("host500", "host1000")
    assert roots(world, Picker(snapshot, seed=1).pick([copies])) == {"host500": 1, "host1000": 1}


def test_all_trees_are_examined_if_the_rules_leave_few_of_a_sample() -> None:
    world = hosts(2000, used=7)
    for number in range(10):
        world.host(f"host{200 * number}", VCPU=8)
        world.host(f"host{200 * number + 7}", VCPU=Stock(8, used=4))
    snapshot = world.snapshot()
    picks = roots(world, [Picker(snapshot, seed=seed).pick([TWO_VCPU])[0] for seed in range(20)])
    assert {*picks} <= {f"host{200 * number}" for number in range(10)}
    assert sum(picks.values()) == 20


def test_all_requests_of_a_body_share_the_budget_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of many trees exceeds the reserve of a request, after another one has used up the rest."""
    monkeypatch.setattr(allowance, "OPERATIONS_PER_REQUEST", 100)
    world = World()
    hard, two_devices = add_unprovable(world), add_devices(world, 500, free=[250])
    settings = Settings(operations=10_000)
    for requests, cut_short in (([two_devices], set()), ([hard, two_devices], {0, 1})):
        picker = Picker(world.snapshot(), settings=settings, seed=1)
        picker.pick(requests)
        assert picker.cut_short == cut_short


def test_random_picks_are_independent() -> None:
    """Of 400 picks, each of ten trees gets 40 on average, and at least 20."""
    world = hosts(10, total=1000)
    counts = roots(world, Picker(world.snapshot(), RANDOM, seed=1).pick([TWO_VCPU] * 400))
    assert len(counts) == 10
    assert min(counts.values()) >= 20
    assert max(counts.values()) > min(counts.values()) + 1


def racks(sizes: tuple[int, ...]) -> World:
    """Return racks with these numbers of hosts, in two zones, and two hosts without a rack."""
    world = World()
    for rack, size in enumerate(sizes):
        for number in range(size):
            zone = f"zone{rack % 2}"
            world.host(
                f"rack{rack}-{number}", traits=[f"CUSTOM_RACK_{rack}", "T0"], aggregates=[f"rack{rack}", zone], VCPU=4
            )
    world.host("alone0", VCPU=4)
    world.host("alone1", VCPU=4)
    return world


@pytest.mark.parametrize("domains", ["CUSTOM_RACK_", "aggregate"])
def test_domains_get_equally_many_picks_while_they_fit(domains: str) -> None:
    world = racks((1, 1, 5, 5))
    picker = Picker(world.snapshot(), Strategy(spread_over=domains), seed=1)
    picks_by_rack = Counter[str]()
    for picks in (1, 1, 1, 1, 4, 8, 8, 4):
        for root, count in roots(world, picker.pick([TWO_VCPU] * picks)).items():
            picks_by_rack[root.split("-")[0]] += count
        if sum(picks_by_rack.values()) in (4, 8):
            assert len(picks_by_rack) == 4
            assert {*picks_by_rack.values()} == {sum(picks_by_rack.values()) / 4}
        if sum(picks_by_rack.values()) == 24:
            assert picks_by_rack == {"rack0": 2, "rack1": 2, "rack2": 10, "rack3": 10}
    assert picks_by_rack == {"rack0": 2, "rack1": 2, "rack2": 10, "rack3": 10, "alone0": 2, "alone1": 2}


def test_a_full_domain_leaves_its_picks_to_the_others() -> None:
    world = racks((1, 4))
    picks = roots(world, Picker(world.snapshot(), Strategy(spread_over="CUSTOM_RACK_"), seed=1).pick([TWO_VCPU] * 15))
    assert {*picks.values()} == {2}
    assert len(picks) == 7


def test_the_domain_of_the_least_used_tree_comes_first_among_equals() -> None:
    """Used shares are compared in steps of 1/32; chance decides only between equal ones."""
    world = World()
    for rack, used in ((0, 18), (0, 15), (1, 17), (1, 16)):
        world.host(f"used{used}", traits=[f"CUSTOM_RACK_{rack}"], VCPU=Stock(32, used=used))
    for preference, first, second in ((Preference.SPREAD, "used15", "used16"), (Preference.PACK, "used18", "used17")):
        for seed in range(20):
            picker = Picker(world.snapshot(), Strategy(preference, "CUSTOM_RACK_"), seed=seed)
            assert [*roots(world, picker.pick([TWO_VCPU] * 2))] == [first, second]


def test_equivalent_trees_are_equally_likely_to_be_first_whatever_their_domain() -> None:
    """Of 100 first picks, each of ten trees gets 10 on average."""
    world = racks((1, 9))
    del world.members["alone0"], world.members["alone1"]
    strategy, snapshot = Strategy(spread_over="CUSTOM_RACK_"), world.snapshot()
    picks = roots(world, [Picker(snapshot, strategy, seed=seed).pick([TWO_VCPU])[0] for seed in range(100)])
    assert 1 <= picks["rack0-0"] <= 30


@pytest.mark.parametrize("domains", ["CUSTOM_RACK_", "aggregate"])
def test_a_small_domain_among_many_trees_gets_its_picks(domains: str) -> None:
    world = hosts(3000)
    for name, member in list(world.members.items()):
        world.host(name, traits=["CUSTOM_RACK_0"], aggregates=["rack0"], **member.stock)
    world.host("small", traits=["CUSTOM_RACK_1"], aggregates=["rack1"], VCPU=8)
    for seed in range(5):
        picks = Picker(world.snapshot(), Strategy(spread_over=domains), seed=seed).pick([TWO_VCPU] * 2)
        assert roots(world, picks)["small"] == 1


def test_trees_as_domains_come_before_the_used_share() -> None:
    world = hosts(3, used=4)
    world.host("empty", VCPU=8)
    over_roots = Picker(world.snapshot(), Strategy(spread_over="root"), seed=1)
    assert {*roots(world, over_roots.pick([TWO_VCPU] * 4)).values()} == {1}
    assert roots(world, Picker(world.snapshot(), seed=1).pick([TWO_VCPU] * 2)) == {"empty": 2}


def test_an_exhausted_budget_is_not_a_lack_of_capacity() -> None:
    world = hosts(3)
    picker = Picker(world.snapshot(), settings=Settings(memory=0), seed=1)
    assert picker.pick([TWO_VCPU, TWO_VCPU]) == [None, None]
    assert picker.cut_short == {0, 1}
    assert Picker(World().snapshot(), seed=1).pick([TWO_VCPU]) == [None]


def add_unprovable(world: World) -> PickRequest:
    """Add a host, and return a request that does not fit there, which no search can prove within its budget.

    All amounts are even, and all capacities odd: no combination fits, but no rule detects it early.
    """
    halves = (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161)
    world.host("hard", VCPU=8)
    for number in range(4):
        world.host(f"hard-{number}", parent="hard", VGPU=sum(halves) // 2)
    groups = [Group(f"_{number}", {"VGPU": 2 * half}) for number, half in enumerate(halves)]
    return PickRequest(SearchQuery(tuple(groups)))


def test_one_hard_query_leaves_others_their_budget() -> None:
    world = World()
    hard = add_unprovable(world)
    picker = Picker(world.snapshot(), seed=1)
    picks = picker.pick([hard, TWO_VCPU])
    assert [pick is None for pick in picks] == [True, False]
    assert picker.cut_short == {0}
    picker.pick([TWO_VCPU])
    assert picker.cut_short == set()


def test_amounts_of_several_groups_on_one_provider_are_summed_even_after_a_pick() -> None:
    world = World()
    world.host("host", VCPU=3)
    groups = PickRequest(SearchQuery((Group("_1", {"VCPU": 1}), Group("_2", {"VCPU": 1}))))
    assert [pick is None for pick in Picker(world.snapshot(), seed=1).pick([groups, groups])] == [False, True]
