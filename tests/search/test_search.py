"""A search finds exactly the candidates of the brute force, in any order, up to its limit."""

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

#: Queries for each world; creating a world costs as much as several searches.
QUERIES = 5


def as_oracle_candidates(result: SearchResult) -> list[oracle.Candidate]:
    """Return the candidates in the form of the oracle."""

    def name(slot: int) -> str:
        return result.snapshot.provider(slot).uuid

    def names(slots: Iterable[int]) -> frozenset[str]:
        listed = [name(slot) for slot in slots]
        assert len(listed) == len(set(listed)), listed
        return frozenset(listed)

    return [
        (
            frozenset((name(slot), *item) for slot, amounts in candidate.amounts.items() for item in amounts.items()),
            frozenset((suffix, names(slots)) for suffix, slots in candidate.mappings.items()),
        )
        for candidate in result.candidates
    ]


def distinct_candidates(result: SearchResult) -> set[oracle.Candidate]:
    candidates = as_oracle_candidates(result)
    assert result.complete
    assert len(candidates) == len(set(candidates))
    return set(candidates)


@examples(1000)
@given(data=st.data(), world=worlds())
def test_the_search_finds_the_candidates_of_the_brute_force(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(QUERIES):
        query: SearchQuery = data.draw(search_queries(world))
        assert distinct_candidates(find(query, snapshot)) == oracle.candidates(world, query)


@examples(400)
@given(data=st.data(), world=crowds())
def test_the_search_finds_the_candidates_of_the_brute_force_where_capacity_is_short(
    data: st.DataObject, world: World
) -> None:
    snapshot = world.snapshot()
    for _ in range(QUERIES):
        query: SearchQuery = data.draw(crowded_queries())
        assert distinct_candidates(find(query, snapshot)) == oracle.candidates(world, query)


@examples(200)
@given(data=st.data(), world=worlds())
def test_the_order_does_not_change_the_set_and_a_limit_returns_a_subset(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    all_candidates = distinct_candidates(find(query, snapshot))
    limit, max_candidates = data.draw(st.integers(1, 5)), data.draw(st.sampled_from((None, 3)))
    for strategy in (BREADTH_FIRST, DEPTH_FIRST):
        for randomize in (False, True):
            settings = Settings(strategy=strategy, randomize=randomize, seed=data.draw(st.integers(0, 9)))
            assert distinct_candidates(find(query, snapshot, settings)) == all_candidates
            limited = find(replace(query, limit=limit), snapshot, replace(settings, max_candidates=max_candidates))
            subset = distinct_candidates(limited)
            assert subset <= all_candidates
            assert len(subset) == min(limit, max_candidates or limit, len(all_candidates))
            assert limited.limited == (len(subset) == min(limit, max_candidates or limit))


@examples(200)
@given(data=st.data(), world=worlds())
def test_another_required_trait_never_adds_a_candidate(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    query: SearchQuery = data.draw(search_queries(world))
    extra_trait = frozenset({data.draw(st.sampled_from(TRAITS))})
    place = data.draw(st.integers(0, len(query.groups) - 1))
    groups = [
        replace(group, traits=replace(group.traits, any_of=(*group.traits.any_of, extra_trait)))
        if number == place
        else group
        for number, group in enumerate(query.groups)
    ]
    stricter = find(replace(query, groups=tuple(groups)), snapshot)
    assert distinct_candidates(stricter) <= distinct_candidates(find(query, snapshot))


def packing(capacities: Iterable[int], amounts: Iterable[int]) -> tuple[World, SearchQuery]:
    """Return a host with devices of these capacities, and a query with a group for each amount."""
    world = World()
    world.host("host")
    for number, capacity in enumerate(capacities):
        world.host(f"device{number}", parent="host", VGPU=capacity)
    groups = (Group(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(amounts))
    return world, SearchQuery(tuple(groups))


def test_a_search_of_two_hundred_groups_returns_fewer_than_a_thousand_candidates() -> None:
    """Ten thousand candidates of two hundred groups took gigabytes."""
    world, query = packing([100, 100], [1] * 200)
    result = find(query, world.snapshot(), Settings(10_000))
    assert 500 < len(result.candidates) < 1000
    assert (result.complete, result.shortage) == (False, "memory")
    for limit in (500, len(result.candidates)):
        enough = find(replace(query, limit=limit), world.snapshot(), Settings(10_000))
        assert (len(enough.candidates), enough.limited, enough.shortage) == (limit, True, None)
    more = find(replace(query, limit=len(result.candidates) + 1), world.snapshot(), Settings(10_000))
    assert (len(more.candidates), more.limited, more.shortage) == (len(result.candidates), False, "memory")


def test_a_search_of_up_to_twelve_groups_returns_up_to_ten_thousand_candidates() -> None:
    for groups in (1, 2, 8, 12):
        world, query = packing([100] * 12, [1] * groups)
        result = find(query, world.snapshot(), Settings(10_000))
        assert (len(result.candidates), result.complete) == (min(12**groups, 10_000), True)


def test_a_search_that_is_cut_short_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """All amounts are even, and all capacities odd: no combination fits, but no rule detects it early."""
    halves = (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161)
    world, query = packing([sum(halves) // 2] * 4, [2 * half for half in halves])
    result = find(query, world.snapshot())
    assert (result.candidates, result.complete) == ([], False)
    assert "candidates of 17 groups was cut short" in caplog.text


def test_a_signal_states_whether_the_limit_ended_the_search() -> None:
    world = World()
    for name in ("cn1", "cn2"):
        world.host(name, VCPU=8)
    received: list[tuple[int, bool, str]] = []

    def listen(_seconds: float, result: int, limited: bool, obstacle: str) -> None:
        received.append((result, limited, obstacle))

    signals.searched.connect(listen)
    try:
        for amount, limit in ((1, None), (1, 3), (1, 1), (9, 1)):
            find(SearchQuery((Group("", {"VCPU": amount}),), limit=limit), world.snapshot())
    finally:
        signals.searched.disconnect(listen)
    assert received == [(2, False, ""), (2, False, ""), (1, True, ""), (0, False, "resources")]
