"""Declarations of the responses to successful requests.

The service does not validate its responses.  The OpenAPI documents contain these declarations, and tests check every
response against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from placement.schemas.declarations import SchemaType
from placement.version_history import OLDEST, Version


class Dated(Enum):
    """The cache headers of a response (docs: api-cache-headers), in versions that support them."""

    NEVER = "no cache headers"
    SOMETIMES = "Cache-Control, and Last-Modified if an object in the response has a date"
    ALWAYS = "Cache-Control and Last-Modified"


@dataclass(frozen=True)
class Success:
    """A response of an endpoint.

    Attributes:
        status: The HTTP status.
        document: The type of the JSON document; None for a response without content.
        location: Whether the response has the header Location.
        headers: Pairs of the name of an optional header and a sentence about it.
        dated: The cache headers.
        since: The first version with this response.
        until: The first version without it again; None if it still exists.
    """

    status: int = 200
    document: SchemaType | None = None
    location: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    dated: Dated = Dated.NEVER
    since: Version = OLDEST
    until: Version | None = None

    def exists_at(self, version: Version) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


#: The responses of an endpoint; in each version, at most one with a document per status.
Replies = tuple[Success, ...]

#: The response of an endpoint that returns nothing.
NO_CONTENT: Replies = (Success(204),)


def ok(document: SchemaType, dated: Dated = Dated.ALWAYS) -> Replies:
    """Return the responses of an endpoint that always returns a document."""
    return (Success(200, document, dated=dated),)
