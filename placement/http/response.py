"""What a handler gives back: a status, perhaps a body, a location, and when what it shows last changed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson

from placement import microversion as mv

JSON = "application/json"


class Age(Enum):
    """What a body without a date of its own says about its age."""

    NOW = "as old as the reply itself"
    UNDATED = "not to be cached, and of no known age"


NOW = Age.NOW
UNDATED = Age.UNDATED

#: Items of a long list that are encoded at once.
_PIECE = 1000

_REASONS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Listed(NamedTuple):
    """A body that is an object of one list, which may be long: it is encoded in pieces, so that only these are held."""

    name: str
    items: Iterable[Any]

    def pieces(self) -> Iterator[bytes]:
        """The body as JSON, in pieces of many items."""
        yield b"{%s:[" % encode(self.name)
        remaining, separator = iter(self.items), b""
        while some := list(itertools.islice(remaining, _PIECE)):
            yield separator + encode(some)[1:-1]
            separator = b","
        yield b"]}"


class Reply(NamedTuple):
    """The outcome of a request that succeeded.

    ``location`` is an absolute URL.  ``modified`` is when the newest of the entities shown changed (naive, UTC),
    ``NOW``, ``UNDATED`` (no ``last-modified``), or None for a reply without any cache headers (contract 1.10).
    """

    status: int
    body: Any = None
    location: str | None = None
    modified: datetime | Age | None = None
    #: More headers.
    more: tuple[tuple[str, str], ...] = ()

    @property
    def status_line(self) -> str:
        """``201 Created``."""
        return _REASONS[self.status]

    def content(self) -> list[bytes]:
        """The pieces of the body as it is sent; an empty one when there is none."""
        if isinstance(self.body, Listed):
            return [*self.body.pieces()]
        return [b"" if self.body is None else encode(self.body)]

    def headers(self, version: mv.Version, length: int) -> list[tuple[str, str]]:
        """The headers that this reply has in ``version``, with a content of ``length`` bytes."""
        headers = [("content-length", str(length))]
        if self.body is not None:
            headers.append(("content-type", JSON))
        if self.location is not None:
            headers.append(("location", self.location))
        if self.modified is not None and version >= mv.CACHE_HEADERS:
            if self.modified is not UNDATED:
                headers.append(("last-modified", _http_date(self.modified)))
            headers.append(("cache-control", "no-cache"))
        headers.extend(self.more)
        return headers


def ok(body: Any, modified: datetime | Age | None = None) -> Reply:
    """200 with a body."""
    return Reply(200, body, modified=modified)


def created(location: str, body: Any = None, modified: datetime | Age | None = None) -> Reply:
    """201 with the place of what was made."""
    return Reply(201, body, location, modified)


def no_content(location: str | None = None, modified: datetime | Age | None = None) -> Reply:
    """204."""
    return Reply(204, None, location, modified)


def newest(dates: Iterable[datetime | None]) -> datetime | Age:
    """The latest of the dates, or ``NOW`` if there is none (contract 1.10)."""
    return max((date for date in dates if date is not None), default=NOW)


def encode(body: Any) -> bytes:
    """``body`` as JSON in ASCII: everything else is escaped (contract 1.13)."""
    try:
        content = orjson.dumps(body)
    except TypeError:  # an integer of more than 64 bits, or half of a surrogate pair
        return json.dumps(body).encode()
    # orjson cannot escape; names outside ASCII are rare enough to be encoded twice
    return content if content.isascii() else json.dumps(body).encode()


def _http_date(modified: datetime | Age) -> str:
    if isinstance(modified, datetime):
        return format_datetime(modified.replace(tzinfo=UTC), usegmt=True)
    return formatdate(usegmt=True)
