"""TLS to MariaDB and MySQL: with ``ssl_ca`` in the URL, the server's certificate and host name are verified.

libpq follows ``sslmode``, and needs nothing here (docs: tls-to-the-database).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect, Engine

_FILES = ("ssl_ca", "ssl_cert", "ssl_key")
#: The client libraries' error number for TLS.
_TLS_FAILED = 2026


def connect_args(url: sa.URL) -> dict[str, Any]:
    """Return arguments of the driver's ``connect`` that SQLAlchemy does not derive from the URL."""
    driver, query = url.get_driver_name(), url.query
    if driver == "mysqldb" and "ssl_ca" in query and "ssl_mode" not in query:
        # With only an authority, MariaDB's client library accepts any host name, and a server without TLS.
        return {"ssl_mode": "VERIFY_IDENTITY"}
    if driver == "pymysql" and not query.keys().isdisjoint({"ssl_verify_cert", "ssl_verify_identity"}):
        # SQLAlchemy passes the files in a dictionary, which PyMySQL replaces if it has one of these two arguments.
        return {name: query[name] for name in _FILES if name in query}
    return {}


def apply(engine: Engine) -> None:
    """Have PyMySQL report an unreadable certificate file as other drivers do."""
    files = [str(engine.url.query[name]) for name in _FILES if name in engine.url.query]
    if not files or engine.url.get_driver_name() != "pymysql":
        return

    def connect(dialect: Dialect, _record: Any, arguments: Any, named: dict[str, Any]) -> Any:
        try:
            return dialect.connect(*arguments, **named)
        except OSError as error:  # or its subclass ssl.SSLError; the driver wraps errors of the handshake
            sentence = f"TLS: {error} ({', '.join(files)})"
            raise dialect.loaded_dbapi.OperationalError(_TLS_FAILED, sentence) from error

    sa.event.listen(engine, "do_connect", connect)
