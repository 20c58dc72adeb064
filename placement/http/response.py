"""Responses from a JSON document, a page or a stream."""

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
    """The age of a document that has no date."""

    NOW = "as old as the response itself"
    UNDATED = "of unknown age, and not to be cached"


NOW = Age.NOW
UNDATED = Age.UNDATED

#: Items of a long list per encoded piece.
_BATCH_SIZE = 1000

_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Reply(webob.Response):
    """A response with the date of its last modification.

    ``modified`` is the date of the newest entity shown (naive, UTC), ``NOW``, ``UNDATED`` (no Last-Modified), or None
    for a response without cache headers (docs: api-cache-headers).  The application turns it into headers in the
    versions that define them.
    """

    modified: datetime | Age | None = None

    def add_cache_headers(self) -> None:
        """Add the cache headers for ``modified``."""
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
    """Return 201 with the absolute URL of the created entity in Location."""
    if document is None:
        return _reply(201, [b""], None, modified, location)
    return _reply(201, [_json(document)], JSON, modified, location)


def accepted(location: str | None = None) -> Reply:
    """Return 202 without a body."""
    return _reply(202, [b""], None, None, location)


def found(location: str) -> Reply:
    """Return 302 to the absolute URL of a page, for clients that prefer HTML."""
    reply = _reply(302, [b""], None, location=location)
    reply.headers["vary"] = "accept"
    return reply


def no_content(location: str | None = None, modified: datetime | Age | None = None) -> Reply:
    """Return 204."""
    return _reply(204, [b""], None, modified, location)


def json_list(name: str, items: Iterable[Any], modified: datetime | Age | None = None) -> Reply:
    """Return 200 with a JSON document that contains one list, ``name``.

    The list is encoded in batches, so that memory holds the encoded text and not all items.
    """
    return _reply(200, _pieces(name, items), JSON, modified)


def page(content: bytes, content_type: str = "text/html; charset=UTF-8", status: int = 200) -> Reply:
    """Return a page or another file."""
    return _reply(status, [content], content_type)


def stream(pieces: Iterable[bytes], content_type: str) -> Reply:
    """Return 200 with a body of unknown length, sent as ``pieces`` yields it.

    The handler has returned and the status has been sent when the pieces are produced.  An exception in ``pieces`` is
    therefore logged and cuts the connection before the end of the body.
    """
    return Reply(status=_STATUS[200], headerlist=[("content-type", content_type)], app_iter=_GuardedPieces(pieces))


def newest_date(dates: Iterable[datetime | None]) -> datetime | Age:
    """Return the latest of the dates, or ``NOW`` without dates (docs: api-cache-headers)."""
    return max((date for date in dates if date is not None), default=NOW)


def encode(document: Any) -> bytes:
    """Return ``document`` as JSON in ASCII; other characters are escaped (docs: api-query-strings).

    Infinities and NaN become null.
    """
    try:
        content = orjson.dumps(document)
    except TypeError:  # an integer of more than 64 bits, or a lone surrogate
        return json.dumps(_replace_infinite(document)).encode()
    return content if content.isascii() else content.decode().encode("ascii", _ESCAPED)


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Return the JSON escapes of non-ASCII characters, which occur only in strings, and the end of their range."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


#: The codec error handler of ``encode``: orjson has no option to escape non-ASCII characters.
_ESCAPED = "placement.http.response"
codecs.register_error(_ESCAPED, _escape)


def _replace_infinite(document: Any) -> Any:
    """Return a document with infinities and NaN replaced by None; ``json`` would write them literally."""
    match document:
        case float():
            return document if math.isfinite(document) else None
        case dict():
            return {key: _replace_infinite(value) for key, value in document.items()}
        case list() | tuple():
            return [_replace_infinite(value) for value in document]
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
    """Encode a document and publish the duration."""
    began = time.perf_counter()
    content = encode(document)
    if signals.timing.connected:
        signals.timing("encode", time.perf_counter() - began)
    return content


@signals.timed("encode")
def _pieces(name: str, items: Iterable[Any]) -> list[bytes]:
    """Return ``{name: items}`` as JSON, in pieces of ``_BATCH_SIZE`` items."""

    def pieces() -> Iterator[bytes]:
        yield b"{%s:[" % encode(name)
        remaining, separator = iter(items), b""
        while batch := list(itertools.islice(remaining, _BATCH_SIZE)):
            yield separator + encode(batch)[1:-1]
            separator = b","
        yield b"]}"

    return [*pieces()]


class _GuardedPieces:
    """The pieces of a stream; logs an exception before the server sees it.

    Not a generator: ``close`` does nothing on a generator that has not started, and the client may disconnect before
    the first piece.
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
            LOG.exception("A response was cut off by an unexpected error")
            raise

    def close(self) -> None:
        """Close the pieces, if they can be closed; the server calls it at the end of every response (PEP 3333)."""
        if close := getattr(self._pieces, "close", None):
            close()
