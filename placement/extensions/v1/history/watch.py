"""Waiting for events, with one reader for all waiting requests (docs/adr/0042).

Hundreds of clients may follow the events from the same position.  When an event arrives, or when all clients send a
request at once and none may wait, they would read the same page.  Together, they would delay every other request.
Therefore, one request reads the newest position or the next page; the other requests wait for their turn and share the
result.
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

#: Seconds between two reads of the newest position.
INTERVAL = 0.2
#: Seconds until the next read if the database does not answer.
PAUSE = 2.0
#: Cached pages.
_MAX_PAGES = 8


class EventWatch:
    """A bounded number of waiting requests, and a short-lived cache of pages.

    Attributes:
        max_waiting: The number of requests that may wait.
    """

    def __init__(self, newest: Callable[[], tuple[int, str]]) -> None:
        """Create a watch.

        Args:
            newest: A function that returns the newest position and its mark; it may write, and may raise a Failure.
        """
        self._read_newest = newest
        self.max_waiting = 1
        self._waiting = 0
        #: The lock of ``_waiting``.
        self._counter = threading.Lock()
        #: The lock of the request that reads.
        self._turn = threading.Lock()
        self._newest = (0, "")
        #: The time at which the newest position was read, by the monotonic clock.
        self._read_at = -math.inf
        #: Pages read since the newest position last changed, by key.
        self._pages: dict[Hashable, EventPage] = {}

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of requests is waiting."""
        return self._waiting >= self.max_waiting

    def enter(self) -> bool:
        """Count a waiting request, until ``leave``; return False if it may not wait."""
        with self._counter:
            if self.is_full:
                signals.wait_refused()
                return False
            self._waiting += 1
            signals.waiting_changed(self._waiting)
            return True

    def leave(self) -> None:
        """Stop counting a request as waiting."""
        with self._counter:
            self._waiting -= 1
            signals.waiting_changed(self._waiting)

    @timed("wait")
    def wait(self, number: int, until: float) -> bool:
        """Wait for a position beyond ``number``, and return whether it exists.

        The caller must have entered, and must not hold a database connection.

        Args:
            number: The last position that the caller has read.
            until: The deadline, by the monotonic clock.
        """
        while True:
            try:
                with self._reading(until):
                    if self._newest[0] > number:
                        return True
                pause = self._read_at + INTERVAL - time.monotonic()
            except errors.Failure as failure:
                LOG.debug("Cannot read the newest position of events: %s", failure)
                pause = PAUSE
            remaining = until - time.monotonic()
            if remaining <= 0:
                return False
            time.sleep(max(min(pause, remaining), 0))

    def page(self, key: Hashable, read: Callable[[], EventPage], until: float) -> EventPage | None:
        """Return a cached page, at most ``INTERVAL`` old, or read it.

        Args:
            key: The filter, the limit and the position of the page.
            read: A function that reads the page; its exceptions propagate.
            until: The deadline of the turn, by the monotonic clock.

        Returns:
            None if the deadline passed before the turn of this request.
        """
        with self._reading(until) as has_turn:
            if not has_turn:
                return None
            if key not in self._pages:
                if len(self._pages) == _MAX_PAGES:
                    self._pages.pop(next(iter(self._pages)))
                self._pages[key] = read()
            return self._pages[key]

    @contextlib.contextmanager
    def _reading(self, until: float) -> Iterator[bool]:
        """Wait until no other request reads, and read the newest position unless it is recent.

        Yields:
            Whether it is the turn of this request; False if the deadline passed first.
        """
        if not self._turn.acquire(timeout=max(until - time.monotonic(), 0)):
            yield False
            return
        try:
            now = time.monotonic()
            if now - self._read_at >= INTERVAL:
                newest = self._read_newest()
                if newest != self._newest:
                    self._pages.clear()
                self._newest, self._read_at = newest, now
            yield True
        finally:
            self._turn.release()
