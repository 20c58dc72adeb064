"""Pages of events that requests which wait have read a moment ago, for the others of the process that ask for the same.

Hundreds of clients that follow the events have reached the same position.  When an event comes, or when they come at
once and may not wait, they would all read the same page, and all other requests would have to wait for them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Hashable, Iterator

from placement.extensions.v1.history.event import EventPage
from placement.extensions.v1.history.event_watch import INTERVAL

#: Seconds for which a page is reused: requests that wait learn of an event no sooner.
AGE = INTERVAL
#: How many pages are kept.
_MOST = 8


class RecentPages:
    """The pages, by what was asked for."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, EventPage]] = {}
        self._reading = threading.Lock()

    def find(self, asked: Hashable) -> EventPage | None:
        """Return a page that was read a moment ago, if there is one."""
        self._known = {key: one for key, one in [*self._known.items()] if _is_recent(one[0])}
        return self._known[asked][1] if asked in self._known else None

    def note(self, asked: Hashable, began: float, page: EventPage) -> None:
        """Remember a page.

        Args:
            began: When the read began, by the monotonic clock.
        """
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


def _is_recent(began: float) -> bool:
    return time.monotonic() - began <= AGE
