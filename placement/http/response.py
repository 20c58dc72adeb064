"""Replies: WebOb's responses, made from a JSON document, a page or a stream."""

from __future__ import annotations

import codecs
import itertools
import json
import logging
import math
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any

import orjson
import webob

from placement import signals

LOG = logging.getLogger(__name__)

JSON = "application/json"


class Age(Enum):
    """What a document without a date of its own states about its age."""

    NOW = "as old as the reply itself"
    UNDATED = "not to be cached, and of no known age"


NOW = Age.NOW
UNDATED = Age.UNDATED

#: Items of a long list that are encoded at once.
_PIECE = 1000

_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Reply(webob.Response):
    """A response that knows when what it shows last changed.

    ``modified`` is the date of the newest of the entities shown (naive, UTC), ``NOW``, ``UNDATED`` (no Last-Modified),
    or None for a reply without cache headers (docs: api-cache-headers).  The application makes headers of it in the
    versions that have them.
    """

    modified: datetime | Age | None = None

    def add_cache_headers(self) -> None:
        """Add the headers that state the age of the reply, if it has one."""
        if self.modified is None:
            return
        if isinstance(self.modified, datetime):
            self.headerlist.append(("last-modified", format_datetime(self.modified.replace(tzinfo=UTC), usegmt=True)))
        elif self.modified is NOW:
            self.headerlist.append(("last-modified", formatdate(usegmt=True)))
        self.headerlist.append(("cache-control", "no-cache"))


def ok(document: Any, modified: datetime | Age | None = None, location: str | None = None) -> Reply:
    """Return 200 with a JSON document."""
    return _reply(200, [_json(document)], JSON, modified, location)


def created(location: str, document: Any = None, modified: datetime | Age | None = None) -> Reply:
    """Return 201 with the absolute URL of what was created."""
    if document is None:
        return _reply(201, [b""], None, modified, location)
    return _reply(201, [_json(document)], JSON, modified, location)


def accepted(location: str | None = None) -> Reply:
    """Return 202 without a body."""
    return _reply(202, [b""], None, None, location)


def found(location: str) -> Reply:
    """Return 302 to the absolute URL of a page, for clients that prefer pages."""
    reply = _reply(302, [b""], None, location=location)
    reply.headers["vary"] = "accept"
    return reply


def no_content(location: str | None = None, modified: datetime | Age | None = None) -> Reply:
    """Return 204."""
    return _reply(204, [b""], None, modified, location)


def listed(name: str, items: Iterable[Any], modified: datetime | Age | None = None) -> Reply:
    """Return 200 with a JSON document of one list under ``name``.

    The list may be long: it is encoded in pieces, so that only the encoded text is held in memory, not all items.
    """
    return _reply(200, _pieces(name, items), JSON, modified)


def page(content: bytes, content_type: str = "text/html; charset=UTF-8", status: int = 200) -> Reply:
    """Return a page or another file."""
    return _reply(status, [content], content_type)


def stream(pieces: Iterable[bytes], content_type: str) -> Reply:
    """Return 200 with pieces that are sent as they are made, and a length that is not known.

    A handler that returns a stream has ended when the pieces are made.  The status is on its way by then: an error in
    ``pieces`` goes to the log, and ends the connection before the end of the body.
    """
    return Reply(status=_STATUS[200], headerlist=[("content-type", content_type)], app_iter=_Guarded(pieces))


def newest(dates: Iterable[datetime | None]) -> datetime | Age:
    """Return the latest of the dates, or ``NOW`` if there is none (docs: api-cache-headers)."""
    return max((date for date in dates if date is not None), default=NOW)


def encode(document: Any) -> bytes:
    """Return ``document`` as JSON in ASCII; other characters are escaped (docs: api-query-strings).

    A number that JSON does not have, an infinity or NaN, is null.
    """
    try:
        content = orjson.dumps(document)
    except TypeError:  # an integer of more than 64 bits, or half of a surrogate pair
        return json.dumps(_finite(document)).encode()
    return content if content.isascii() else content.decode().encode("ascii", _ESCAPED)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Return the JSON escapes of characters that are not ASCII, all of which are in strings, and where they end."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


#: What ``encode`` does about such characters; orjson cannot escape.
_ESCAPED = "placement.http.response"
codecs.register_error(_ESCAPED, _escape)


def _finite(document: Any) -> Any:
    """Return a document without infinities and NaN, which ``json`` writes as they are."""
    match document:
        case float():
            return document if math.isfinite(document) else None
        case dict():
            return {key: _finite(value) for key, value in document.items()}
        case list() | tuple():
            return [_finite(value) for value in document]
    return document


def _reply(
    status: int,
    content: list[bytes],
    content_type: str | None,
    modified: datetime | Age | None = None,
    location: str | None = None,
) -> Reply:
    headers = [("content-length", str(sum(map(len, content))))]
    if content_type is not None:
        headers.append(("content-type", content_type))
    if location is not None:
        headers.append(("location", location))
    reply = Reply(status=_STATUS[status], headerlist=headers, app_iter=content)
    reply.modified = modified
    return reply


def _json(document: Any) -> bytes:
    """Encode a document, and publish how long that took."""
    began = time.perf_counter()
    content = encode(document)
    if signals.timing.connected:
        signals.timing("encode", time.perf_counter() - began)
    return content


@signals.timed("encode")
def _pieces(name: str, items: Iterable[Any]) -> list[bytes]:
    """Return ``{name: items}`` as JSON, in pieces of many items."""

    def pieces() -> Iterator[bytes]:
        yield b"{%s:[" % encode(name)
        remaining, separator = iter(items), b""
        while some := list(itertools.islice(remaining, _PIECE)):
            yield separator + encode(some)[1:-1]
            separator = b","
        yield b"]}"

    return [*pieces()]


class _Guarded:
    """The pieces of a stream, with an error logged before the server gets it.

    Not a generator: one that has not begun ignores ``close``, and the client may go away before the first piece.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._remaining = iter(pieces)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._remaining)
        except StopIteration:
            raise
        except Exception:
            LOG.exception("A reply was cut off by an unexpected error")
            raise

    def close(self) -> None:
        """Close the pieces, if they can be closed; the server calls it at the end of every reply (PEP 3333)."""
        if close := getattr(self._pieces, "close", None):
            close()
