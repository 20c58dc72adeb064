"""Clients that record their operations."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jepsen.history import Event, Operation, is_outcome_known
from tests import caller
from tests.caller import Answer

NO_ANSWER = Answer(0, None)
#: Seconds that a client waits while the service is unavailable.
_PAUSE = 0.05


class Recorder:
    """The operations and events of a run; thread-safe."""

    def __init__(self) -> None:
        self._began = time.monotonic_ns()
        self._numbers = itertools.count()
        self.operations: list[Operation] = []
        self.events: list[Event] = []

    def now(self) -> int:
        """Return the nanoseconds since the start of the run."""
        return time.monotonic_ns() - self._began

    def next_number(self) -> int:
        return next(self._numbers)

    def record(self, entry: Operation | Event) -> None:
        (self.operations if isinstance(entry, Operation) else self.events).append(entry)


class Client:
    """A process of the history; it sends requests to the services in turn, unless ``call`` names a service."""

    def __init__(self, recorder: Recorder, process: int, urls: Sequence[str], stopped: threading.Event) -> None:
        self.process = process
        self._recorder = recorder
        self._callers: Sequence[Callable[..., Answer]] = [caller.over_http(url) for url in urls]
        self._turn = process
        #: Set at the end of the run; clients then stop soon.
        self.stopped = stopped

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        minor: int | None = None,
        service: int | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Send a request, record the operation and return it."""
        if service is None:
            self._turn += 1
            service = self._turn % len(self._callers)
        number, began = self._recorder.next_number(), self._recorder.now()
        try:
            answer = self._callers[service](method, path, minor, body)
            is_known = is_outcome_known(path, answer.status, answer.body)
        except ConnectionRefusedError:  # the request was not sent
            answer, is_known = NO_ANSWER, True
        except caller.NotJSONError as error:  # a truncated body, or a response of a proxy or the web server
            answer = Answer(error.status, error.text) if error.status >= 400 else NO_ANSWER
            is_known = is_outcome_known(path, answer.status, answer.body)
        except (OSError, http.client.HTTPException):
            answer, is_known = NO_ANSWER, False
        operation = Operation(
            *(number, self.process, began, self._recorder.now() if is_known else None, service),
            *(method, path, minor, body, answer.status, answer.body, note or {}),
        )
        self._recorder.record(operation)
        if not operation.answered:
            self.stopped.wait(_PAUSE)
        return operation

    def read(self, path: str, *, seconds: float, minor: int | None = None) -> Operation:
        """Repeat a GET until the service responds or the time has passed; return the last operation."""
        deadline = time.monotonic() + seconds
        while not (operation := self.call("GET", path, minor=minor)).answered and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return operation
