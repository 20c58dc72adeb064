"""Who asked for a change: the request, or the command, in whose name a transaction writes.

It belongs to the thread, so that no object between the request and its events has to pass it on.  A claim remembers its
own, because one transaction can place the claims of several requests.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A request or a command; what is not known is None."""

    request_id: str | None = None
    global_request_id: str | None = None
    #: Ids of the caller, not of the owner of what is changed.
    user: str | None = None
    project: str | None = None
    #: The address, which may be a chain of proxies.
    client: str | None = None
    #: The name of the API, or that of the program.
    api: str | None = None
    #: Method and path of the route, without what stands in for its variables; or the command.
    route: str | None = None


_CURRENT: contextvars.ContextVar[Author | None] = contextvars.ContextVar("author", default=None)


def current() -> Author | None:
    """Return in whose name this thread writes; None if nothing has said so."""
    return _CURRENT.get()


@contextlib.contextmanager
def acting(author: Author) -> Iterator[None]:
    """Write in the name of this author for the length of a block."""
    token = _CURRENT.set(author)
    try:
        yield
    finally:
        _CURRENT.reset(token)
