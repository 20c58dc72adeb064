"""What a database error means for the attempt that met it.

Databases and drivers say the same thing in many ways; here each is named once.  The kinds matter because the answers
differ: a collision is tried again as a whole, a lost connection once, a value that no column holds is the client's
mistake, and anything else is a bug of ours.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import exc

from placement.db import codes
from placement.db.codes import Code, Trouble
from placement.signals import ErrorLabel

__all__ = ["Trouble", "behind", "is_missing_table", "is_read_only", "is_refusal", "name", "of", "sentence"]

_NAMES: dict[Trouble, ErrorLabel] = {
    Trouble.COLLISION: "lock_timeout",
    Trouble.LOST: "lost",
    Trouble.DENIED: "denied",
    Trouble.VALUE: "value",
    Trouble.BUG: "bug",
}


def of(error: BaseException) -> Trouble:
    """What ``error`` means, if it came out of a statement, a connect or a commit."""
    if isinstance(error, exc.TimeoutError):
        return Trouble.LOST
    # A duplicate or a missing parent comes from a commit since this attempt looked: looking again tells what to
    # answer.
    if isinstance(error, exc.IntegrityError):
        return Trouble.COLLISION
    if isinstance(error, exc.DBAPIError):
        return _of_driver(error)
    return Trouble.VALUE if isinstance(error, (UnicodeError, OverflowError)) else Trouble.BUG


def _of_driver(error: exc.DBAPIError) -> Trouble:
    code = _code(error)
    if code is not None and not (error.connection_invalidated and code.trouble is not Trouble.COLLISION):
        return code.trouble
    if error.connection_invalidated:
        return Trouble.LOST
    origin = error.orig
    if isinstance(error, exc.DataError) or isinstance(origin, (UnicodeError, OverflowError)):
        return Trouble.VALUE
    if any(words in str(origin) for words in codes.TOO_MANY_VALUES):
        return Trouble.VALUE
    if not _was_never_connected(error):
        return Trouble.BUG
    return Trouble.DENIED if any(words in str(origin) for words in codes.NOT_LET_IN) else Trouble.LOST


def _was_never_connected(error: exc.DBAPIError) -> bool:
    """Whether no connection could be opened: PostgreSQL's drivers say so in an OperationalError without a state."""
    origin = error.orig
    if not isinstance(error, exc.OperationalError) or isinstance(origin, sqlite3.Error):
        return False
    state, number, _ = _numbers(error)
    return state is None and number is not None and not isinstance(number, int)


def is_read_only(error: BaseException) -> bool:
    """Whether the server said that it takes no writes: it is no primary (any more), and has committed nothing."""
    code = _code(error) if isinstance(error, exc.DBAPIError) else None
    return code is not None and code.read_only


def name(error: BaseException) -> ErrorLabel:
    """A word for what happened, for counting."""
    if isinstance(error, exc.TimeoutError):
        return "no_free_connection"
    if isinstance(error, exc.IntegrityError):
        return "duplicate"
    kind = of(error)
    code = _code(error) if isinstance(error, exc.DBAPIError) else None
    return code.refusal if code is not None and code.trouble is kind else _NAMES[kind]


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
    state, number, _ = _numbers(error)
    return state == "42P01" or number == 1146 or "no such table" in str(error.orig)


def is_refusal(error: BaseException) -> bool:
    """Whether the server answers, and does not let this service in: a wrong password, or no such database."""
    return of(error) is Trouble.DENIED


def _code(error: exc.DBAPIError) -> Code | None:
    """The entry of the tables for the error.  MySQL's numbers come first: they say more than its states do."""
    state, number, sqlite_number = _numbers(error)
    if isinstance(number, int):
        return codes.MYSQL.get(number)
    if state is not None:
        return codes.POSTGRESQL.get(state) or codes.POSTGRESQL_CLASSES.get(state[:2])
    return codes.SQLITE.get(sqlite_number)


def _numbers(error: exc.DBAPIError) -> tuple[Any, Any, int]:
    """How PostgreSQL, MySQL and SQLite number the error; None, None and 0 where they do not."""
    origin = error.orig
    state = getattr(origin, "sqlstate", None) or getattr(origin, "pgcode", None)
    number = origin.args[0] if origin is not None and origin.args else None
    return state, number, getattr(origin, "sqlite_errorcode", 0) & 0xFF
