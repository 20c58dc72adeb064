"""A psycopg connection that limits how long its server may be silent."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes itself, and raises OperationalError, after ``silence`` seconds without an answer."""

    #: Maximum number of seconds without an answer; None for no limit.
    silence: float | None = None

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        return super().wait(gen if self.silence is None else self._limit_waits(gen), *arguments, **named)

    def _limit_waits(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Wrap psycopg's generator of waits, which is resumed about ten times a second with 0 while nothing arrives."""
        assert self.silence is not None
        answered = time.monotonic()
        ready = None
        while True:
            try:
                state = gen.send(ready)
            except StopIteration as stop:
                return stop.value
            ready = yield state
            now = time.monotonic()
            if ready:
                answered = now
            elif now - answered > self.silence:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server has been silent for {self.silence:g} seconds")
