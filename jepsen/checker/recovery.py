"""Time without acknowledged writes after each event of a history."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from jepsen import catalogue
from jepsen.history import RUNNER, Event, History, Operation
from jepsen.violation import Violation

#: Seconds within which writes must be acknowledged, by the kind of process that a nemesis harms; for dedicated
#: machines.
LIMITS = {"worker": 3.0, "database": 10.0, "node": 10.0}
_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Recovery:
    """The period from an event until the next one begins or the clients end.

    Attributes:
        seconds: Time from the start of the event, or from its end if it pauses a process, to the first acknowledgement
            of a write that began later; None: there was none.
        longest: Longest time without an acknowledged write, in seconds.
    """

    event: Event
    seconds: float | None
    longest: float


def recoveries(history: History) -> list[Recovery]:
    """Return the recovery from each event, in the order in which the events began."""
    writes = sorted(acknowledged_writes(history), key=lambda write: write[1])
    clients_end = max((operation.began for operation in history.operations if operation.process != RUNNER), default=0)
    events = sorted(history.events, key=lambda event: event.began)
    ends = [*(event.began for event in events), clients_end][1:]
    return [_recovery(event, end, writes) for event, end in zip(events, ends, strict=True)]


def slow(history: History) -> list[Violation]:
    """Return a violation for each event after which no write was acknowledged within the limit."""
    violations = []
    for recovery in recoveries(history):
        limit = LIMITS.get(catalogue.nemesis(recovery.event.nemesis).kills)
        if limit is None or (recovery.seconds is not None and recovery.seconds <= limit):
            continue
        time = "never" if recovery.seconds is None else f"after {recovery.seconds:.1f} s"
        at = recovery.event.began / _SECOND
        acknowledgement = f"the first write is acknowledged {time}, the limit is {limit:.0f} s"
        sentence = f"{recovery.event.nemesis} at {at:.1f} s: {acknowledgement}"
        violations.append(Violation("recovery in time", sentence))
    return violations


def acknowledged_writes(history: History) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each write acknowledged to a client."""
    for operation in history.operations:
        if is_write(operation) and operation.succeeded and operation.ended is not None:
            yield operation.began, operation.ended


def is_write(operation: Operation) -> bool:
    """Whether the operation is a write of a client during the run."""
    return operation.process != RUNNER and operation.method != "GET"


def _recovery(event: Event, end: int, writes: list[tuple[int, int]]) -> Recovery:
    pauses = catalogue.nemesis(event.nemesis).pauses
    start = event.healed if pauses and event.healed is not None else event.began
    first = min((ended for began, ended in writes if began > start), default=None)
    within = [event.began, *(ended for _, ended in writes if event.began < ended < end), end]
    longest = max(later - earlier for earlier, later in itertools.pairwise(within))
    return Recovery(event, None if first is None else (first - start) / _SECOND, longest / _SECOND)
