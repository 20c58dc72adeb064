"""What the request of each thread has spent its time on so far."""

from __future__ import annotations

import threading

from placement import signals


class Timings(threading.local):
    """Seconds and times by the name of the part; of one thread, which has one request at a time."""

    def __init__(self) -> None:
        self._spent: dict[str, tuple[float, int]] = {}

    def listen(self) -> None:
        """Be told of parts from now on."""
        signals.spent.connect(self._add)
        signals.retried.connect(self._retried)

    def ignore(self) -> None:
        """Be told of no more parts."""
        signals.spent.disconnect(self._add)
        signals.retried.disconnect(self._retried)

    def begin(self) -> None:
        """A new request, that has not spent anything."""
        self._spent = {}

    def told(self) -> dict[str, dict[str, float | int]]:
        """``{"sql": {"seconds": 0.7, "times": 9}, ...}``, in the order in which they ended."""
        return {part: {"seconds": round(seconds, 6), "times": times} for part, (seconds, times) in self._spent.items()}

    def _add(self, part: str, seconds: float) -> None:
        before, times = self._spent.get(part, (0.0, 0))
        self._spent[part] = (before + seconds, times + 1)

    def _retried(self, cause: signals.Retry) -> None:
        self._add(f"retry after {cause}", 0.0)


TIMINGS = Timings()
