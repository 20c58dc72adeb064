"""The parts of an operation that has no I/O of its own: it yields what is to be done, and is sent what came of it.

An operation is a generator of ``Call`` and ``Pause``.  A client performs each of them, with or without asyncio, and
sends the ``Reply`` of a call into the generator, or throws ``NoReply`` into it.  What the generator returns is the
result of the operation.  So each operation is written once for both clients.
"""

from __future__ import annotations

import itertools
import json
import random
import uuid
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

#: The longest pause between two attempts, in seconds, unless the service asks for more.
_LONGEST = 5.0


def _new_request_id() -> str:
    return f"req-{uuid.uuid4()}"


@dataclass(frozen=True)
class Call:
    """A request of HTTP.

    Attributes:
        path: The path below the URL of the service, with the query.
        body: The JSON value to send; None for none.
        version: The microversion of Placement's own API.
        timeout: Seconds to wait for the reply; None for as long as the client waits for any.
        request_id: The id that the service logs and records for the request.  It is the same for each attempt.
    """

    method: str
    path: str
    body: Any = None
    version: str | None = None
    timeout: float | None = None
    request_id: str = field(default_factory=_new_request_id)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that say what is sent and asked for."""
        headers = {"Accept": "application/json", "X-Openstack-Request-Id": self.request_id}
        if self.version is not None:
            headers["OpenStack-API-Version"] = f"placement {self.version}"
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        return headers

    @property
    def content(self) -> bytes | None:
        """The bytes of the body."""
        return None if self.body is None else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Pause:
    """Seconds to wait before the next step."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """A reply with any HTTP status.

    Attributes:
        headers: By their names in lower case.
        sent: The moment before the request was sent, by the monotonic clock.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    sent: float

    @property
    def document(self) -> Any:
        """The JSON value of the reply; None if it has none."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None

    @property
    def retry_after(self) -> float:
        """The seconds that the service asks to wait before the next attempt; 0 if it does not."""
        given = self.headers.get("retry-after", "")
        return float(given) if given.isdecimal() else 0.0


#: An operation whose result is a ``T``.
Steps = Generator["Call | Pause", Reply, T]


def pauses() -> Iterator[float]:
    """Yield the seconds before each further attempt: longer each time, and random so that clients do not collide."""
    for attempt in itertools.count():
        yield min(0.1 * 2 ** min(attempt, 10), _LONGEST) * random.uniform(0.5, 1.0)
