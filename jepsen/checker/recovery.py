"""How long no write is acknowledged after each event of a history."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from jepsen import catalogue
from jepsen.history import FINAL, Event, History, Operation
from jepsen.violation import Violation

#: Seconds until writes are acknowledged again, by what a nemesis kills or stops; for machines that are not shared.
LIMITS = {"worker": 3.0, "database": 10.0, "node": 10.0}
_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Recovery:
    """What follows an event, until the next one begins or the clients end.

    Attributes:
        seconds: From the event, or from its end for one that pauses something, to the first acknowledgement of a write
            that began after that; None: there was none.
        longest: The most seconds in which no write was acknowledged.
    """

    event: Event
    seconds: float | None
    longest: float


def recoveries(history: History) -> list[Recovery]:
    """Return the recovery from each event, in the order in which they began."""
    writes = sorted(acknowledged_writes(history), key=lambda write: write[1])
    clients_end = max((operation.began for operation in history.operations if operation.process != FINAL), default=0)
    events = sorted(history.events, key=lambda event: event.began)
    ends = [*(event.began for event in events), clients_end][1:]
    return [_recovery(event, end, writes) for event, end in zip(events, ends, strict=True)]


def slow(history: History) -> list[Violation]:
    """Return the events after which writes were not acknowledged within the limits."""
    violations = []
    for recovery in recoveries(history):
        limit = LIMITS.get(catalogue.nemesis(recovery.event.nemesis).kills)
        if limit is None or (recovery.seconds is not None and recovery.seconds <= limit):
            continue
        time = "never" if recovery.seconds is None else f"after {recovery.seconds:.1f} s"
        at = recovery.event.began / _SECOND
        sentence = f"{recovery.event.nemesis} at {at:.1f} s: writes are acknowledged {time}, {limit:.0f} s allowed"
        violations.append(Violation("recovery in time", sentence))
    return violations


def acknowledged_writes(history: History) -> Iterator[tuple[int, int]]:
    """Yield when each write that was acknowledged to a client began and ended."""
    for operation in history.operations:
        if is_write(operation) and operation.succeeded and operation.ended is not None:
            yield operation.began, operation.ended


def is_write(operation: Operation) -> bool:
    """Whether it is a call of a client, before the end of the run, that changes something."""
    return operation.process != FINAL and operation.method != "GET"


def _recovery(event: Event, end: int, writes: list[tuple[int, int]]) -> Recovery:
    pauses = catalogue.nemesis(event.nemesis).pauses
    start = event.healed if pauses and event.healed is not None else event.began
    first = min((ended for began, ended in writes if began > start), default=None)
    within = [event.began, *(ended for _, ended in writes if event.began < ended < end), end]
    longest = max(later - earlier for earlier, later in itertools.pairwise(within))
    return Recovery(event, None if first is None else (first - start) / _SECOND, longest / _SECOND)
