"""Waiting for events: any number of requests wait, and one of them looks, for all in the process (docs/adr/0042).

Hundreds of clients that follow the events have reached the same position.  When an event comes, or when they come at
once and may not wait, they would all read the same page, and all other requests would have to wait for them.  So one
reads it, and the others are given that.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator

from placement import errors
from placement.extensions.v1 import signals
from placement.extensions.v1.history.event import EventPage
from placement.signals import timed

LOG = logging.getLogger(__name__)

#: Seconds between two looks.
INTERVAL = 0.2
#: Seconds until the next look if the database does not answer.
PAUSE = 2.0


#: Seconds for which a page is reused: requests that wait learn of an event no sooner.
AGE = INTERVAL
#: How many pages are kept.
_MOST = 8


class EventWatch:
    """The places of requests that wait, and the newest position that was seen.

    One of the waiting threads looks, and hands over when its own wait is over.  So nobody looks if nobody waits, and no
    thread is needed that a web server did not start.
    """

    def __init__(self, look: Callable[[], int]) -> None:
        """Take what returns the newest position; it may write, and raises a Failure if the database is away."""
        self._look = look
        #: How many may wait.
        self.most = 1
        self._waiting = 0
        self._changed = threading.Condition()
        self._newest = 0
        self._has_looker = False
        #: For those that may not wait, and those that are woken together.
        self.recent = RecentPages()

    @property
    def is_full(self) -> bool:
        """Whether as many wait as may."""
        return self._waiting >= self.most

    @property
    def newest(self) -> int:
        """The newest position that was seen; 0 before the first look."""
        return self._newest

    def enter(self) -> bool:
        """Take a place among those that wait, until ``leave``; return False if there is none."""
        with self._changed:
            if self._waiting >= self.most:
                signals.wait_refused()
                return False
            self._waiting += 1
            signals.waiting_changed(self._waiting)
            return True

    def leave(self) -> None:
        """Give the place back."""
        with self._changed:
            self._waiting -= 1
            signals.waiting_changed(self._waiting)

    @timed("wait")
    def wait(self, number: int, until: float) -> bool:
        """Wait for a position beyond a number; the caller has a place, and holds nothing of the database.

        Args:
            number: The position that the caller has read.
            until: When to give up, by the monotonic clock.

        Returns:
            Whether there is one.
        """
        with self._changed:
            while self._has_looker:
                if self._newest > number:
                    return True
                remaining = until - time.monotonic()
                if remaining <= 0:
                    return False
                self._changed.wait(remaining)
            self._has_looker = True
        try:
            return self._look_until(number, until)
        finally:
            with self._changed:
                self._has_looker = False
                self._changed.notify_all()

    def _look_until(self, number: int, until: float) -> bool:
        while True:
            pause = INTERVAL
            try:
                newest = self._look()
            except errors.Failure as failure:
                LOG.debug("Events cannot be looked for: %s", failure)
                pause = PAUSE
            else:
                with self._changed:
                    if newest != self._newest:
                        self._newest = newest
                        self._changed.notify_all()
                if newest > number:
                    return True
            remaining = until - time.monotonic()
            if remaining <= 0:
                return False
            time.sleep(min(pause, remaining))


class RecentPages:
    """Pages of events that were read a moment ago, by what was asked for."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, EventPage]] = {}
        self._reading = threading.Lock()

    def find(self, asked: Hashable) -> EventPage | None:
        """Return a page that was read a moment ago, if there is one."""
        began, page = self._known.get(asked, (-math.inf, None))
        return page if time.monotonic() - began <= AGE else None

    def note(self, asked: Hashable, began: float, page: EventPage) -> None:
        """Remember a page whose read began at a time of the monotonic clock."""
        # Threads may overwrite each other's page: then it is read again.
        self._known = {**dict([*self._known.items()][1 - _MOST :]), asked: (began, page)}

    @contextlib.contextmanager
    def turn(self, until: float) -> Iterator[bool]:
        """Wait until no other request that waits, or may not wait, reads: so few are in the way of other requests.

        Args:
            until: When to give up, by the monotonic clock.

        Yields:
            Whether this request has its turn; False if the time was over first.
        """
        mine = self._reading.acquire(timeout=max(until - time.monotonic(), 0))
        try:
            yield mine
        finally:
            if mine:
                self._reading.release()
