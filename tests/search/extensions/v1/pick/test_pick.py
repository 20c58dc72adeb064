"""Each pick is a place that the brute force allows, and without a pick the brute force finds no place either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.v1.pick import place_search, sample
from placement.extensions.v1.pick.picker import Pick, Picker, PickRequest
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.index.snapshot import Snapshot
from placement.search.query.query import SearchQuery
from placement.search.solver.problem import Candidate
from tests.search import oracle, pick_oracle
from tests.strategies import crowded_queries, crowds, examples, search_queries, worlds
from tests.world import World

STRATEGIES = (
    *(Strategy(preference) for preference in Preference),
    *(Strategy(spread_over=domains) for domains in ("root", "aggregate", "T")),
)


def as_oracle_candidate(snapshot: Snapshot, candidate: Candidate) -> oracle.Candidate:
    """Return the candidate in the form of the oracle."""

    def name(slot: int) -> str:
        return snapshot.provider(slot).uuid

    return (
        frozenset((name(slot), *item) for slot, amounts in candidate.amounts.items() for item in amounts.items()),
        frozenset((suffix, frozenset(map(name, slots))) for suffix, slots in candidate.mappings.items()),
    )


def names(snapshot: Snapshot, slots: Iterable[int]) -> list[str]:
    return [snapshot.provider(slot).uuid for slot in slots]


def released_by(request: PickRequest) -> list[tuple[str, str, int]]:
    """Return the amounts that the consumer releases, as amounts of the oracle."""
    return [(uuid, class_, -amount) for uuid, amounts in request.releases.items() for class_, amount in amounts.items()]


def in_order(requests: Sequence[PickRequest]) -> list[int]:
    """Return the positions of the requests in the order of placing."""
    firsts: list[PickRequest] = []

    def group(request: PickRequest) -> int:
        for number, first in enumerate(firsts):
            if first.query == request.query:
                return number
        firsts.append(request)
        return len(firsts) - 1

    groups = [group(request) for request in requests]
    return sorted(range(len(requests)), key=lambda position: groups[position])


def check(world: World, requests: Sequence[PickRequest], picks: Sequence[Pick | None], allowed: set[str]) -> World:
    """Compare each pick with the possible ones after the earlier picks; return the world with all of them."""
    snapshot = world.snapshot()
    with_any: set[str] = set()
    with_listed: set[str] = set()
    for position in in_order(requests):
        request, pick = requests[position], picks[position]
        anchors = sorted(allowed - (with_any if request.exclusive else with_listed))
        free = pick_oracle.use(world, released_by(request))
        if pick is None:
            assert not pick_oracle.has_copies(free, request.query, request.copies, anchors)
            continue
        roots = names(snapshot, pick.roots)
        assert len(pick.candidates) == len(set(roots)) == request.copies
        for root, candidate in zip(roots, pick.candidates, strict=True):
            place = as_oracle_candidate(snapshot, candidate)
            assert place in pick_oracle.places(free, request.query, anchors).get(root, ())
            free = pick_oracle.use(free, place[0], one_consumer=True)
            if not request.dry_run:
                world = pick_oracle.use(world, place[0])
        if not request.dry_run:
            with_any.update(roots)
            with_listed.update(roots if request.exclusive else ())
    return world


@st.composite
def released_amounts(draw: st.DrawFn, world: World) -> dict[str, dict[str, int]]:
    """Draw amounts of the usage that one consumer holds."""
    used = [
        (member.name, class_, stock.used)
        for member in world.members.values()
        for class_, stock in member.stock.items()
        if stock.used
    ]
    if not used or draw(st.integers(0, 2)):
        return {}
    released: dict[str, dict[str, int]] = {}
    for name, class_, usage in draw(st.lists(st.sampled_from(used), max_size=2)):
        released.setdefault(name, {})[class_] = draw(st.integers(1, usage))
    return released


@st.composite
def pick_requests(draw: st.DrawFn, world: World, queries: list[SearchQuery]) -> PickRequest:
    odds = draw(st.integers(0, 15))
    return PickRequest(
        draw(st.sampled_from(queries)),
        copies=1 + odds % 2,
        releases=draw(released_amounts(world)),
        exclusive=odds == 7,
        dry_run=odds == 8,
    )


def few_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """Reduce samples to one tree, so that few trees behave like many, and narrow a query after each refused tree."""
    patch.setattr(sample, "SAMPLE", 1)
    patch.setattr(sample, "PER_PICK", 0)
    patch.setattr(sample, "GROWTH", 1)
    patch.setattr(place_search, "SAMPLE_RATIO", 0)
    patch.setattr(place_search, "MIN_REMAINING", -100)
    patch.setattr(place_search, "REFUSED", 1)


def pick_and_check(data: st.DataObject, world: World, queries: list[SearchQuery]) -> None:
    snapshot = world.snapshot()
    roots = [slot for slot in snapshot.providers.slots().tolist() if snapshot.provider(slot).parent < 0]
    requests = data.draw(st.lists(pick_requests(world, queries), min_size=1, max_size=8))
    avoid = data.draw(st.sets(st.sampled_from(roots), max_size=1))
    within = data.draw(st.none() | st.sets(st.sampled_from(roots), min_size=1))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            few_at_a_time(patch)
        picker = Picker(snapshot, data.draw(st.sampled_from(STRATEGIES)), avoid=avoid, within=within, seed=1)
        picks = picker.pick(requests)
    assert not picker.cut_short
    allowed = set(roots if within is None else within) - avoid
    check(world, requests, picks, {*names(snapshot, allowed)})


@examples(250)
@given(data=st.data(), world=worlds())
def test_picks_agree_with_the_brute_force(data: st.DataObject, world: World) -> None:
    pick_and_check(data, world, [data.draw(search_queries(world, max_suffixed=2)) for _ in range(2)])


@examples(120)
@given(data=st.data(), world=crowds())
def test_picks_agree_with_the_brute_force_where_capacity_is_short(data: st.DataObject, world: World) -> None:
    pick_and_check(data, world, [data.draw(crowded_queries()) for _ in range(2)])


@examples(120)
@given(data=st.data(), world=crowds() | worlds())
def test_joined_picks_are_in_one_tree_that_fits_all(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    queries = [data.draw(search_queries(world, max_suffixed=1)) for _ in range(2)]
    requests = [
        PickRequest(
            data.draw(st.sampled_from(queries)),
            releases=data.draw(released_amounts(world)),
            dry_run=data.draw(st.booleans()),
        )
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    picker = Picker(snapshot, join=True, seed=1)
    picks = picker.pick(requests)
    consumers = [(request.query, released_by(request)) for request in requests]
    if None in picks:
        assert set(picks) == {None}
        roots = [name for name, member in world.members.items() if member.parent is None]
        assert not any(pick_oracle.fit_together(world, consumers, root) for root in roots)
        return
    assert len({pick.roots for pick in picks if pick}) == 1
    together = world
    for (query, released), request, pick in zip(consumers, requests, picks, strict=True):
        assert pick is not None
        [root], [place] = (
            names(snapshot, pick.roots),
            [as_oracle_candidate(snapshot, candidate) for candidate in pick.candidates],
        )
        assert place in pick_oracle.places(pick_oracle.use(together, released), query, [root])[root]
        together = pick_oracle.use(together, place[0])
        world = world if request.dry_run else pick_oracle.use(world, place[0])
    # Places of dry runs take no capacity.
    [last] = picker.pick([PickRequest(queries[0])])
    roots = [name for name, member in world.members.items() if member.parent is None]
    assert (last is not None) == any(pick_oracle.fit_together(world, [(queries[0], [])], root) for root in roots)
