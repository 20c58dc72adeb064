"""The search finds exactly what the brute force finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.candidates.problem import Candidate
from placement.candidates.request import CandidateRequest
from placement.candidates.search import Found, search
from tests.candidates import oracle
from tests.strategies import candidate_requests, worlds
from tests.world import World


def named(found: Found) -> list[oracle.Answer]:
    """The candidates in the words of the oracle."""

    def name(slot: int) -> str:
        return found.snapshot.provider(slot).uuid

    def answer(candidate: Candidate) -> oracle.Answer:
        return (
            frozenset((name(slot), *item) for slot, given in candidate.amounts.items() for item in given.items()),
            frozenset((suffix, frozenset(map(name, slots))) for suffix, slots in candidate.mappings.items()),
        )

    return [answer(candidate) for candidate in found.candidates]


@settings(max_examples=1000, deadline=None)
@given(data=st.data(), world=worlds())
def test_the_search_finds_what_the_brute_force_finds(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(5):
        request: CandidateRequest = data.draw(candidate_requests(world))
        found = named(search(request, snapshot))
        assert len(found) == len(set(found))
        assert set(found) == oracle.answers(world, request)
