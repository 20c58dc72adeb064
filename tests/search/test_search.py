"""A search finds exactly what the brute force finds, in any order, up to its limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import signals
from placement.search.choose import BREADTH_FIRST, DEPTH_FIRST
from placement.search.find import SearchResult, Settings, find
from placement.search.query.query import Group, SearchQuery
from tests.search import oracle
from tests.strategies import TRAITS, crowded_queries, crowds, examples, search_queries, worlds
from tests.world import World

#: Queries for each world: making a world costs as much as several searches.
QUERIES = 5


def named(found: SearchResult) -> list[oracle.Answer]:
    """Return the candidates as answers of the oracle."""

    def name(slot: int) -> str:
        return found.snapshot.provider(slot).uuid

    def names(slots: Iterable[int]) -> frozenset[str]:
        listed = [name(slot) for slot in slots]
        assert len(listed) == len(set(listed)), listed
        return frozenset(listed)

    return [
        (
            frozenset((name(slot), *item) for slot, given in candidate.amounts.items() for item in given.items()),
            frozenset((suffix, names(slots)) for suffix, slots in candidate.mappings.items()),
        )
        for candidate in found.candidates
    ]


def found_once(found: SearchResult) -> set[oracle.Answer]:
    answers = named(found)
    assert found.complete
    assert len(answers) == len(set(answers))
    return set(answers)


@examples(1000)
@given(data=st.data(), world=worlds())
def test_the_search_finds_what_the_brute_force_finds(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(QUERIES):
        query: SearchQuery = data.draw(search_queries(world))
        assert found_once(find(query, snapshot)) == oracle.answers(world, query)


@examples(400)
@given(data=st.data(), world=crowds())
def test_the_search_finds_it_where_capacity_is_short(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(QUERIES):
        query: SearchQuery = data.draw(crowded_queries())
        assert found_once(find(query, snapshot)) == oracle.answers(world, query)


@examples(200)
@given(data=st.data(), world=worlds())
def test_the_order_does_not_change_the_set_and_a_limit_returns_a_part_of_it(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    everything = found_once(find(query, snapshot))
    limit, most = data.draw(st.integers(1, 5)), data.draw(st.sampled_from((None, 3)))
    for strategy in (BREADTH_FIRST, DEPTH_FIRST):
        for randomize in (False, True):
            settings = Settings(strategy=strategy, randomize=randomize, seed=data.draw(st.integers(0, 9)))
            assert found_once(find(query, snapshot, settings)) == everything
            limited = find(replace(query, limit=limit), snapshot, replace(settings, max_candidates=most))
            some = found_once(limited)
            assert some <= everything
            assert len(some) == min(limit, most or limit, len(everything))
            assert limited.limited == (len(some) == min(limit, most or limit))


@examples(200)
@given(data=st.data(), world=worlds())
def test_another_required_trait_never_adds_a_candidate(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    more = frozenset({data.draw(st.sampled_from(TRAITS))})
    place = data.draw(st.integers(0, len(query.groups) - 1))
    groups = [
        replace(group, traits=replace(group.traits, any_of=(*group.traits.any_of, more))) if number == place else group
        for number, group in enumerate(query.groups)
    ]
    stricter = find(replace(query, groups=tuple(groups)), snapshot)
    assert found_once(stricter) <= found_once(find(query, snapshot))


def packing(rooms: Iterable[int], amounts: Iterable[int]) -> tuple[World, SearchQuery]:
    """Return a host with devices of these capacities, and a query with a group for each amount."""
    world = World()
    world.host("host")
    for number, room in enumerate(rooms):
        world.host(f"device{number}", parent="host", VGPU=room)
    groups = (Group(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(amounts))
    return world, SearchQuery(tuple(groups))


def test_very_many_groups_have_fewer_candidates() -> None:
    """Ten thousand candidates of two hundred groups took gigabytes."""
    world, query = packing([100, 100], [1] * 200)
    found = find(query, world.snapshot(), Settings(10_000))
    assert 500 < len(found.candidates) < 1000
    assert (found.complete, found.shortage) == (False, "memory")
    for limit in (500, len(found.candidates)):
        enough = find(replace(query, limit=limit), world.snapshot(), Settings(10_000))
        assert (len(enough.candidates), enough.limited, enough.shortage) == (limit, True, None)
    more = find(replace(query, limit=len(found.candidates) + 1), world.snapshot(), Settings(10_000))
    assert (len(more.candidates), more.limited, more.shortage) == (len(found.candidates), False, "memory")


def test_up_to_twelve_groups_have_ten_thousand_candidates() -> None:
    for groups in (1, 2, 8, 12):
        world, query = packing([100] * 12, [1] * groups)
        found = find(query, world.snapshot(), Settings(10_000))
        assert (len(found.candidates), found.complete) == (min(12**groups, 10_000), True)


def test_a_search_that_is_cut_short_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """All amounts are even, and the capacities odd: no combination fits, and no rule sees it at once."""
    halves = (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161)
    world, query = packing([sum(halves) // 2] * 4, [2 * half for half in halves])
    found = find(query, world.snapshot())
    assert (found.candidates, found.complete) == ([], False)
    assert "candidates of 17 groups was cut short" in caplog.text


def test_a_signal_states_whether_the_limit_ended_the_search() -> None:
    world = World()
    for name in ("cn1", "cn2"):
        world.host(name, VCPU=8)
    received: list[tuple[int, bool, str]] = []

    def listen(_seconds: float, found: int, limited: bool, obstacle: str) -> None:
        received.append((found, limited, obstacle))

    signals.searched.connect(listen)
    try:
        for amount, limit in ((1, None), (1, 3), (1, 1), (9, 1)):
            find(SearchQuery((Group("", {"VCPU": amount}),), limit=limit), world.snapshot())
    finally:
        signals.searched.disconnect(listen)
    assert received == [(2, False, ""), (2, False, ""), (1, True, ""), (0, False, "resources")]
