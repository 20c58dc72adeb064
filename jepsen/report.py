"""Counts of a campaign by nemesis: what was acknowledged, refused, unavailable or unknown, and for how long."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jepsen.checker.recovery import recoveries
from jepsen.history import FINAL, History, Operation

#: The row of operations that began before the first event of their run.
PEACE = "none"


@dataclass
class Row:
    """Counts of operations that began after events of one nemesis, until the next event.

    Attributes:
        refused: By the code of the reply, or the status where it has none.
        unavailable: Replies that say that nothing was changed, because the database did not answer; calls that found no
            service to connect to; and reads without a reply.
        unknown: Writes of which it is unknown what became of them.
        longest: The most seconds in which no write was acknowledged; ``recovered``: the most until one was.
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
    """The rows of all runs that were added."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.violations: list[str] = []
        #: What searches ended without a verdict about: no violations.
        self.undecided: list[str] = []

    def add(self, history: History) -> None:
        """Count the operations and the events of a run."""
        events = sorted(history.events, key=lambda event: event.began)
        began = [event.began for event in events]
        for operation in history.operations:
            if operation.process != FINAL:
                place = bisect.bisect_right(began, operation.began)
                self._row(events[place - 1].nemesis if place else PEACE).count(operation)
        for recovery in recoveries(history):
            row = self._row(recovery.event.nemesis)
            row.events += 1
            row.longest = max(row.longest, recovery.longest)
            row.recovered = max(row.recovered, recovery.seconds or 0.0)

    def as_json(self) -> Mapping[str, Any]:
        """Return everything as numbers and text, by nemesis."""
        rows = {nemesis: {**vars(row), "refused": dict(row.refused)} for nemesis, row in self.rows.items()}
        return {"nemeses": rows, "violations": self.violations, "undecided": self.undecided}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        heads = (
            "nemesis",
            "events",
            "calls",
            "acknowledged",
            "refused",
            "unavailable",
            "unknown",
            "longest s",
            "again s",
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
