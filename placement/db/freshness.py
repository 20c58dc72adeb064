"""Connections that must not be used again although they still work: those to a server that is no primary any more.

After a switchover the old primary goes on answering reads, from its past.  The first write that it refuses ends the use
of all connections that were made before; and a process that only reads asks now and then.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Engine

#: Seconds after which a connection for reads is asked again, before its next use, whether its server takes writes.
ASKED_EVERY = 5.0

_IS_READ_ONLY = {
    "postgresql": "SHOW transaction_read_only",
    "mysql": "SELECT @@global.read_only",
    "mariadb": "SELECT @@global.read_only",
}


class Freshness:
    """What the pools of one database share: the moment before which their connections count as stale."""

    def __init__(self) -> None:
        self._since = 0.0

    def renew(self, learned: float) -> None:
        """Have every connection that was made until now replaced before its next use.

        :param learned: when the work began that met the lost server; if others have met it since, they did this.
        """
        if learned > self._since:
            self._since = time.monotonic()

    def watch(self, engine: Engine, *, reads: bool) -> None:
        """Replace stale connections of the engine's pool; and, of one for reads, those to a server without writes."""
        question = _IS_READ_ONLY.get(engine.url.get_backend_name()) if reads else None
        driver_error = engine.dialect.loaded_dbapi.Error

        def made(_connection: Any, record: Any) -> None:
            record.info["made"] = record.info["asked"] = time.monotonic()

        def check(connection: Any, record: Any, _fairy: Any) -> None:
            if record.info["made"] <= self._since:
                raise exc.DisconnectionError("made before the server was lost")
            now = time.monotonic()
            if question is None or now - record.info["asked"] < ASKED_EVERY:
                return
            record.info["asked"] = now
            try:
                read_only = str(_answer(connection, question)).lower() not in ("0", "off")
            except driver_error as error:
                raise exc.DisconnectionError("the connection is broken") from error
            if read_only:
                raise exc.DisconnectionError("the server takes no writes")

        sa.event.listen(engine, "connect", made)
        sa.event.listen(engine, "checkout", check)


def _answer(connection: Any, question: str) -> Any:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]
