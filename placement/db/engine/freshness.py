"""Connections that still work but must not be used again: those of another process, or to a former primary.

Servers written in C (uWSGI) fork without Python's hooks; a child has the connections of its parent.
After a switchover the old primary goes on answering reads from its outdated state.  The first write that it refuses
discards all connections made before.  A process that only reads asks its server at intervals whether it takes writes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Engine

#: Seconds after which a connection for reads is asked again, before its next use, whether its server takes writes.
CHECK_INTERVAL = 5.0

_IS_READ_ONLY = {
    "postgresql": "SHOW transaction_read_only",
    "mysql": "SELECT @@global.read_only",
    "mariadb": "SELECT @@global.read_only",
}


class Freshness:
    """Shared by the pools of one database: the time before which their connections are stale."""

    def __init__(self) -> None:
        self._since = 0.0

    def discard_connections(self, began: float) -> None:
        """Have every connection that exists now replaced before its next use.

        Args:
            began: When the attempt that lost its server began (monotonic clock).  If connections were discarded after
                that, by another attempt that lost the same server, nothing is done.
        """
        if began > self._since:
            self._since = time.monotonic()

    def watch(self, engine: Engine, *, reads: bool) -> None:
        """Replace connections of the engine's pool that are stale or of another process.

        Args:
            reads: Whether those to a server that takes no writes are replaced, too.
        """
        question = _IS_READ_ONLY.get(engine.url.get_backend_name()) if reads else None
        driver_error = engine.dialect.loaded_dbapi.Error

        def note_origin(_connection: Any, record: Any) -> None:
            record.info["process"] = os.getpid()
            record.info["made"] = record.info["asked"] = time.monotonic()

        def check(connection: Any, record: Any, fairy: Any) -> None:
            if record.info["process"] != os.getpid():
                _abandon(record, fairy)
                raise exc.DisconnectionError("made in another process")
            if record.info["made"] <= self._since:
                raise exc.DisconnectionError("made before the server was lost")
            now = time.monotonic()
            if question is None or now - record.info["asked"] < CHECK_INTERVAL:
                return
            record.info["asked"] = now
            try:
                read_only = str(_answer(connection, question)).lower() not in ("0", "off")
            except driver_error as error:
                raise exc.DisconnectionError("the connection is broken") from error
            if read_only:
                raise exc.DisconnectionError("the server takes no writes")

        sa.event.listen(engine, "connect", note_origin)
        sa.event.listen(engine, "checkout", check)


def _abandon(record: Any, fairy: Any) -> None:
    """Leave the connection open, which is the parent's."""
    # One more reference, so that it is never collected: mysqlclient would tell the server that the session is over.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(fairy.dbapi_connection))
    record.dbapi_connection = fairy.dbapi_connection = None


def _answer(connection: Any, question: str) -> Any:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]
