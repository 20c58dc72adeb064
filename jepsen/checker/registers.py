"""Possible values of a register, by the writes of a history alone: bounds that are never too narrow.

A read returns the value of a write that began before the read ended, and that has not certainly been replaced: no write
began after it ended, and ended before the read began.  These are the values of a *regular*
register (Lamport, "On interprocess communication", 1986); a linearizable register returns one of them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

from jepsen.history import Event

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Write(Generic[Value]):
    """A write that took effect, or may have.

    Attributes:
        ended: None: the write may take effect at any time after it began, or never.
        operation: Number of its operation.
    """

    began: float
    ended: float | None
    value: Value
    operation: int = -1


class Register(Generic[Value]):
    """A register with all writes that were not refused."""

    def __init__(self, initial: Value, writes: Iterable[Write[Value]], events: Iterable[Event] = ()) -> None:
        """Initialize the register.

        Args:
            writes: In any order.
            events: Events of the history; writes before an event that loses the last commits are no longer certain.
        """
        all_writes = [Write(-math.inf, -math.inf, initial), *writes]
        self._open = [write for write in all_writes if write.ended is None]
        self._ended: Sequence[Write[Value]] = sorted(
            (write for write in all_writes if write.ended is not None), key=lambda write: write.ended
        )
        self._ends = [write.ended for write in self._ended]
        #: Latest beginning among the writes up to each one.
        self._latest = list(accumulate((write.began for write in self._ended), max))
        self._losses = [event for event in events if event.loses_tail]
        #: The same, for only the writes that no loss may undo.
        surviving = (write.began if _is_kept(write, self._losses) else -math.inf for write in self._ended)
        self._latest_kept = list(accumulate(surviving, max))
        self.writes: Sequence[Write[Value]] = all_writes[1:]

    def possible(self, began: float, ended: float) -> list[Write[Value]]:
        """Return the writes whose values a read in this period may return; the initial value is the first write."""
        replaced_before = self._replaced_before(began, ended)
        start = bisect.bisect_left(self._ends, replaced_before)
        candidates = [*self._ended[start:], *self._open]
        return [write for write in candidates if write.began <= ended]

    def changes(self) -> Sequence[float]:
        """Return the integer times from which on the possible values differ."""
        times: set[float] = {-math.inf}
        for write in self.writes:
            times.add(write.began)
            if write.ended is not None:
                times.add(write.ended + 1)
        for event in self._losses:
            times.add(event.began)
        return sorted(times)

    def _replaced_before(self, began: float, ended: float) -> float:
        """Return the time before which a write must have ended to be certainly replaced."""
        place = bisect.bisect_left(self._ends, began) - 1
        if place < 0:
            return -math.inf
        latest = self._latest[place]
        return latest if latest >= kept_since(self._losses, ended) else self._latest_kept[place]


def _is_kept(write: Write[Any], losses: Iterable[Event]) -> bool:
    ended = math.inf if write.ended is None else write.ended
    return all(
        (event.keeps_earlier and ended < event.began) or (event.healed is not None and write.began >= event.healed)
        for event in losses
    )


def kept_since(events: Iterable[Event], time: float) -> float:
    """Return the end of the last loss that began by ``time``; later writes are kept at least until ``time``."""
    healed = (
        math.inf if event.healed is None else event.healed
        for event in events
        if event.loses_tail and event.began <= time
    )
    return max(healed, default=-math.inf)
