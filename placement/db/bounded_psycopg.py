"""A connection of psycopg that does not wait longer for its server than it is told."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg


class BoundedConnection(psycopg.Connection[Any]):
    """Raises OperationalError, closed, once the server has been silent for ``silence`` seconds."""

    silence: float | None = None

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        return super().wait(gen if self.silence is None else self._bounded(gen), *arguments, **named)

    def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same generator of waits: psycopg resumes it about ten times a second with 0 while nothing comes."""
        assert self.silence is not None
        heard = time.monotonic()
        ready = None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as stop:
                return stop.value
            ready = yield wanted
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > self.silence:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server has been silent for {self.silence:g} seconds")
