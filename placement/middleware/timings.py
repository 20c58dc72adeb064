"""The time that each part of the current request of a thread has taken so far."""

from __future__ import annotations

import threading

from placement import signals


class Timings(threading.local):
    """Seconds and number of runs by the name of the part; a thread serves one request at a time."""

    def __init__(self) -> None:
        self._timings: dict[str, tuple[float, int]] = {}

    def connect(self) -> None:
        """Start to collect timings."""
        signals.timing.connect(self._add)
        signals.retried.connect(self._add_retry)

    def disconnect(self) -> None:
        """Stop collecting timings."""
        signals.timing.disconnect(self._add)
        signals.retried.disconnect(self._add_retry)

    def begin(self) -> None:
        """Forget the timings of the request before."""
        self._timings = {}

    def seconds(self, name: str) -> float:
        """Return the seconds of a part; 0 if it did not run."""
        return self._timings.get(name, (0.0, 0))[0]

    def totals(self) -> dict[str, dict[str, float | int]]:
        """Return ``{"sql": {"seconds": 0.7, "times": 9}, ...}``, in the order in which the parts first ended."""
        return {
            name: {"seconds": round(seconds, 6), "times": times} for name, (seconds, times) in self._timings.items()
        }

    def _add(self, name: str, seconds: float) -> None:
        before, times = self._timings.get(name, (0.0, 0))
        self._timings[name] = (before + seconds, times + 1)

    def _add_retry(self, cause: signals.RetryCause) -> None:
        self._add(f"retry after {cause}", 0.0)


TIMINGS = Timings()
