"""Reading of events for requests: at once, by long polling, or as a stream of server-sent events (docs: v1-events)."""

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
#: Seconds after which a stream ends, so that its thread can serve other requests; clients reconnect on their own.
#: Shorter than worker-reload-mercy and harakiri in etc/uwsgi/placement.ini, after which uWSGI kills the worker.
MAX_STREAM_SECONDS = 75.0
#: Seconds without an event after which a stream sends a keep-alive comment.
_HEARTBEAT = 15.0
#: Milliseconds after which a client reconnects.
_RETRY = 5000


@dataclass(frozen=True, slots=True)
class EventReader:
    """A reader of the events that match a filter, page by page."""

    database: Database
    #: The source of the names of existing providers.
    index: LiveIndex
    event_filter: EventFilter
    limit: int

    def start(self, after: str | None) -> str | None:
        """Return the position to start after; the parameter value ``now`` stands for the newest."""
        return recorder.history_of(self.database).read(event.newest_position)[1] if after == schema.NOW else after

    def page(self, after: str | None, *, newest_first: bool = False) -> EventPage:
        """Return the next committed events, with the names of the objects they mention.

        Raises:
            PositionLost: Events after the position were removed, or it is not part of this history.
        """
        work = partial(
            event.page, event_filter=self.event_filter, limit=self.limit, after=after, newest_first=newest_first
        )
        try:
            page = recorder.history_of(self.database).read(work)
        except PositionLost:
            signals.position_lost()
            raise
        known_names = names.known_names(self.database, self.index.current(), page.events) if page.events else {}
        return page._replace(names=known_names)

    def wait(self, after: str | None, seconds: float) -> EventPage:
        """Return the next events; without any, wait for one unless too many requests are waiting."""
        deadline = time.monotonic() + seconds
        page = self.first_page(after)
        if page.events or not self.watch.enter():
            return page
        try:
            while not page.events and time.monotonic() < deadline:
                if page.more or self.watch.wait(page.number, deadline):
                    page = self.next_page(page, deadline)
        finally:
            self.watch.leave()
        return page

    def first_page(self, after: str | None) -> EventPage:
        """Return the page that a request reads before it waits.

        If too many requests are waiting, the page can be as old as their last poll.

        Raises:
            PositionLost: As for ``page``.
        """
        page = self._shared_page(after, time.monotonic() + INTERVAL) if self.watch.is_full else None
        return page or self.page(after)

    def next_page(self, page: EventPage, deadline: float) -> EventPage:
        """Return the next page for a request that was woken; without events if the deadline passes first.

        Args:
            deadline: The time at which to stop waiting, by the monotonic clock.

        Raises:
            PositionLost: As for ``page``.
        """
        return self._shared_page(page.mark, deadline) or page._replace(events=[])

    def _shared_page(self, after: str | None, deadline: float) -> EventPage | None:
        return self.watch.page((self.event_filter, self.limit, after), lambda: self.page(after), deadline)

    @property
    def watch(self) -> EventWatch:
        """The watch that wakes the waiting requests of this process."""
        return recorder.history_of(self.database).watch


class EventStream:
    """Server-sent events, as an iterable of chunks.

    A stream occupies a waiting slot until it is closed.  Without a free slot, it sends one page of existing events and
    ends; a client that reconnects still gets all events, only later.
    """

    def __init__(self, event_reader: EventReader, after: str | None) -> None:
        """Read the first page.

        Raises:
            PositionLost: As for ``EventReader.page``.
        """
        self._reader = event_reader
        self._watch = event_reader.watch
        self._page = event_reader.first_page(after)
        self._waits = self._watch.enter()
        self._chunks = self._generate()

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Release the waiting slot.  The server calls this however the stream ends."""
        self._chunks = iter(())
        if self._waits:
            self._waits = False
            self._watch.leave()

    def _generate(self) -> Iterator[bytes]:
        deadline = time.monotonic() + MAX_STREAM_SECONDS
        yield b"retry: %d\n\n" % _RETRY
        last_sent = time.monotonic()
        try:
            while True:
                if self._page.events:
                    yield b"".join(_message(event, self._page.names) for event in self._page.events)
                    last_sent = time.monotonic()
                now = time.monotonic()
                if now - last_sent >= _HEARTBEAT:
                    yield _keep_alive(self._page)
                    last_sent = now
                if now > deadline or not self._waits:
                    break
                wake_at = min(deadline, last_sent + _HEARTBEAT)
                if self._page.more or self._watch.wait(self._page.number, wake_at):
                    self._page = self._reader.next_page(self._page, wake_at)
                else:
                    self._page = self._page._replace(events=[])
        except errors.Failure:
            pass  # the status line has been sent; the client reconnects with its position and then receives the error
        yield _keep_alive(self._page)


def _message(event: Event, names: Mapping[str, str]) -> bytes:
    """Return an event as a message; its JSON contains no line breaks."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.mark.encode(),
        event.kind.encode(),
        encode(schema.document(event, names)),
    )


def _keep_alive(page: EventPage) -> bytes:
    """Return a comment and the position reached without an event; clients store the position and show nothing."""
    return b": \nid: %s\n\n" % page.mark.encode()
