"""Relations between the consumers of one request body: copies, moves, and consumers kept apart or together."""

from __future__ import annotations

import pytest

from placement.extensions.v1.pick import allowance
from placement.extensions.v1.pick.picker import Pick, Picker, PickRequest
from placement.search.find import Settings
from placement.search.query.query import Group, SearchQuery
from tests.world import Stock, World


def request_for(copies: int = 1, releases: dict[tuple[int, int], int] | None = None, **resources: int) -> PickRequest:
    return PickRequest(SearchQuery((Group("", resources),)), copies, releases or {})


def roots(world: World, pick: Pick | None) -> set[str] | None:
    return None if pick is None else {world.snapshot().provider(root).uuid for root in pick.roots}


def with_pool(hosts: int, pool: Stock) -> World:
    """Return hosts that share a pool of disks."""
    world = World()
    for number in range(hosts):
        world.host(f"host{number}", aggregates=["A0"], VCPU=2)
    world.sharing("pool", aggregates=["A0"], DISK_GB=pool)
    return world


def test_picked_copies_are_in_different_trees() -> None:
    world = World()
    for name in ("a", "b"):
        world.host(name, VCPU=8)
    picker = Picker(world.snapshot(), seed=1)
    assert [roots(world, pick) for pick in picker.pick([request_for(3, VCPU=1), request_for(2, VCPU=1)])] == [
        None,
        {"a", "b"},
    ]


def test_the_copies_of_a_consumer_take_the_sum_of_their_amounts_from_a_shared_pool() -> None:
    amounts = {"VCPU": 1, "DISK_GB": 10}
    for pool, max_copies in (
        (Stock(100), 3),
        (Stock(20), 2),
        (Stock(100, max_unit=20), 2),
        (Stock(100, max_unit=10), 1),
    ):
        world = with_pool(3, pool)
        for copies in (1, 2, 3):
            [pick] = Picker(world.snapshot(), seed=1).pick([request_for(copies, **amounts)])
            assert (pick is not None) == (copies <= max_copies), (pool, copies)


def test_copies_take_no_more_than_max_unit_from_a_pool_that_others_cannot_reach() -> None:
    """Each copy could use either pool, but the second pool serves only one of the hosts."""
    world = World()
    for number in range(3):
        world.host(f"host{number}", aggregates=["A0", *(["A1"] if number == 0 else [])], VCPU=2)
    world.sharing("pool0", aggregates=["A0"], DISK_GB=Stock(100, max_unit=10))
    world.sharing("pool1", aggregates=["A1"], DISK_GB=Stock(100, max_unit=20))
    for copies, fits in ((2, True), (3, False)):
        [pick] = Picker(world.snapshot(), seed=1).pick([request_for(copies, VCPU=1, DISK_GB=10)])
        assert (pick is not None) == fits


def test_max_unit_applies_to_each_consumer_separately() -> None:
    world = with_pool(3, Stock(100, max_unit=10))
    picks = Picker(world.snapshot(), seed=1).pick([request_for(VCPU=1, DISK_GB=10)] * 3)
    assert None not in picks


def test_copies_that_can_use_several_pools_find_sufficient_ones() -> None:
    """The first pool serves every host, the second only one host, which must leave the first pool to the others."""
    world = World()
    for number in range(3):
        world.host(f"host{number}", aggregates=["A0", *(["A1"] if number == 0 else [])], VCPU=2)
    world.sharing("pool0", aggregates=["A0"], DISK_GB=20)
    world.sharing("pool1", aggregates=["A1"], DISK_GB=10)
    for seed in range(5):
        [pick] = Picker(world.snapshot(), seed=seed).pick([request_for(3, VCPU=1, DISK_GB=10)])
        assert roots(world, pick) == {"host0", "host1", "host2"}


def test_amounts_that_failed_late_are_retried_if_more_trees_follow() -> None:
    """The first and the last host together take as much as the others, which leave the last one for a third copy."""
    for seed in range(30):
        world = World()
        for number, aggregates in enumerate((("a1", "b1"), ("a1", "b2"), ("a2", "b1"), ("a2", "b2"))):
            world.host(f"host{number}", aggregates=aggregates, VCPU=1)
        for name, room in (("1", 1), ("2", 2)):
            world.sharing(f"disks{name}", aggregates=[f"a{name}"], DISK_GB=room)
            world.sharing(f"memory{name}", aggregates=[f"b{name}"], MEMORY_MB=room)
        [pick] = Picker(world.snapshot(), seed=seed).pick([request_for(3, VCPU=1, DISK_GB=1, MEMORY_MB=1)])
        assert roots(world, pick) == {"host1", "host2", "host3"}


def test_amounts_that_a_consumer_releases_are_free_for_it_alone() -> None:
    world = World()
    world.host("full", VCPU=Stock(8, used=8))
    released = {"full": {"VCPU": 4}}
    stays, other, larger = (
        request_for(releases=released, VCPU=4),
        request_for(VCPU=1),
        request_for(releases=released, VCPU=5),
    )
    for requests, expected in (
        ([stays], [{"full"}]),
        ([other, stays], [None, {"full"}]),
        ([larger, other], [None, None]),
        # A move takes its new place in addition to the released amounts, until it is committed.
        ([stays, stays], [{"full"}, None]),
        ([request_for(releases=released, VCPU=2)] * 3, [{"full"}, {"full"}, None]),
    ):
        picks = Picker(world.snapshot(), seed=1).pick(requests)
        assert [roots(world, pick) for pick in picks] == expected


def test_amounts_released_of_a_pool_outside_the_area_are_free_for_the_consumer() -> None:
    world = with_pool(1, Stock(10, used=10))
    released = {"pool": {"DISK_GB": 4}}
    picker = Picker(world.snapshot(), within={world.snapshot().by_uuid["host0"]}, seed=1)
    outcomes = [
        roots(world, pick)
        for pick in picker.pick([request_for(VCPU=1, DISK_GB=1), request_for(releases=released, VCPU=1, DISK_GB=4)])
    ]
    assert outcomes == [None, {"host0"}]


def test_released_amounts_of_a_class_without_inventory_are_ignored() -> None:
    """An allocation may be older than the snapshot, which lacks its inventory."""
    world = World()
    world.host("host", VCPU=1)
    world.classes["DISK_GB"] = 99
    released = {"host": {"DISK_GB": 4, "CUSTOM_GONE": 1}, "gone": {"VCPU": 1}}
    picker = Picker(world.snapshot(), seed=1)
    assert [
        roots(world, pick) for pick in picker.pick([request_for(releases=released, VCPU=1), request_for(VCPU=1)])
    ] == [
        {"host"},
        None,
    ]


def test_a_move_away_is_found_with_all_others() -> None:
    """Amounts released in an avoided tree do not require a separate search."""
    world = World()
    for name in ("old", "new"):
        world.host(name, VCPU=Stock(8, used=4))
    requests = [request_for(releases={"old": {"VCPU": amount}}, VCPU=1) for amount in (1, 2, 1)]
    old = world.snapshot().by_uuid["old"]
    picks = Picker(world.snapshot(), avoid={old}, seed=1).pick(requests)
    assert [roots(world, pick) for pick in picks] == [{"new"}] * 3


def test_listed_consumers_are_apart_from_all_others() -> None:
    world = World()
    for number in range(3):
        world.host(f"host{number}", VCPU=8)
    query = SearchQuery((Group("", {"VCPU": 1}),))
    plain, listed = PickRequest(query), PickRequest(query, exclusive=True)
    picks = Picker(world.snapshot(), seed=1).pick([listed, plain, plain, plain, listed, plain])
    places = [roots(world, pick) for pick in picks]
    assert None not in places[:4]
    assert places[0] not in places[1:]
    # Two trees are left to the others, which may use both.
    assert places[4] is None
    assert places[5] in places[1:4]


def test_the_place_of_a_dry_run_is_left_to_other_requests() -> None:
    world = World()
    world.host("host", VCPU=1)
    query = SearchQuery((Group("", {"VCPU": 1}),))
    dry, wet = PickRequest(query, dry_run=True), PickRequest(query)
    for join in (False, True):
        picker = Picker(world.snapshot(), join=join, seed=1)
        assert None not in picker.pick([dry])
        assert None not in picker.pick([wet])
        assert picker.pick([wet]) == [None]


def test_joined_consumers_share_a_tree_that_fits_all() -> None:
    world = World()
    world.host("small", VCPU=8)
    world.host("large", VCPU=Stock(16, used=8), MEMORY_MB=4)
    requests = [request_for(VCPU=4), request_for(MEMORY_MB=1), request_for(VCPU=4)]
    picks = Picker(world.snapshot(), join=True, seed=1).pick(requests)
    assert [roots(world, pick) for pick in picks] == [{"large"}] * 3
    assert Picker(world.snapshot(), join=True, seed=1).pick([*requests, request_for(VCPU=1)]) == [None] * 4
    assert Picker(world.snapshot(), join=True, seed=1).pick([]) == []


def test_trees_outside_the_area_are_not_picked() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.host(name, VCPU=8)
    a, b = world.snapshot().by_uuid["a"], world.snapshot().by_uuid["b"]
    for join in (False, True):
        for seed in range(5):
            picker = Picker(world.snapshot(), avoid={a}, within={a, b}, join=join, seed=seed)
            assert [roots(world, pick) for pick in picker.pick([request_for(VCPU=4)])] == [{"b"}]
            assert [roots(world, pick) for pick in picker.pick([request_for(VCPU=4)])] == [{"b"}]
            assert picker.pick([request_for(VCPU=4)]) == [None]


def test_joined_consumers_give_way_to_each_other_within_the_tree() -> None:
    """The first consumer may use either node, the second only the node with memory."""
    world = World()
    world.host("host")
    world.host("node0", parent="host", VCPU=1, MEMORY_MB=1)
    world.host("node1", parent="host", VCPU=1)
    small, large = Group("_1", {"VCPU": 1}), Group("_1", {"VCPU": 1, "MEMORY_MB": 1})
    requests = [PickRequest(SearchQuery((group,))) for group in (small, large)]
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick(requests)


def test_joined_consumers_fit_beside_an_over_committed_provider() -> None:
    world = World()
    world.host("host", VCPU=8)
    world.host("numa", parent="host", VCPU=Stock(4, used=10))
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick([request_for(VCPU=4), request_for(VCPU=4)])


def test_many_equal_consumers_that_do_not_fit_together_are_refused_at_once() -> None:
    """Their places can be swapped: trying each order would take longer than any budget allows."""
    world = World()
    world.host("host")
    for number in range(4):
        world.host(f"node{number}", parent="host", VCPU=5)
    picker = Picker(world.snapshot(), join=True, seed=1)
    request = PickRequest(SearchQuery((Group("_1", {"VCPU": 1}),)))
    assert picker.pick([request] * 21) == [None] * 21
    assert picker.cut_short == set()
    assert None not in picker.pick([request] * 20)


def test_consumers_that_must_be_apart_are_not_joined() -> None:
    world = World()
    world.host("host", VCPU=8)
    query = SearchQuery((Group("", {"VCPU": 1}),))
    requests = [PickRequest(query), PickRequest(query, exclusive=True)]
    assert Picker(world.snapshot(), join=True, seed=1).pick(requests) == [None, None]
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick(requests[1:])
    assert Picker(world.snapshot(), join=True, seed=1).pick([PickRequest(query, copies=2)]) == [None]


def test_each_joined_consumer_has_its_own_max_unit_and_releases_its_own_amounts() -> None:
    world = World()
    world.host("host", VCPU=Stock(8, max_unit=4))
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick([request_for(VCPU=4), request_for(VCPU=4)])
    world.host("host", VCPU=Stock(8, used=8))
    move = request_for(releases={"host": {"VCPU": 4}}, VCPU=2)
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick([move])
    assert None not in Picker(world.snapshot(), join=True, seed=1).pick([move, move])
    assert Picker(world.snapshot(), join=True, seed=1).pick([move, request_for(VCPU=1)]) == [None, None]


def test_copies_use_the_inventory_of_their_trees_if_a_pool_is_small() -> None:
    world = with_pool(3, Stock(1))
    for number in range(3):
        world.host(f"host{number}", aggregates=["A0"], VCPU=2, **({"DISK_GB": 1} if number else {}))
    for copies, fits in ((3, True), (4, False)):
        [pick] = Picker(world.snapshot(), seed=1).pick([request_for(copies, VCPU=1, DISK_GB=1)])
        assert (pick is not None) == fits


def test_copies_that_a_used_up_pool_cannot_supply_are_refused_at_once() -> None:
    """Trying all trees for the missing copies would take longer than any budget allows."""
    world = with_pool(400, Stock(50))
    borrowing = {"VCPU": 1, "DISK_GB": 1}
    picker = Picker(world.snapshot(), settings=Settings(operations=0), seed=1)
    picks = picker.pick([request_for(30, **borrowing), request_for(30, **borrowing), request_for(20, **borrowing)])
    assert [pick is None for pick in picks] == [False, True, False]
    assert picker.cut_short == set()


def test_a_pool_that_is_used_up_is_not_tried_for_each_of_its_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "OPERATIONS_PER_REQUEST", 1000)
    world = with_pool(1000, Stock(3))
    picker = Picker(world.snapshot(), settings=Settings(operations=0), seed=1)
    picks = picker.pick([request_for(VCPU=1, DISK_GB=1)] * 5)
    assert [pick is None for pick in picks] == [False, False, False, True, True]
    assert picker.cut_short == set()


def test_joined_consumers_that_fit_no_tree_are_refused_at_once() -> None:
    world = World()
    for number in range(400):
        world.host(f"host{number}", VCPU=30)
    picker = Picker(world.snapshot(), settings=Settings(operations=0), join=True, seed=1)
    requests = [request_for(VCPU=amount) for amount in (1, 2, 3, 4, 5, 6, 7, 8)]
    assert picker.pick(requests) == [None] * 8
    assert picker.cut_short == set()
    assert None not in picker.pick(requests[:7])
