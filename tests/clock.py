"""A clock for tests, which replaces the module ``time`` in a module under test."""

from __future__ import annotations

import datetime
import threading
import time
from types import SimpleNamespace

import pytest

from placement.db.schema import tables
from tests.children import PATIENCE


def set_host(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Shift the clock of the service's host by a number of days (tests/unit/test_clock_of_the_host.py)."""

    def now(zone: datetime.tzinfo) -> datetime.datetime:
        return datetime.datetime.now(zone) + datetime.timedelta(days=days)

    monkeypatch.setattr(tables, "datetime", SimpleNamespace(datetime=SimpleNamespace(now=now), UTC=datetime.UTC))


class Clock:
    """A clock that advances only when a test sets it or the code sleeps, however slow the machine is."""

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


class WatchedClock:
    """A clock whose steps another thread watches, so that its actions do not depend on the machine's speed."""

    def __init__(self) -> None:
        self.now = 0.0
        self._watcher: int | None = None
        self._seen, self._ended = 0.0, False
        self._changed = threading.Condition()

    def monotonic(self) -> float:
        with self._changed:
            if self.is_watched_here():
                self._seen = self.now
                self._changed.notify_all()
            return self.now

    def is_watched_here(self) -> bool:
        """Whether the calling thread watches the steps."""
        return threading.get_ident() == self._watcher

    def watch(self) -> None:
        """Make the calling thread watch the steps."""
        with self._changed:
            self._watcher = threading.get_ident()

    def wait_for_step(self) -> None:
        """Wait until the clock has advanced for the first time."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.now > 0, PATIENCE)

    def advance(self, seconds: float) -> None:
        """Advance, and return once the watching thread has read the new time; after ``end`` do nothing."""
        with self._changed:
            if self._ended:
                return
            self.now += seconds
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._seen == self.now or self._ended, PATIENCE)

    def end(self) -> None:
        """Stop the clock: no thread watches it any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
