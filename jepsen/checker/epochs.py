"""Losses: events after which the last commits may be missing, all from some commit on.

A loss is a call of the search like any other, which took effect at one moment of the event or never, and puts an object
back into a state that it had before, or that a call which had begun by then made.  What is read afterwards narrows that
down to one state, and everything later must agree with it.  That all objects go back to one and the same commit is for
the bank to check, whose reads show many of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jepsen.checker.linearizable import Timed
from jepsen.history import Event


@dataclass(frozen=True, slots=True)
class Loss:
    """The last commits are gone, in the event with this number."""

    event: int


def losses(events: Sequence[Event], operations: Sequence[Timed]) -> Iterator[Timed]:
    """Yield the losses that matter to an object with these calls: there were some before, and some end later."""
    first = min(each.began for each in operations)
    last = max(each.began if each.ended is None else each.ended for each in operations)
    for number, event in enumerate(events):
        if event.loses_tail and event.began <= last and (event.healed is None or first < event.healed):
            yield Timed(-1, event.began, event.healed, Loss(number), optional=True)
