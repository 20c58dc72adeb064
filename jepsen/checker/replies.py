"""What no reply may be, and when there may be none: the service never fails, and is away only beside a reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from jepsen.history import FINAL, Event, History, Operation
from jepsen.violation import Violation

#: Text of a statement, of a driver or of Python in the body of an error.
_INTERNALS = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|Traceback|sqlalchemy|sqlite3|psycopg|pymysql|SQLSTATE"
    r"|(Operational|Integrity|Programming|Internal|Database)Error)\b"
)


def replies(history: History) -> list[Violation]:
    """Return replies that no client should have had."""
    return [*_failures(history), *_unexplained(history), *_leaks(history)]


def _failures(history: History) -> Iterator[Violation]:
    for one in history.operations:
        if one.status >= 500 and one.answered:
            yield Violation("no 5xx but 503", f"{one.method} {one.path}: {one.status} {one.detail}", (one.number,))


def _unexplained(history: History) -> Iterator[Violation]:
    given_up = given_up_at(history.operations)
    for one in history.operations:
        if not one.answered and not any(
            event.began <= given_up[one.number] and one.began <= _loses_until(event) for event in history.events
        ):
            answer = f"{one.status} {one.detail}" if one.status else "no reply"
            sentence = f"{one.method} {one.path}: {answer}, and nothing was broken shortly before"
            yield Violation("away only beside an event", sentence, (one.number,))


def _leaks(history: History) -> Iterator[Violation]:
    for one in history.operations:
        if one.status >= 400 and (found := _INTERNALS.search(json.dumps(one.reply))):
            sentence = f"{one.method} {one.path}: the body of {one.status} has {found[0]!r}"
            yield Violation("no internals in errors", sentence, (one.number,))


def _loses_until(event: Event) -> float:
    return over(event) + event.aftermath * 1e9 if event.spares is None else event.spares


def over(event: Event) -> float:
    """Return when an event was undone; infinity if never."""
    return math.inf if event.healed is None else event.healed


def given_up_at(operations: Sequence[Operation]) -> Mapping[int, float]:
    """Return, by number, the latest time at which a client still waited for the reply.

    A client has one call at a time, so an open operation was given up when the next one of its process began.
    """
    times: dict[int, float] = {}
    following: dict[int, float] = {}
    for one in sorted(operations, key=lambda one: one.began, reverse=True):
        next_began = math.inf if one.process == FINAL else following.get(one.process, math.inf)
        times[one.number] = next_began if one.ended is None else one.ended
        following[one.process] = one.began
    return times
