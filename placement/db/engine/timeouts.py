"""Time limits on waiting for a server that is silent: frozen, cut off, or blocked by another session.

Each driver has its own options.  PyMySQL and mysqlclient limit every read of the socket.  libpq can only detect a peer
that acknowledges no packets, but the kernel of a frozen server still acknowledges them.  So the waits of psycopg are
limited in Python (bounded_psycopg.py).  psycopg2 waits inside libpq, without another limit (docs/deployment.rst).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect, Engine

#: Seconds to wait for another transaction's lock; after that, the attempt has collided.
LOCK_TIMEOUT = 10
#: Seconds after which the server ends a transaction whose client is silent, and releases its locks.
_IDLE_TRANSACTION = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds after which a server counts as lost."""

    #: Seconds while a connection is opened, the handshake included.
    connect: int = 5
    #: Seconds without an answer while a statement runs; None for no limit.
    silence: int | None = 30

    def connect_args(self, url: sa.URL) -> dict[str, Any]:
        """Return the arguments of the driver's ``connect``, except for arguments that the URL sets."""
        driver = url.get_driver_name()
        if driver == "pymysql":
            # Its connect_timeout does not cover the handshake; the other timeouts do, until ``apply`` replaces them.
            arguments = {"connect_timeout": self.connect, "read_timeout": self.connect, "write_timeout": self.connect}
        elif driver == "mysqldb":
            arguments = {"connect_timeout": self.connect}
            if self.silence is not None:
                arguments |= {"read_timeout": self.silence, "write_timeout": self.silence}
        elif driver in ("psycopg", "psycopg2"):
            arguments = self._libpq()
        else:
            arguments = {}
        return {name: value for name, value in arguments.items() if name not in url.query}

    def apply(self, engine: Engine) -> None:
        """Set the time limits of the engine's connections that ``connect_args`` cannot set."""
        driver = engine.url.get_driver_name()
        if driver == "psycopg":
            sa.event.listen(engine, "do_connect", self._connect_psycopg)
        elif driver == "pymysql":
            names = [name for name in ("read_timeout", "write_timeout") if name not in engine.url.query]

            def after_handshake(connection: Any, _record: Any) -> None:
                for name in names:
                    setattr(connection, f"_{name}", self.silence)

            sa.event.listen(engine, "connect", after_handshake)

    def session_variables(self, backend: str, *, reads: bool) -> list[str]:
        """Return assignments of the session variables that limit waiting on the server.

        Only reads limit the time of a statement on the server: if the limit ended a COMMIT, its outcome would be
        unknown.
        """
        if self.silence is None:
            return []
        if backend == "postgresql":
            idle = f"idle_in_transaction_session_timeout = '{_IDLE_TRANSACTION}s'"
            return [idle, f"statement_timeout = '{self.silence}s'"] if reads else [idle]
        # Executable comments: only MariaDB reads /*M!...*/, only MySQL /*!50708 ...*/; it lacks MariaDB's variables.
        waits = f"lock_wait_timeout = {LOCK_TIMEOUT} /*M!100300 , idle_transaction_timeout = {_IDLE_TRANSACTION} */"
        limit = (
            f" /*M!100300 , max_statement_time = {self.silence} */"
            f" /*!50708 , max_execution_time = {self.silence * 1000} */"
        )
        return [waits + limit if reads else waits]

    def _libpq(self) -> dict[str, Any]:
        arguments = {"connect_timeout": max(2, self.connect), "keepalives": 1}  # libpq rounds 1 up to 2
        if self.silence is None:
            return arguments
        return arguments | {
            "tcp_user_timeout": self.silence * 1000,
            "keepalives_idle": max(1, self.silence // 2),
            "keepalives_interval": max(1, self.silence // 10),
            "keepalives_count": 5,
        }

    def _connect_psycopg(self, _dialect: Dialect, _record: Any, arguments: Any, named: dict[str, Any]) -> Any:
        from placement.db.engine import bounded_psycopg  # the driver is an extra

        connection = bounded_psycopg.BoundedConnection.connect(*arguments, **named)
        connection.silence = self.silence
        return connection


#: No limit on statements, for commands and changes of the schema.
UNBOUNDED = Timeouts(silence=None)
