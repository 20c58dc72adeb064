"""A clock for tests: it stands in for the module ``time`` of a module that is tested."""

from __future__ import annotations

import time


class Clock:
    """Advances only when a test sets it or the code sleeps, however slow the machine is."""

    perf_counter = staticmethod(time.perf_counter)

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        #: The seconds of each sleep.
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
