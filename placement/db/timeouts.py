"""How long a driver waits for a server that is silent: frozen, cut off, or blocked by another session.

Each driver is told in its own words.  PyMySQL and mysqlclient bound every read of the socket.  libpq bounds only what
TCP can see, a peer that acknowledges nothing, and a frozen server's kernel still acknowledges.  So psycopg's own
waiting is bounded as well; psycopg2 waits inside libpq, where nothing else bounds it (docs/deployment.rst).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect, Engine

#: Seconds to wait for another transaction's lock before the attempt counts as collided.
LOCK_TIMEOUT = 10
#: Seconds that the server keeps a transaction, with its locks, whose client is silent: its machine may be gone.
IDLE_TRANSACTION = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until a server counts as gone."""

    #: Of opening a connection, the handshake included.
    connect: int = 5
    #: Of silence while a statement runs.  None is no bound, for statements that take as long as they need.
    silence: int | None = 30

    def connect_args(self, url: sa.URL) -> dict[str, Any]:
        """What the driver is told, except what the URL says itself."""
        driver = url.get_driver_name()
        if driver == "pymysql":
            # Its connect_timeout ends before the handshake, which the bound of reads has to cover.
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

    def bound(self, engine: Engine) -> None:
        """Bound the waiting of the engine's connections where ``connect_args`` cannot."""
        driver = engine.url.get_driver_name()
        if driver == "psycopg":
            sa.event.listen(engine, "do_connect", self._connect_psycopg)
        elif driver == "pymysql":
            ours = [name for name in ("read_timeout", "write_timeout") if name not in engine.url.query]

            def after_handshake(connection: Any, _record: Any) -> None:
                for name in ours:
                    setattr(connection, f"_{name}", self.silence)

            sa.event.listen(engine, "connect", after_handshake)

    def session(self, backend: str, *, reads: bool) -> list[str]:
        """Assignments of session variables that have the server itself give up.

        Only statements of reads have a time limit on the server: one that ends a COMMIT leaves its outcome open.
        """
        if self.silence is None:
            return []
        if backend == "postgresql":
            idle = f"idle_in_transaction_session_timeout = '{IDLE_TRANSACTION}s'"
            return [idle, f"statement_timeout = '{self.silence}s'"] if reads else [idle]
        # Variables that only MariaDB has, and one that only MySQL has, where comments are for either.
        waits = f"lock_wait_timeout = {LOCK_TIMEOUT} /*M!100300 , idle_transaction_timeout = {IDLE_TRANSACTION} */"
        limit = (
            f" /*M!100300 , max_statement_time = {self.silence} */"
            f" /*!50708 , max_execution_time = {self.silence * 1000} */"
        )
        return [waits + limit if reads else waits]

    def _libpq(self) -> dict[str, Any]:
        arguments = {"connect_timeout": max(2, self.connect), "keepalives": 1}  # libpq takes 1 for 2
        if self.silence is None:
            return arguments
        return arguments | {
            "tcp_user_timeout": self.silence * 1000,
            "keepalives_idle": max(1, self.silence // 2),
            "keepalives_interval": max(1, self.silence // 10),
            "keepalives_count": 5,
        }

    def _connect_psycopg(self, _dialect: Dialect, _record: Any, arguments: Any, named: dict[str, Any]) -> Any:
        from placement.db import bounded_psycopg  # the driver is an extra

        connection = bounded_psycopg.BoundedConnection.connect(*arguments, **named)
        connection.silence = self.silence
        return connection


#: For commands and changes of the schema.
UNBOUNDED = Timeouts(silence=None)
