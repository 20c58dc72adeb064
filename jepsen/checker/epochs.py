"""Losses: events after which all commits that follow some commit may be missing.

The search treats a loss like any other operation: it takes effect at some time during the event, or never, and restores
an earlier state of the object, or the result of an operation that had begun by then.  Later reads narrow the state
down, and all later responses must agree with it.  The bank, whose reads show many objects at once, checks
that all objects go back to the same commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jepsen.checker.linearizable import TimedCall
from jepsen.history import Event


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of the last commits in the event with this number."""

    event: int


def losses(events: Sequence[Event], operations: Sequence[TimedCall]) -> Iterator[TimedCall]:
    """Yield the losses that overlap the operations on an object, as optional operations."""
    first = min(operation.began for operation in operations)
    last = max(operation.began if operation.ended is None else operation.ended for operation in operations)
    for number, event in enumerate(events):
        if event.loses_tail and event.began <= last and (event.healed is None or first < event.healed):
            yield TimedCall(-1, event.began, event.healed, Loss(number), optional=True)
