"""The summary of a soak compares the beginning and the end of its second half."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the imported script."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("bench.soak")


@pytest.mark.parametrize("slices", [1, 2, 3, 4, 12])
def test_a_steady_run_of_any_length_has_not_grown(soak: Any, slices: int) -> None:
    steady = {number: soak.Sample(100.0, 4) for number in range(slices)}
    assert soak._grown(steady, slices) == []


def test_growth_before_the_last_reload_does_not_count(soak: Any) -> None:
    half, slices = 6, 12
    samples = {number: soak.Sample(100.0 if number <= half else 200.0, 4) for number in range(slices)}
    assert soak._grown(samples, slices) == []


def test_growth_after_the_last_reload_counts(soak: Any) -> None:
    samples = {number: soak.Sample(100.0 + 10 * number, number) for number in range(12)}
    memory, connections = soak._grown(samples, 12)
    assert memory.startswith("memory grew from 170 MB")
    assert connections == "connections grew from 7 to 11"
