"""The replies of an endpoint that succeeds: what it declares beside its query and its body.

Nothing is validated by these declarations when the service runs.  The OpenAPI documents show them, and tests hold every
reply to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from placement.schemas.declarations import SchemaType
from placement.version_history import OLDEST, Version


class Dated(Enum):
    """Whether a reply has cache headers (docs: api-cache-headers), in versions that have them."""

    NEVER = "no cache headers"
    SOMETIMES = "Cache-Control, and Last-Modified if what is shown has a date"
    ALWAYS = "Cache-Control and Last-Modified"


@dataclass(frozen=True)
class Success:
    """One reply that an endpoint has, from version ``since`` on and before version ``until``.

    Args:
        status: The HTTP status.
        document: The type of the JSON document; None for a reply without content.
        location: Whether the reply has the header Location.
        headers: Headers that it may have, with a sentence for each.
        dated: Whether it has cache headers.
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


#: The replies of an endpoint; a version has at most one with a document for each status.
Replies = tuple[Success, ...]

#: The replies of an endpoint that returns nothing.
NO_CONTENT: Replies = (Success(204),)


def ok(document: SchemaType, dated: Dated = Dated.ALWAYS) -> Replies:
    """Return the replies of an endpoint that always returns a document."""
    return (Success(200, document, dated=dated),)
