"""Steps of operations without I/O (sans-I/O), so that each operation is written once for both clients.

An operation is a generator of ``Call`` and ``Pause``.  A client performs each step, with or without asyncio, and sends
the ``Reply`` for a call into the generator, or throws ``NoReply`` into it.  The return value of the generator is the
result of the operation.
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

#: Maximum pause between two attempts, in seconds, unless the service requests a longer one.
_MAX_PAUSE = 5.0


def _new_request_id() -> str:
    return f"req-{uuid.uuid4()}"


@dataclass(frozen=True)
class Call:
    """An HTTP request.

    Attributes:
        path: The path below the URL of the service, with the query.
        body: The JSON value to send; None for no body.
        version: The microversion of the Placement API.
        timeout: Seconds to wait for the response; None for the timeout of the client.
        request_id: The id that the service logs and records, the same for each attempt.
    """

    method: str
    path: str
    body: Any = None
    version: str | None = None
    timeout: float | None = None
    request_id: str = field(default_factory=_new_request_id)

    @property
    def headers(self) -> dict[str, str]:
        """The headers except credentials."""
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
    """An HTTP response with any status.

    Attributes:
        headers: Headers by lower-case name.
        sent: Monotonic time before the request was sent.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    sent: float

    @property
    def document(self) -> Any:
        """The JSON value of the response; None without one."""
        try:
            return json.loads(self.content) if self.content else None
        except ValueError:
            return None

    @property
    def retry_after(self) -> float:
        """The pause in seconds that the service requests before the next attempt; 0 if it requests none."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdecimal() else 0.0


#: An operation with a result of type ``T``.
Steps = Generator["Call | Pause", Reply, T]


def pauses() -> Iterator[float]:
    """Yield the seconds before each retry: exponential backoff with jitter."""
    for attempt in itertools.count():
        yield min(0.1 * 2 ** min(attempt, 10), _MAX_PAUSE) * random.uniform(0.5, 1.0)
