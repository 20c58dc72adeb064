"""Classification of errors of databases and drivers, by their meaning for the attempt that raised them.

Databases and drivers report the same condition in many ways; placement/db/engine/error_codes.py lists them.  The class
decides what happens next.  After a collision the whole attempt is retried, and after a lost connection it is retried
once.  If the database denies access, an operator must act; a value that fits no column is the client's mistake.  Any
other error is an internal error.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import exc

from placement.db.engine import error_codes
from placement.db.engine.error_codes import Code, ErrorClass
from placement.signals import ErrorLabel

__all__ = ["ErrorClass", "cause_of", "classify", "is_missing_table", "is_read_only", "is_transient", "label", "message"]

_LABELS: dict[ErrorClass, ErrorLabel] = {
    ErrorClass.COLLISION: "lock_timeout",
    ErrorClass.LOST: "lost",
    ErrorClass.DENIED: "denied",
    ErrorClass.VALUE: "value",
    ErrorClass.INTERNAL: "bug",
}


def classify(error: BaseException) -> ErrorClass:
    """Return the class of an error raised by a statement, a connect or a COMMIT."""
    if isinstance(error, exc.TimeoutError):
        return ErrorClass.LOST
    # Since this attempt's reads, another transaction has committed the duplicate, or the deletion of the parent row.
    # The next attempt sees it, and responds accordingly.
    if isinstance(error, exc.IntegrityError):
        return ErrorClass.COLLISION
    if isinstance(error, exc.DBAPIError):
        return _classify_driver(error)
    return ErrorClass.VALUE if isinstance(error, (UnicodeError, OverflowError)) else ErrorClass.INTERNAL


def is_transient(error: BaseException) -> bool:
    """Whether the same statement may succeed later: its connection was lost, or it collided with a transaction.

    A Galera node that cannot reach the other nodes reports a lock wait timeout, for a SELECT as well.
    """
    return classify(error) in (ErrorClass.LOST, ErrorClass.COLLISION)


def _classify_driver(error: exc.DBAPIError) -> ErrorClass:
    code = _code(error)
    if code is not None and not (error.connection_invalidated and code.error_class is not ErrorClass.COLLISION):
        return code.error_class
    if error.connection_invalidated:
        return ErrorClass.LOST
    driver_error, text = error.orig, str(error.orig)
    if isinstance(error, exc.DataError) or isinstance(driver_error, (UnicodeError, OverflowError)):
        return ErrorClass.VALUE
    if any(words in text for words in error_codes.TOO_MANY_VALUES):
        return ErrorClass.VALUE
    if not _was_never_connected(error):
        return ErrorClass.INTERNAL
    return ErrorClass.DENIED if any(words in text for words in error_codes.CONNECTION_DENIED) else ErrorClass.LOST


def _was_never_connected(error: exc.DBAPIError) -> bool:
    """Whether no connection could be opened: PostgreSQL's drivers then raise OperationalError without a SQLSTATE."""
    if not isinstance(error, exc.OperationalError) or isinstance(error.orig, sqlite3.Error):
        return False
    state, number, _ = _numbers(error)
    return state is None and number is not None and not isinstance(number, int)


def is_read_only(error: BaseException) -> bool:
    """Whether the server refuses writes, because it is not, or no longer, the primary; it has committed nothing."""
    code = _code(error) if isinstance(error, exc.DBAPIError) else None
    return code is not None and code.read_only


def label(error: BaseException) -> ErrorLabel:
    """Return the label under which metrics count the error."""
    if isinstance(error, exc.TimeoutError):
        return "no_free_connection"
    if isinstance(error, exc.IntegrityError):
        return "duplicate"
    error_class = classify(error)
    code = _code(error) if isinstance(error, exc.DBAPIError) else None
    return code.label if code is not None and code.error_class is error_class else _LABELS[error_class]


def message(error: BaseException) -> str:
    """Return the driver's message on one line, without the statement or its values."""
    original = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    return " ".join(str(original).split())


def cause_of(failure: BaseException) -> str:
    """Return the message of the driver error that caused a failure, or an empty string."""
    return message(failure.__cause__) if failure.__cause__ else ""


def is_missing_table(error: BaseException) -> bool:
    """Whether a table does not exist: the schema was never created, or is of an older revision."""
    if not isinstance(error, (exc.ProgrammingError, exc.OperationalError)):
        return False
    state, number, _ = _numbers(error)
    return state == "42P01" or number == 1146 or "no such table" in str(error.orig)


def _code(error: exc.DBAPIError) -> Code | None:
    """Return the error's entry in the tables.  MySQL's number comes first: it is more specific than its SQLSTATE."""
    state, number, sqlite_number = _numbers(error)
    if isinstance(number, int):
        return error_codes.MYSQL.get(number)
    if state is not None:
        return error_codes.POSTGRESQL.get(state) or error_codes.POSTGRESQL_CLASSES.get(state[:2])
    return error_codes.SQLITE.get(sqlite_number)


def _numbers(error: exc.DBAPIError) -> tuple[Any, Any, int]:
    """Return PostgreSQL's SQLSTATE, MySQL's number and SQLite's code of the error, or None, None and 0.

    Drivers without numbers have their message in the place of the number.
    """
    driver_error = error.orig
    state = getattr(driver_error, "sqlstate", None) or getattr(driver_error, "pgcode", None)
    number = driver_error.args[0] if driver_error is not None and driver_error.args else None
    return state, number, getattr(driver_error, "sqlite_errorcode", 0) & 0xFF
