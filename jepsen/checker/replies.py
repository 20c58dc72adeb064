"""Check of responses: the service never fails, and is unavailable only around an event."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from jepsen.history import RUNNER, Event, History, Operation
from jepsen.violation import Violation

#: Text of a statement, a driver or Python in the body of an error.
_INTERNALS = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|Traceback|sqlalchemy|sqlite3|psycopg|pymysql|SQLSTATE"
    r"|(Operational|Integrity|Programming|Internal|Database)Error)\b"
)


def replies(history: History) -> list[Violation]:
    """Return violations by responses that no client should get."""
    return [*_failures(history), *_unexplained_losses(history), *_leaks(history)]


def _failures(history: History) -> Iterator[Violation]:
    for operation in history.operations:
        if operation.status >= 500 and operation.answered:
            yield Violation(
                "no 5xx except 503",
                f"{operation.method} {operation.path}: {operation.status} {operation.detail}",
                (operation.number,),
            )


def _unexplained_losses(history: History) -> Iterator[Violation]:
    abandoned = abandoned_at(history.operations)
    for operation in history.operations:
        if not operation.answered and not any(
            event.began <= abandoned[operation.number] and operation.began <= _affects_until(event)
            for event in history.events
        ):
            response = f"{operation.status} {operation.detail}" if operation.status else "no response"
            sentence = f"{operation.method} {operation.path}: {response}, but no nemesis was active shortly before"
            yield Violation("unavailable only around an event", sentence, (operation.number,))


def _leaks(history: History) -> Iterator[Violation]:
    for operation in history.operations:
        if operation.status >= 400 and (match := _INTERNALS.search(json.dumps(operation.reply))):
            sentence = f"{operation.method} {operation.path}: the body of the {operation.status} contains {match[0]!r}"
            yield Violation("no internals in error bodies", sentence, (operation.number,))


def _affects_until(event: Event) -> float:
    return healed_at(event) + event.aftermath * 1e9 if event.spares is None else event.spares


def healed_at(event: Event) -> float:
    """Return the time at which an event was undone; infinity if never."""
    return math.inf if event.healed is None else event.healed


def abandoned_at(operations: Sequence[Operation]) -> Mapping[int, float]:
    """Return the latest time at which a client still waited for each response, by number.

    A client runs one operation at a time, so it abandoned an open operation when the next one of its process began.
    """
    times: dict[int, float] = {}
    following: dict[int, float] = {}
    for operation in sorted(operations, key=lambda operation: operation.began, reverse=True):
        next_began = math.inf if operation.process == RUNNER else following.get(operation.process, math.inf)
        times[operation.number] = next_began if operation.ended is None else operation.ended
        following[operation.process] = operation.began
    return times
