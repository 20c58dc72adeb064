"""Explanations of deliberately costly queries; the tests count work, not time."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

import pytest

from placement import microversion
from placement.extensions.v1.explain.explain import explain
from placement.index.snapshot import Snapshot
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.query import SearchQuery
from tests.world import Stock, World


def query_of(*parameters: str) -> SearchQuery:
    pairs = [tuple(parameter.split("=", 1)) for parameter in parameters]
    return parse.search_query(Parameters(pairs), microversion.LATEST)


# --- names ---


class Comparisons(difflib.SequenceMatcher):
    """A counter of compared names."""

    count = 0

    def set_seq1(self, name: str) -> None:
        Comparisons.count += 1
        super().set_seq1(name)


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Comparisons]]:
    Comparisons.count = 0
    monkeypatch.setattr(difflib, "SequenceMatcher", Comparisons)
    return Comparisons


def test_three_unknown_names_are_each_compared_with_fifty_existing_names(comparisons: type[Comparisons]) -> None:
    world = World()
    world.host("cn1", VCPU=8)
    existing = [f"CUSTOM_RACK_{number:04}" for number in range(5_000)]
    unknown = [f"CUSTOM_RACK_{number}_X" for number in range(21)]
    world.host("cn2", traits=existing)
    query = query_of("resources=VCPU:1", f"required={','.join(unknown)}")
    mistakes = explain(query, world.snapshot(), unknown_traits=unknown).mistakes
    assert [mistake.kind for mistake in mistakes] == ["trait"] * 20
    assert [mistake.suggestion is not None for mistake in mistakes] == [True] * 3 + [False] * 17
    # A matcher begins with one comparison with the empty string.
    assert comparisons.count == 3 * (1 + 50)


def test_a_long_name_is_not_compared_with_others(comparisons: type[Comparisons]) -> None:
    world = World()
    world.host("cn1", VCPU=8)
    long = "CUSTOM_" + 58 * "X"
    query = query_of("resources=VCPU:1", f"required={long}")
    world.host("cn2", traits=[f"{long[:-1]}Y"])
    (mistake,) = explain(query, world.snapshot(), unknown_traits=[long]).mistakes
    assert (mistake.text, mistake.suggestion) == (f"There is no trait {long}.", None)
    assert comparisons.count == 0


def test_the_intended_name_is_found_among_thousands() -> None:
    world = World()
    world.host("cn1", VCPU=8)
    existing = [*(f"CUSTOM_RACK_{number:04}" for number in range(2_000)), "HW_CPU_X86_AVX512F", "CUSTOM_GOLD"]
    world.host("cn2", traits=existing)
    for name, intended in {"HW_CPU_X86_AVX512": "HW_CPU_X86_AVX512F", "CUSTOM_GLOD": "CUSTOM_GOLD"}.items():
        query = query_of("resources=VCPU:1", f"required={name}")
        (mistake,) = explain(query, world.snapshot(), unknown_traits=[name]).mistakes
        assert mistake.suggestion is not None
        assert mistake.suggestion.split(", ")[0] == intended


# --- subtrees ---


class Ancestries(Snapshot):
    """A counter of walks from a provider to its root."""

    __slots__ = ()
    count = 0

    def ancestry(self, slot: int) -> tuple[int, ...]:
        Ancestries.count += 1
        return super().ancestry(slot)


@pytest.mark.parametrize(("trees", "place"), [(50, "any tree"), (60, "any of the 50 trees examined")])
def test_subtrees_are_examined_in_few_trees_and_each_group_once(trees: int, place: str) -> None:
    world = World()
    for number in range(trees):
        world.host(f"cn{number:02}", CUSTOM_Z=1)
        world.host(f"cn{number:02}-a", parent=f"cn{number:02}", VCPU=64)
        world.host(f"cn{number:02}-b", parent=f"cn{number:02}", MEMORY_MB=64)
    snapshot = world.snapshot()
    snapshot.__class__ = Ancestries
    Ancestries.count = 0
    query = query_of(
        *(f"resources_A{number}=VCPU:1" for number in range(4)),
        *(f"resources_B{number}=MEMORY_MB:1" for number in range(4)),
        *(f"same_subtree=_A{a},_B{b}" for a in range(4) for b in range(4)),
        "group_policy=none",
    )
    mistakes = [mistake for mistake in explain(query, snapshot).mistakes if mistake.kind == "same_subtree"]
    assert len(mistakes) == 5
    assert all(place in mistake.text for mistake in mistakes)
    # The first five subtrees name six groups; each group has one provider in a tree.
    assert Ancestries.count == 50 * 6


# --- work ---

_Result = TypeVar("_Result")


def with_few_calls(function: Callable[[], _Result], max_calls: int) -> _Result:
    """Return the result of a function; fail as soon as it calls more functions than allowed."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event.endswith("call")
        if calls > max_calls:
            sys.setprofile(None)
            pytest.fail(f"more than {max_calls} calls")

    sys.setprofile(count)
    try:
        return function()
    finally:
        sys.setprofile(None)


def test_a_large_min_unit_is_not_reached_by_counting_down() -> None:
    world = World()
    world.host("cn1", DISK_GB=Stock(2_000_000_000, min_unit=1_999_999_999))
    world.host("cn2", DISK_GB=Stock(1_000_000_000, min_unit=999_999_990, step_size=7))
    query, snapshot = query_of("resources1=DISK_GB:2000000001"), world.snapshot()
    relaxations = with_few_calls(lambda: explain(query, snapshot), 20_000).relaxations
    assert [relaxation.text for relaxation in relaxations] == ["with resources1=DISK_GB:2000000000"]


def test_a_thousand_names_are_not_relaxed_together() -> None:
    world = World()
    world.host("cn1", VCPU=8)
    names = ",".join(f"CUSTOM_{number:04}" for number in range(1_000))
    query, snapshot = query_of("resources=VCPU:1", f"required={names}"), world.snapshot()
    explanation = with_few_calls(lambda: explain(query, snapshot), 1_000_000)
    assert (explanation.relaxations, explanation.near_misses, explanation.complete) == ((), (), False)


@pytest.mark.parametrize(("conditions", "complete"), [(40, True), (41, False)])
def test_the_explanation_of_a_query_with_too_many_conditions_is_incomplete(conditions: int, complete: bool) -> None:
    world = World()
    world.host("cn1", VCPU=8, traits=[f"CUSTOM_{number}" for number in range(1, conditions)])
    # All but one are met; each may matter, since the providers of the unsuffixed group meet them together.
    required = ",".join(f"CUSTOM_{number}" for number in range(1, conditions))
    explanation = explain(query_of("resources=VCPU:9", f"required={required}"), world.snapshot())
    assert explanation.complete == complete
    assert [relaxation.text for relaxation in explanation.relaxations] == ["with resources=VCPU:8"] * complete


@pytest.mark.parametrize(("units", "text"), [(12, "with resources_A=A:1"), (13, "without resources_A=A:900")])
def test_an_amount_is_lowered_in_at_most_twelve_units(units: int, text: str) -> None:
    world = World()
    world.host("host")
    world.host("free", parent="host", A=1)
    for number in range(2, units + 1):
        world.host(f"taken{number}", parent="host", A=Stock(100, step_size=number), B=1)
    groups = (f"resources_B{number}=B:1" for number in range(2, units + 1))
    query = query_of("resources_A=A:900", *groups, "group_policy=isolate")
    explanation = explain(query, world.snapshot())
    assert explanation.relaxations[0].text == text
    assert explanation.complete == (units == 12)
