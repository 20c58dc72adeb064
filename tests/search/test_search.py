"""The search finds exactly what the brute force finds, in any order, and as much of it as is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import signals
from placement.search.choose import BREADTH_FIRST, DEPTH_FIRST
from placement.search.find import Found, Settings, find
from placement.search.query.query import Group, SearchQuery
from tests.search import oracle
from tests.strategies import TRAITS, candidate_requests, crowded_requests, crowds, examples, worlds
from tests.world import World

REQUESTS = 5
"""For each world: making one costs as much as several searches."""


def named(found: Found) -> list[oracle.Answer]:
    """The candidates in the words of the oracle."""

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


def found_once(found: Found) -> set[oracle.Answer]:
    answers = named(found)
    assert found.complete
    assert len(answers) == len(set(answers))
    return set(answers)


@examples(1000)
@given(data=st.data(), world=worlds())
def test_the_search_finds_what_the_brute_force_finds(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(REQUESTS):
        request: SearchQuery = data.draw(candidate_requests(world))
        assert found_once(find(request, snapshot)) == oracle.answers(world, request)


@examples(400)
@given(data=st.data(), world=crowds())
def test_where_places_are_short_too(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(REQUESTS):
        request: SearchQuery = data.draw(crowded_requests())
        assert found_once(find(request, snapshot)) == oracle.answers(world, request)


@examples(200)
@given(data=st.data(), world=worlds())
def test_order_does_not_matter_and_a_limit_gives_some_of_all(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    request: SearchQuery = data.draw(candidate_requests(world))
    everything = found_once(find(request, snapshot))
    limit, most = data.draw(st.integers(1, 5)), data.draw(st.sampled_from((None, 3)))
    for strategy in (BREADTH_FIRST, DEPTH_FIRST):
        for randomize in (False, True):
            settings = Settings(strategy=strategy, randomize=randomize, seed=data.draw(st.integers(0, 9)))
            assert found_once(find(request, snapshot, settings)) == everything
            limited = find(replace(request, limit=limit), snapshot, replace(settings, max_candidates=most))
            some = found_once(limited)
            assert some <= everything
            assert len(some) == min(limit, most or limit, len(everything))
            assert limited.limited == (len(some) == min(limit, most or limit))


@examples(200)
@given(data=st.data(), world=worlds())
def test_another_required_trait_never_adds_a_candidate(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    request: SearchQuery = data.draw(candidate_requests(world))
    more = frozenset({data.draw(st.sampled_from(TRAITS))})
    place = data.draw(st.integers(0, len(request.groups) - 1))
    groups = [
        replace(group, traits=replace(group.traits, any_of=(*group.traits.any_of, more))) if number == place else group
        for number, group in enumerate(request.groups)
    ]
    stricter = find(replace(request, groups=tuple(groups)), snapshot)
    assert found_once(stricter) <= found_once(find(request, snapshot))


def packing(rooms: Iterable[int], amounts: Iterable[int]) -> tuple[World, SearchQuery]:
    """Devices of one host, and a group for each amount."""
    world = World()
    world.host("host")
    for number, room in enumerate(rooms):
        world.host(f"device{number}", parent="host", VGPU=room)
    groups = (Group(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(amounts))
    return world, SearchQuery(tuple(groups))


def test_very_many_groups_have_fewer_candidates() -> None:
    """Ten thousand candidates of two hundred groups took gigabytes."""
    world, request = packing([100, 100], [1] * 200)
    found = find(request, world.snapshot(), Settings(10_000))
    assert 500 < len(found.candidates) < 1000
    assert (found.complete, found.shortage) == (False, "memory")
    assert find(replace(request, limit=500), world.snapshot(), Settings(10_000)).complete


def test_the_usual_number_of_groups_has_as_many_candidates_as_there_may_be() -> None:
    for groups in (1, 2, 8, 12):
        world, request = packing([100] * 12, [1] * groups)
        found = find(request, world.snapshot(), Settings(10_000))
        assert (len(found.candidates), found.complete) == (min(12**groups, 10_000), True)


def test_a_search_says_that_it_was_not_ended(caplog: pytest.LogCaptureFixture) -> None:
    """All that is asked for is even, and of each device there is an odd one too many."""
    halves = (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161)
    world, request = packing([sum(halves) // 2] * 4, [2 * half for half in halves])
    found = find(request, world.snapshot())
    assert (found.candidates, found.complete) == ([], False)
    assert "candidates of 17 groups was cut short" in caplog.text


def test_a_search_says_whether_its_limit_ended_it() -> None:
    world = World()
    for name in ("cn1", "cn2"):
        world.host(name, VCPU=8)
    heard: list[tuple[int, bool, str]] = []

    def listen(_seconds: float, found: int, limited: bool, obstacle: str) -> None:
        heard.append((found, limited, obstacle))

    signals.searched.connect(listen)
    try:
        for amount, limit in ((1, None), (1, 3), (1, 1), (9, 1)):
            find(SearchQuery((Group("", {"VCPU": amount}),), limit=limit), world.snapshot())
    finally:
        signals.searched.disconnect(listen)
    assert heard == [(2, False, ""), (2, False, ""), (1, True, ""), (0, False, "resources")]
