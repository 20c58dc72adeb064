"""Classes and labels of driver errors.  Each error here is built as its driver builds it."""

from __future__ import annotations

import sqlite3
import struct
from typing import get_args

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from placement.db.engine import driver_errors
from placement.db.engine.driver_errors import ErrorClass
from placement.signals import ErrorLabel
from tests import children


def wrap_error(error, driver, **facts):
    """Return a driver's error as SQLAlchemy wraps it."""
    return exc.DBAPIError.instance("SELECT 1 -- secret", {"name": "secret"}, error, driver.Error, **facts)


def mariadb(number, state=b"HY000", **facts):
    """Return the error that PyMySQL raises for an error packet."""
    packet = b"\xff" + struct.pack("<H", number) + b"#" + state + b"said by the\nserver"
    with pytest.raises(pymysql.Error) as raised:
        pymysql.err.raise_mysql_exception(packet)
    return wrap_error(raised.value, pymysql, **facts)


def postgresql(state, **facts):
    return wrap_error(psycopg.errors.lookup(state)("said by the\nserver"), psycopg, **facts)


def sqlite(*statements, path=":memory:"):
    """Return the error of the last of the statements."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    with engine.connect() as connection:
        connection.connection.driver_connection.isolation_level = None
        for statement in statements[:-1]:
            connection.exec_driver_sql(statement)
        with pytest.raises(exc.SQLAlchemyError) as raised:
            connection.exec_driver_sql(statements[-1])
    engine.dispose()
    return raised.value


def connection_error(url):
    """Return the error of connecting to a port without a listener."""
    engine = sa.create_engine(url.format(port=children.free_port()))
    with pytest.raises(exc.SQLAlchemyError) as raised:
        engine.connect()
    return raised.value


COLLISIONS = {
    "MySQL: record changed since last read": lambda: mariadb(1020),
    "MySQL: lock wait timeout": lambda: mariadb(1205),
    "MySQL: deadlock or failed certification": lambda: mariadb(1213),
    "MySQL: table definition changed": lambda: mariadb(1412),
    "MySQL: duplicate": lambda: mariadb(1062),
    "MySQL: no such parent": lambda: mariadb(1452),
    "MySQL: has children": lambda: mariadb(1451),
    "PostgreSQL: serialization failure": lambda: postgresql("40001"),
    "PostgreSQL: deadlock": lambda: postgresql("40P01"),
    "PostgreSQL: lock timeout": lambda: postgresql("55P03"),
    "PostgreSQL: duplicate": lambda: postgresql("23505"),
    "PostgreSQL: no such parent": lambda: postgresql("23503"),
    "SQLite: duplicate": lambda: sqlite(
        "CREATE TABLE t (a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)"
    ),
    "SQLite: no such parent": lambda: sqlite(
        "PRAGMA foreign_keys = ON",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER REFERENCES t (a))",
        "INSERT INTO t VALUES (1, 2)",
    ),
}
LOST = {
    "MySQL: no listener": lambda: connection_error("mysql+pymysql://u:p@127.0.0.1:{port}/d"),
    "MySQL: too many connections": lambda: mariadb(1040),
    "MySQL: node not ready": lambda: mariadb(1047),
    "MySQL: shutdown": lambda: mariadb(1053),
    "MySQL: killed": lambda: mariadb(1927),
    "MySQL: gone away": lambda: wrap_error(pymysql.OperationalError(2006, "gone"), pymysql),
    "MySQL: lost during query": lambda: wrap_error(pymysql.OperationalError(2013, "lost"), pymysql),
    "MySQL: disk full": lambda: mariadb(1021),
    "MySQL: read only": lambda: mariadb(1290),
    "MySQL: used after it was closed": lambda: wrap_error(
        pymysql.InterfaceError(0, ""), pymysql, connection_invalidated=True
    ),
    "PostgreSQL: no listener": lambda: connection_error("postgresql+psycopg://u:p@127.0.0.1:{port}/d"),
    "PostgreSQL: shutdown": lambda: postgresql("57P01"),
    "PostgreSQL: crash": lambda: postgresql("57P02"),
    "PostgreSQL: starting": lambda: postgresql("57P03"),
    "PostgreSQL: too many connections": lambda: postgresql("53300"),
    "PostgreSQL: disk full": lambda: postgresql("53100"),
    "PostgreSQL: read only": lambda: postgresql("25006"),
    "PostgreSQL: connection failure": lambda: postgresql("08006"),
    "PostgreSQL: server closed the connection": lambda: wrap_error(
        psycopg.OperationalError("server closed the connection unexpectedly"), psycopg
    ),
    "SQLite: disk full": lambda: sqlite(
        "CREATE TABLE t (a BLOB)", "PRAGMA max_page_count = 3", "INSERT INTO t VALUES (zeroblob(99999))"
    ),
    "no connection was free in time": lambda: exc.TimeoutError("QueuePool limit"),
}
VALUES = {
    "MySQL: too long": lambda: mariadb(1406),
    "MySQL: out of range": lambda: mariadb(1264),
    "MySQL: characters that the column does not support": lambda: mariadb(1267),
    "PostgreSQL: out of range": lambda: postgresql("22003"),
    "PostgreSQL: too long": lambda: postgresql("22001"),
    "PostgreSQL: NUL": lambda: wrap_error(psycopg.DataError("PostgreSQL text fields cannot contain NUL"), psycopg),
    "SQLite: too large a number": lambda: OverflowError("Python int too large to convert to SQLite INTEGER"),
    "half a surrogate pair": lambda: UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    "SQLite: too many names": lambda: sqlite(f"SELECT 1 WHERE 1 IN ({','.join(['?'] * 300_000)})"),
}
INTERNAL_ERRORS = {
    "MySQL: syntax": lambda: mariadb(1064),
    "MySQL: no such table": lambda: mariadb(1146),
    "PostgreSQL: syntax": lambda: postgresql("42601"),
    "PostgreSQL: no such table": lambda: postgresql("42P01"),
    "PostgreSQL: the transaction has failed": lambda: postgresql("25P02"),
    "SQLite: syntax": lambda: sqlite("SELEKT"),
    "SQLite: no such table": lambda: sqlite("SELECT * FROM nowhere"),
    "SQLAlchemy: misuse": lambda: exc.InvalidRequestError("This connection has already begun"),
    "anything else": lambda: ValueError("x"),
}
EXPECTED = {
    ErrorClass.COLLISION: COLLISIONS,
    ErrorClass.LOST: LOST,
    ErrorClass.VALUE: VALUES,
    ErrorClass.INTERNAL: INTERNAL_ERRORS,
}


@pytest.mark.parametrize(
    ("error", "expected"),
    [pytest.param(make, expected, id=name) for expected, errors in EXPECTED.items() for name, make in errors.items()],
)
def test_a_driver_error_has_its_class(error, expected):
    assert driver_errors.classify(error()) is expected


LABELS = {
    "serialization": [lambda: mariadb(1020), lambda: mariadb(1412), lambda: postgresql("40001")],
    # The SQLSTATE of a deadlock in MySQL denotes a serialization failure elsewhere.
    "deadlock": [lambda: mariadb(1213, b"40001"), lambda: postgresql("40P01")],
    "lock_timeout": [lambda: mariadb(1205), lambda: postgresql("55P03")],
    "duplicate": [lambda: mariadb(1062), lambda: mariadb(1452), lambda: postgresql("23505")],
    "no_free_connection": [lambda: exc.TimeoutError("QueuePool limit")],
    "lost": [lambda: mariadb(2013), lambda: postgresql("57P01")],
    "value": [lambda: mariadb(1406), lambda: postgresql("22003"), lambda: OverflowError("x")],
    "bug": [lambda: mariadb(1064), lambda: postgresql("42601"), lambda: ValueError("x")],
}


@pytest.mark.parametrize(("name", "error"), [(name, make) for name, makers in LABELS.items() for make in makers])
def test_a_driver_error_has_its_label(name, error):
    assert driver_errors.label(error()) == name


@pytest.mark.parametrize(
    ("code", "expected", "name"), [(1406, ErrorClass.LOST, "lost"), (1213, ErrorClass.COLLISION, "deadlock")]
)
def test_an_error_on_a_lost_connection_is_lost_unless_it_is_a_collision(code, expected, name):
    """After a collision the transaction is certainly rolled back, even if the connection is lost."""
    origin = pymysql.err.OperationalError(code, "injected")
    error = exc.DBAPIError.instance("x", {}, origin, pymysql.err.Error, connection_invalidated=True)
    assert driver_errors.classify(error) is expected
    assert driver_errors.label(error) == name


@pytest.mark.parametrize(
    "error", [make for errors in EXPECTED.values() for name, make in errors.items() if "no listener" not in name]
)
def test_labels_are_from_a_fixed_set(error):
    assert driver_errors.label(error()) in get_args(ErrorLabel)


def test_a_locked_sqlite_database_is_a_collision(tmp_path):
    """LP 1789633."""
    path = tmp_path / "file.sqlite"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("BEGIN IMMEDIATE")
        error = sqlite("BEGIN IMMEDIATE", path=path)
        assert driver_errors.classify(error) is ErrorClass.COLLISION
        assert driver_errors.label(error) == "lock_timeout"
        connection.execute("ROLLBACK")
    connection.close()


def test_a_closed_sqlite_connection_is_a_lost_connection():
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.connection.driver_connection.close()
        with pytest.raises(exc.DBAPIError) as raised:
            connection.exec_driver_sql("SELECT 1")
    assert driver_errors.classify(raised.value) is ErrorClass.LOST


@pytest.mark.parametrize("error", [mariadb(1205), postgresql("40001")], ids=["MySQL", "PostgreSQL"])
def test_the_message_is_the_servers_on_one_line_without_the_statement(error):
    """LP 1664117: SQL text was shown."""
    message = driver_errors.message(error)
    assert "said by the" in message
    assert "\n" not in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (lambda: mariadb(1146), True),
        (lambda: postgresql("42P01"), True),
        (lambda: sqlite("SELECT * FROM nowhere"), True),
        (lambda: mariadb(1064), False),
        (lambda: postgresql("42601"), False),
        (lambda: sqlite("SELEKT"), False),
        (lambda: ValueError("no such table"), False),
    ],
)
def test_a_missing_table_is_recognised(error, missing):
    assert driver_errors.is_missing_table(error()) == missing
