"""Who asked for a change: the request or command in whose name a transaction writes.

The author belongs to the thread, so that no object between a request and its events has to pass it on.  A claim
remembers its own, because one transaction can place the claims of several requests.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A request or a command; None stands for what is unknown."""

    request_id: str | None = None
    global_request_id: str | None = None
    #: The caller's ids, not those of the owner of what is changed.
    user: str | None = None
    project: str | None = None
    #: The address, which may be a chain of proxies.
    client: str | None = None
    #: The name of the API or of the program.
    api: str | None = None
    #: The method and path of the route, with its variables unfilled; or the command.
    route: str | None = None


_CURRENT: contextvars.ContextVar[Author | None] = contextvars.ContextVar("author", default=None)


def current() -> Author | None:
    """Return in whose name this thread writes; None if that was not set."""
    return _CURRENT.get()


@contextlib.contextmanager
def acting_as(author: Author) -> Iterator[None]:
    """Write in the name of this author for the length of a block."""
    token = _CURRENT.set(author)
    try:
        yield
    finally:
        _CURRENT.reset(token)
