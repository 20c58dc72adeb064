"""What a database error means for the attempt that met it.

Databases and drivers say the same thing in many ways; here each is named once.  The kinds matter because the answers
differ: a collision is tried again as a whole, a lost connection once, a value that no column holds is the client's
mistake, and anything else is a bug of ours.
"""

from __future__ import annotations

import enum
import sqlite3
from typing import Any

from sqlalchemy import exc

from placement.signals import Refusal


class Trouble(enum.Enum):
    """What happened to a statement or a COMMIT."""

    COLLISION = "another transaction was in the way; this one is rolled back"
    LOST = "the server went away, or cannot go on for now"
    VALUE = "a value does not fit its column"
    BUG = "the statement is wrong"


# MySQL and MariaDB: record changed since last read (1020), lock wait timeout (1205), deadlock, which is also how Galera
# reports a failed certification (1213), snapshot too old to write (1412 table definition changed).
_MYSQL_COLLISIONS: dict[int, Refusal] = {
    1020: "serialization",
    1205: "lock_timeout",
    1213: "deadlock",
    1412: "serialization",
}
# Too many connections, shutdown in progress, WSREP not ready, connection killed, and the client library's own numbers.
_MYSQL_LOST = {1040, 1047, 1053, 1152, 1203, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
# Disk full, table full, a COMMIT that Galera could not finish, a primary that became a replica, statements that were
# killed or took too long.
_MYSQL_LOST |= {1021, 1114, 1180, 1290, 1317, 1836, 1969, 3024}
# A packet too big; characters that the columns or the connection have not, which MySQL says when they are compared.
_MYSQL_VALUES = {1153, 1267, 1271, 1300, 3988}
# Serialization failure, deadlock, lock not available.
_POSTGRESQL_COLLISIONS: dict[str, Refusal] = {
    "40001": "serialization",
    "40P01": "deadlock",
    "55P03": "lock_timeout",
}
# 57P0x is shutdowns, 57014 a cancelled statement, 25006 a primary that became a replica.
_POSTGRESQL_LOST = {"57P01", "57P02", "57P03", "57014", "25006"}
# Connection exceptions; too little of something, connections and disk included.
_POSTGRESQL_LOST_CLASSES = ("08", "53")
_SQLITE_COLLISIONS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_LOST = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
# More names in a request than a statement takes: these have no number of their own.
_TOO_MANY_VALUES = ("too many SQL variables", "Expression tree is too large", "number of parameters must be between")

# Access denied (to the database, to the user, without a password), unknown database, host not allowed or blocked.
_MYSQL_REFUSALS = {1044, 1045, 1049, 1129, 1130, 1698}
# Invalid authorization, wrong password, no such database, no privilege.
_POSTGRESQL_REFUSALS = {"28000", "28P01", "3D000", "42501"}
_POSTGRESQL_REFUSING = (
    "authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "permission denied for database",
)

_NAMES: dict[Trouble, Refusal] = {
    Trouble.COLLISION: "lock_timeout",  # SQLite's only one
    Trouble.LOST: "lost",
    Trouble.VALUE: "value",
    Trouble.BUG: "bug",
}


def of(error: BaseException) -> Trouble:
    """What ``error`` means, if it came out of a statement, a connect or a commit."""
    if isinstance(error, exc.TimeoutError):
        return Trouble.LOST
    # A duplicate or a missing parent is somebody's commit since this attempt looked: looking again tells what to
    # answer.
    if isinstance(error, exc.IntegrityError):
        return Trouble.COLLISION
    if isinstance(error, exc.DBAPIError):
        return _of_driver(error)
    return Trouble.VALUE if isinstance(error, (UnicodeError, OverflowError)) else Trouble.BUG


def _of_driver(error: exc.DBAPIError) -> Trouble:
    origin = error.orig
    state, number, sqlite_number = _codes(error)
    if state in _POSTGRESQL_COLLISIONS or number in _MYSQL_COLLISIONS or sqlite_number in _SQLITE_COLLISIONS:
        return Trouble.COLLISION
    if error.connection_invalidated or number in _MYSQL_LOST or state in _POSTGRESQL_LOST:
        return Trouble.LOST
    if str(state).startswith(_POSTGRESQL_LOST_CLASSES) or sqlite_number in _SQLITE_LOST:
        return Trouble.LOST
    if isinstance(error, exc.DataError) or isinstance(origin, (UnicodeError, OverflowError)):
        return Trouble.VALUE
    if number in _MYSQL_VALUES or any(words in str(origin) for words in _TOO_MANY_VALUES):
        return Trouble.VALUE
    # A connection that could not be opened at all has no state; PostgreSQL drivers say so in an OperationalError.
    if isinstance(error, exc.OperationalError) and state is None and number is not None and not isinstance(number, int):
        return Trouble.BUG if isinstance(origin, sqlite3.OperationalError) else Trouble.LOST
    return Trouble.BUG


def name(error: BaseException) -> Refusal:
    """A word for what happened, for counting."""
    if isinstance(error, exc.TimeoutError):
        return "no_free_connection"
    if isinstance(error, exc.IntegrityError):
        return "duplicate"
    kind = of(error)
    if kind is not Trouble.COLLISION or not isinstance(error, exc.DBAPIError):
        return _NAMES[kind]
    state, number, _ = _codes(error)
    # The numbers of MySQL first: they say more than its states do.
    return _MYSQL_COLLISIONS.get(number) or _POSTGRESQL_COLLISIONS.get(state) or _NAMES[kind]


def sentence(error: BaseException) -> str:
    """The driver's own words on one line, without the statement or its values."""
    origin = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    return " ".join(str(origin).split())


def behind(failure: BaseException) -> str:
    """The driver's own words that led to a failure; empty if none did."""
    return sentence(failure.__cause__) if failure.__cause__ else ""


def is_missing_table(error: BaseException) -> bool:
    """Whether the statement named a table that is not there: the schema was never made, or is an older one."""
    if not isinstance(error, (exc.ProgrammingError, exc.OperationalError)):
        return False
    state, number, _ = _codes(error)
    return state == "42P01" or number == 1146 or "no such table" in str(error.orig)


def is_refusal(error: BaseException) -> bool:
    """Whether the server answers, and does not let this service in: a wrong password, or no such database."""
    if not isinstance(error, exc.DBAPIError):
        return False
    state, number, _ = _codes(error)
    if state in _POSTGRESQL_REFUSALS or number in _MYSQL_REFUSALS:
        return True
    # Its drivers have no number for what happens before a connection is open.
    return state is None and any(words in str(error.orig) for words in _POSTGRESQL_REFUSING)


def _codes(error: exc.DBAPIError) -> tuple[Any, Any, int]:
    """How PostgreSQL, MySQL and SQLite number the error; None, None and 0 where they do not."""
    origin = error.orig
    state = getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None)
    number = origin.args[0] if origin is not None and origin.args else None
    return state, number, getattr(origin, "sqlite_errorcode", 0) & 0xFF
