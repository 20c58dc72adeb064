"""Replacement of connections that work but must not be used: to a former primary, or made by another process.

Servers written in C (uWSGI) fork without Python's hooks, so a child inherits the connections of its parent.
After a switchover the old primary keeps answering reads from its outdated state.  The first write that it refuses
discards all connections made before.  A process that only reads asks its server at intervals whether it is read-only.
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

#: Seconds for which a connection for reads is used without another check whether its server is read-only.
CHECK_INTERVAL = 5.0

_READ_ONLY_QUERIES = {
    "postgresql": "SHOW transaction_read_only",
    "mysql": "SELECT @@global.read_only",
    "mariadb": "SELECT @@global.read_only",
}


class Freshness:
    """The time before which the connections of one database are stale; shared by its pools."""

    def __init__(self) -> None:
        self._stale_before = 0.0

    def discard_connections(self, began: float) -> None:
        """Have every existing connection replaced before its next use.

        Args:
            began: The time, by the monotonic clock, at which the attempt that lost its server began.  If another
                attempt that lost the same server has discarded the connections since, nothing happens.
        """
        if began > self._stale_before:
            self._stale_before = time.monotonic()

    def watch(self, engine: Engine, *, reads: bool) -> None:
        """Replace the connections of the engine's pool that are stale or were made by another process.

        Args:
            reads: Whether connections to a read-only server are replaced as well.
        """
        query = _READ_ONLY_QUERIES.get(engine.url.get_backend_name()) if reads else None
        driver_error = engine.dialect.loaded_dbapi.Error

        def note_creation(_connection: Any, record: Any) -> None:
            record.info["process"] = os.getpid()
            record.info["made"] = record.info["checked"] = time.monotonic()

        def check(connection: Any, record: Any, fairy: Any) -> None:
            if record.info["process"] != os.getpid():
                _abandon(record, fairy)
                raise exc.DisconnectionError("made in another process")
            if record.info["made"] <= self._stale_before:
                raise exc.DisconnectionError("made before the server was lost")
            now = time.monotonic()
            if query is None or now - record.info["checked"] < CHECK_INTERVAL:
                return
            record.info["checked"] = now
            try:
                read_only = str(_scalar(connection, query)).lower() not in ("0", "off")
            except driver_error as error:
                raise exc.DisconnectionError("the connection is broken") from error
            if read_only:
                raise exc.DisconnectionError("the server is read-only")

        sa.event.listen(engine, "connect", note_creation)
        sa.event.listen(engine, "checkout", check)


def _abandon(record: Any, fairy: Any) -> None:
    """Detach the connection without closing it, since the parent uses it."""
    # One more reference keeps it from being collected, because mysqlclient would then end the session at the server.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(fairy.dbapi_connection))
    record.dbapi_connection = fairy.dbapi_connection = None


def _scalar(connection: Any, query: str) -> Any:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]
