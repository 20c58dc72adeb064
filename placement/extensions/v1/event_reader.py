"""Reading of events for requests: at once, after a wait, or as a stream of server-sent events (docs: v1-events)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from placement import errors
from placement.db.database import Database
from placement.extensions.v1 import signals
from placement.extensions.v1.failures import PositionLost
from placement.extensions.v1.history import event, names, recorder
from placement.extensions.v1.history.event import Event, EventFilter, EventPage
from placement.extensions.v1.history.watch import INTERVAL, EventWatch
from placement.extensions.v1.schemas import event as schema
from placement.http.response import encode
from placement.index.live import LiveIndex

#: The media type of a stream.
EVENT_STREAM = "text/event-stream"
#: Seconds after which a stream ends, so that its thread serves others; clients come again by themselves.  It is less
#: than worker-reload-mercy and harakiri of etc/uwsgi/placement.ini, after which uWSGI kills the worker.
LONGEST_STREAM = 75.0
#: Seconds without an event after which a stream says that it is alive.
_HEARTBEAT = 15.0
#: Milliseconds after which a client comes again.
_RETRY = 5000


@dataclass(frozen=True, slots=True)
class EventReader:
    """A reader of events: which of them, and how many at once."""

    database: Database
    #: Has the names of the providers that are there.
    index: LiveIndex
    wanted: EventFilter
    limit: int

    def start(self, after: str | None) -> str | None:
        """Return the mark to begin after, of a parameter that may ask for the newest."""
        return recorder.of(self.database).read(event.newest)[1] if after == schema.NOW else after

    def page(self, after: str | None, *, newest_first: bool = False) -> EventPage:
        """Return the next committed events, with the names of the objects they mention; raises PositionLost."""
        work = partial(event.page, wanted=self.wanted, limit=self.limit, after=after, newest_first=newest_first)
        try:
            page = recorder.of(self.database).read(work)
        except PositionLost:
            signals.position_lost()
            raise
        known = names.known(self.database, self.index.current(), page.events) if page.events else {}
        return page._replace(names=known)

    def wait(self, after: str | None, seconds: float) -> EventPage:
        """Return the next events; if there are none, wait for one, if there is a place among those that wait."""
        until = time.monotonic() + seconds
        page = self.first(after)
        if page.events or not self.watch.enter():
            return page
        try:
            while not page.events and time.monotonic() < until:
                if page.more or self.watch.wait(page.number, until):
                    page = self.next(page, until)
        finally:
            self.watch.leave()
        return page

    def first(self, after: str | None) -> EventPage:
        """Return the page with which a request begins to wait; raises PositionLost.

        For one that may not wait it may be as old as what those that wait know.
        """
        page = self._shared(after, time.monotonic() + INTERVAL) if self.watch.is_full else None
        return page or self.page(after)

    def next(self, page: EventPage, until: float) -> EventPage:
        """Return the page after one, for a request that was woken; one without events if its turn does not come.

        Args:
            until: How long to wait for the turn, by the monotonic clock.

        Raises:
            PositionLost: As of ``page``.
        """
        return self._shared(page.mark, until) or page._replace(events=[])

    def _shared(self, after: str | None, until: float) -> EventPage | None:
        return self.watch.page((self.wanted, self.limit, after), lambda: self.page(after), until)

    @property
    def watch(self) -> EventWatch:
        """What requests of this process wait with."""
        return recorder.of(self.database).watch


class EventStream:
    """Server-sent events, in pieces.

    It holds a place among those that wait until it is closed.  Without one it has a page of the events that are there,
    and ends: so a client that comes again by itself gets all events, only later.
    """

    def __init__(self, event_reader: EventReader, after: str | None) -> None:
        """Raises PositionLost."""
        self._following = event_reader
        self._watch = event_reader.watch
        self._page = event_reader.first(after)
        self._waits = self._watch.enter()
        self._pieces = self._made()

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        """Give the place back; the server calls it at the end, however the stream has ended."""
        self._pieces = iter(())
        if self._waits:
            self._waits = False
            self._watch.leave()

    def _made(self) -> Iterator[bytes]:
        until = time.monotonic() + LONGEST_STREAM
        yield b"retry: %d\n\n" % _RETRY
        said = time.monotonic()
        try:
            while True:
                if self._page.events:
                    yield b"".join(_message(one, self._page.names) for one in self._page.events)
                    said = time.monotonic()
                now = time.monotonic()
                if now - said >= _HEARTBEAT:
                    yield _alive(self._page)
                    said = now
                if now > until or not self._waits:
                    break
                soon = min(until, said + _HEARTBEAT)
                if self._page.more or self._watch.wait(self._page.number, soon):
                    self._page = self._following.next(self._page, soon)
                else:
                    self._page = self._page._replace(events=[])
        except errors.Failure:
            pass  # the status is sent; the client comes again with the position, and is told then
        yield _alive(self._page)


def _message(one: Event, known: Mapping[str, str]) -> bytes:
    """Return an event as a message; its JSON has no line breaks."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        one.mark.encode(),
        one.kind.encode(),
        encode(schema.document(one, known)),
    )


def _alive(page: EventPage) -> bytes:
    """Return a comment, and the position that was reached without an event; a client keeps it, and shows nothing."""
    return b": \nid: %s\n\n" % page.mark.encode()
