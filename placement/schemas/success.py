"""The replies of an endpoint that succeeds: what it declares beside its query and its body.

Nothing is validated by these declarations when the service runs.  The OpenAPI documents show them, and tests hold every
reply to them.
"""

from __future__ import annotations

from dataclasses import dataclass

from placement.schemas.declarations import SchemaType
from placement.version_history import OLDEST, Version


@dataclass(frozen=True)
class Success:
    """One reply that an endpoint has, from version ``since`` on and before version ``until``.

    Args:
        status: The HTTP status.
        document: The type of the JSON document; None for a reply without content.
        location: Whether the reply has the header Location.
        headers: Headers that it may have, with a sentence for each.
    """

    status: int = 200
    document: SchemaType | None = None
    location: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    since: Version = OLDEST
    until: Version | None = None

    def exists_at(self, version: Version) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


#: The replies of an endpoint; a version has at most one with a document for each status.
Replies = tuple[Success, ...]

#: The replies of an endpoint that returns nothing.
NO_CONTENT: Replies = (Success(204),)


def ok(document: SchemaType) -> Replies:
    """Return the replies of an endpoint that always returns a document."""
    return (Success(200, document),)
