"""Checks of each worker's index at the end of a run, and of the rows of the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jepsen.checker.inventories import inventories
from jepsen.history import History
from jepsen.violation import Violation


def indices(history: History) -> list[Violation]:
    """Return a violation for each worker whose index differs from a newly built one, with the first difference."""
    final = history.final.get("indices")
    if final is None:
        return []
    stale = [
        (worker, _first_difference(worker["index"], final["database"]))
        for worker in final["workers"]
        if "index" in worker
    ]
    return [
        Violation(
            "each index matches the database",
            f"service {worker['service']}, process {worker['process']}: {difference}",
        )
        for worker, difference in stale
    ]


#: Inconsistency that a reduction of an inventory below its usage explains; the check of refusals judges each claim.
_OVERUSED = "usage above the capacity"
#: Inconsistency that a jump of the database's clock explains: the clock orders changes that raise no generation.
_FALSE_EVENT = "an event that contradicts the tables"


def soundness(history: History) -> list[Violation]:
    """Return a violation for each invariant of the rows that the run has broken."""
    initial: Mapping[str, list[str]] = history.run.get("flaws", {})
    final: Mapping[str, list[str]] = history.final.get("soundness", {})
    allowed = {_OVERUSED: _reduced_providers(history)}
    flaws = {
        flaw: [row for row in rows if row not in initial.get(flaw, []) and row not in allowed.get(flaw, ())]
        for flaw, rows in final.items()
        if flaw != _FALSE_EVENT or not _clock_jumped(history)
    }
    return [Violation("consistent rows", f"{flaw}: {', '.join(rows[:5])}") for flaw, rows in flaws.items() if rows]


def _clock_jumped(history: History) -> bool:
    return any(event.nemesis == "database-clock" for event in history.events)


def _reduced_providers(history: History) -> set[str]:
    """Return the providers whose capacity may have become smaller."""
    providers = set()
    for (provider, _), register in inventories(history).items():
        capacities = {
            (write.value.min_capacity, write.value.max_capacity) for write in register.writes if write.value is not None
        }
        if len(capacities) > 1:
            providers.add(provider)
    return providers


def _first_difference(index: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    return next(_differences("", index, expected), "the digests differ")


def _differences(path: str, value: Any, expected: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and isinstance(expected, Mapping):
        for key in sorted(value.keys() | expected.keys()):
            yield from _differences(f"{path}[{key}]", value.get(key), expected.get(key))
    elif _has_names(value) and _has_names(expected) and {*value} != {*expected}:
        missing, more = sorted({*expected} - {*value}), sorted({*value} - {*expected})
        yield f"{path} lacks {missing or 'nothing'} and additionally contains {more or 'nothing'}"
    elif value != expected:
        yield f"{path} is {value}, expected {expected}"


def _has_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
