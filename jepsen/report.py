"""Counts of a campaign by nemesis: acknowledged, refused, unavailable and unknown operations, and recovery times."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jepsen.checker.recovery import recoveries
from jepsen.history import RUNNER, History, Operation

#: Row of the operations that began before the first event of their run.
NO_NEMESIS = "none"


@dataclass
class Row:
    """Counts of the operations that began after events of one nemesis, until the next event.

    Attributes:
        refused: Refusals by error code, or by status if there is no code.
        unavailable: Responses that guarantee that nothing was changed, because the database was unavailable; refused
            connections; and reads with an unknown outcome.
        unknown: Writes with an unknown outcome.
        longest: Longest time without an acknowledged write, in seconds.
        recovered: Longest recovery time, in seconds (``Recovery.seconds``).
    """

    events: int = 0
    operations: int = 0
    acknowledged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    unavailable: int = 0
    unknown: int = 0
    longest: float = 0.0
    recovered: float = 0.0

    def count(self, operation: Operation) -> None:
        self.operations += 1
        if operation.succeeded:
            self.acknowledged += 1
        elif operation.is_open and operation.method != "GET":
            self.unknown += 1
        elif operation.is_open or operation.status >= 500 or not operation.status:
            self.unavailable += 1
        else:
            self.refused[operation.code.removeprefix("placement.") or str(operation.status)] += 1


class Report:
    """Counts over all runs added."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.violations: list[str] = []
        #: Searches without a verdict; these are not violations.
        self.undecided: list[str] = []

    def add(self, history: History) -> None:
        """Count the operations and the events of a run."""
        events = sorted(history.events, key=lambda event: event.began)
        began = [event.began for event in events]
        for operation in history.operations:
            if operation.process != RUNNER:
                index = bisect.bisect_right(began, operation.began)
                self._row(events[index - 1].nemesis if index else NO_NEMESIS).count(operation)
        for recovery in recoveries(history):
            row = self._row(recovery.event.nemesis)
            row.events += 1
            row.longest = max(row.longest, recovery.longest)
            row.recovered = max(row.recovered, recovery.seconds or 0.0)

    def as_json(self) -> Mapping[str, Any]:
        """Return all rows, violations and undecided searches."""
        rows = {nemesis: {**vars(row), "refused": dict(row.refused)} for nemesis, row in self.rows.items()}
        return {"nemeses": rows, "violations": self.violations, "undecided": self.undecided}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        heads = (
            "nemesis",
            "events",
            "requests",
            "acknowledged",
            "refused",
            "unavailable",
            "unknown",
            "longest s",
            "recovery s",
        )
        width = max(map(len, [*self.rows, heads[0]]))
        yield "  ".join([heads[0].ljust(width), *heads[1:]])
        for nemesis, row in self.rows.items():
            refused = row.refused.total()
            counts = (row.events, row.operations, row.acknowledged, refused, row.unavailable, row.unknown)
            cells = [*map(str, counts), f"{row.longest:.2f}", f"{row.recovered:.2f}"]
            yield "  ".join(
                [nemesis.ljust(width), *(cell.rjust(len(head)) for cell, head in zip(cells, heads[1:], strict=True))]
            )
        yield "refused: " + ", ".join(f"{code} {count}" for code, count in self._refusals().most_common())
        if self.undecided:
            yield f"undecided: {len(self.undecided)}"

    def _refusals(self) -> Counter[str]:
        return sum((row.refused for row in self.rows.values()), Counter())

    def _row(self, nemesis: str) -> Row:
        return self.rows.setdefault(nemesis, Row())
