"""The author of a change: the request or command on behalf of which a transaction writes.

The author belongs to the thread, so that no object between a request and its events has to pass it on.  A claim
records its author, because one transaction can place the claims of several requests.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A request or a command.  Unknown fields are None."""

    request_id: str | None = None
    global_request_id: str | None = None
    #: The ids of the caller, not of the owner of the changed object.
    user: str | None = None
    project: str | None = None
    #: The caller's address, which may be a chain of proxies.
    client: str | None = None
    #: The name of the API, or of the command-line tool.
    api: str | None = None
    #: The method and the path template of the route; or the command.
    route: str | None = None


_CURRENT: contextvars.ContextVar[Author | None] = contextvars.ContextVar("author", default=None)


def current() -> Author | None:
    """Return the author of this thread's writes, or None."""
    return _CURRENT.get()


@contextlib.contextmanager
def acting_as(author: Author) -> Iterator[None]:
    """Write on behalf of this author while the block runs."""
    token = _CURRENT.set(author)
    try:
        yield
    finally:
        _CURRENT.reset(token)
