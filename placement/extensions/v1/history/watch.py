"""Waiting for events: what many requests want to know at once, one of them reads (docs/adr/0042).

Hundreds of clients that follow the events have reached the same position.  When an event arrives, or when they all ask
in the same moment and no place is free to wait, they would all read the same page, and hold up every other request.
So one of them looks for the newest position, and one reads the page that follows; the others wait for their turn, and
then get the page that was read.
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
#: The most pages that are kept.
_MOST = 8


class EventWatch:
    """The places for waiting requests, and what was read a moment ago."""

    def __init__(self, look: Callable[[], tuple[int, str]]) -> None:
        """Take a function that returns the newest position and its mark; it may write, and may raise a Failure."""
        self._look = look
        #: How many may wait.
        self.most = 1
        self._waiting = 0
        self._places = threading.Lock()
        #: Held by the request that reads.
        self._turn = threading.Lock()
        self._newest = (0, "")
        #: When the newest position was last looked for, by the monotonic clock.
        self._looked = -math.inf
        #: Pages, by what was asked for, that were read since the newest position last changed.
        self._pages: dict[Hashable, EventPage] = {}

    @property
    def is_full(self) -> bool:
        """Whether the limit of waiting requests is reached."""
        return self._waiting >= self.most

    def enter(self) -> bool:
        """Take a place among those that wait, until ``leave``; return False if there is none."""
        with self._places:
            if self.is_full:
                signals.wait_refused()
                return False
            self._waiting += 1
            signals.waiting_changed(self._waiting)
            return True

    def leave(self) -> None:
        """Give the place back."""
        with self._places:
            self._waiting -= 1
            signals.waiting_changed(self._waiting)

    @timed("wait")
    def wait(self, number: int, until: float) -> bool:
        """Wait for a position beyond a number; the caller has a place, and holds nothing of the database.

        Args:
            number: The position that the caller has read.
            until: When to give up, by the monotonic clock.

        Returns:
            Whether there is such a position.
        """
        while True:
            try:
                with self._reading(until):
                    if self._newest[0] > number:
                        return True
                pause = self._looked + INTERVAL - time.monotonic()
            except errors.Failure as failure:
                LOG.debug("Events cannot be looked for: %s", failure)
                pause = PAUSE
            remaining = until - time.monotonic()
            if remaining <= 0:
                return False
            time.sleep(max(min(pause, remaining), 0))

    def page(self, asked: Hashable, read: Callable[[], EventPage], until: float) -> EventPage | None:
        """Return a page that has all events as of a moment ago.

        Args:
            asked: What was asked for.
            read: Returns the page; what it raises is raised here.
            until: How long to wait for the turn, by the monotonic clock.

        Returns:
            None if the turn did not come.
        """
        with self._reading(until) as is_mine:
            if not is_mine:
                return None
            if asked not in self._pages:
                if len(self._pages) == _MOST:
                    self._pages.pop(next(iter(self._pages)))
                self._pages[asked] = read()
            return self._pages[asked]

    @contextlib.contextmanager
    def _reading(self, until: float) -> Iterator[bool]:
        """Wait until no other request reads, and look for the newest position unless that was done a moment ago.

        Yields:
            Whether this request has its turn; False if the time ran out first.
        """
        if not self._turn.acquire(timeout=max(until - time.monotonic(), 0)):
            yield False
            return
        try:
            began = time.monotonic()
            if began - self._looked >= INTERVAL:
                newest = self._look()
                if newest != self._newest:
                    self._pages.clear()
                self._newest, self._looked = newest, began
            yield True
        finally:
            self._turn.release()
