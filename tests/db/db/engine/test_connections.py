"""The options of [placement_database] about connections take effect."""

from __future__ import annotations

import contextlib
import logging

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.connect import connect
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.provider import ResourceProvider
from tests import made, web
from tests.made import opened


@pytest.fixture
def connect_with(database_url):
    """Return a function that opens the database with options of the test."""
    with contextlib.ExitStack() as stack:

        def open_with(**options):
            settings = {f"placement_database__{name}": value for name, value in options.items()}
            conf = web.configuration(placement_database__connection=database_url, **settings)
            database = connect(conf)
            stack.callback(database.dispose)
            return database

        yield open_with


def count_connections(database, attempts):
    """Return the number of connections for writes that can be open at once, at most ``attempts``."""
    with contextlib.ExitStack() as stack:
        for number in range(attempts):
            try:
                stack.enter_context(database.engine.connect())
            except sa.exc.TimeoutError:
                return number
    return attempts


@pytest.mark.every_database
def test_the_pool_has_the_configured_size(connect_with):
    assert count_connections(connect_with(max_pool_size=2, max_overflow=1, pool_timeout=0), 9) == 3
    assert count_connections(connect_with(max_pool_size=0, max_overflow=0, pool_timeout=0), 20) == 20
    assert count_connections(connect_with(pool_timeout=0), 20) == 15


def test_a_database_without_a_free_connection_is_unavailable(connect_with):
    database = connect_with(max_pool_size=1, max_overflow=0, pool_timeout=0)
    with database.engine.connect(), pytest.raises(errors.DatabaseUnavailable):
        database.write(lambda db: db.execute(sa.select(1)))


@pytest.mark.every_database
@pytest.mark.parametrize(("age", "same"), [(0, False), (3600, True), (-1, True)])
def test_a_connection_is_replaced_after_the_recycle_time(connect_with, age, same):
    database = connect_with(connection_recycle_time=age)

    def connection():
        with database.engine.connect() as checked_out:
            return id(checked_out.connection.dbapi_connection), checked_out.connection.dbapi_connection

    first = connection()
    assert (connection()[0] == first[0]) is same


def use_every_engine(url):
    """Write, read and probe; return the driver connections opened and those closed."""
    opened_connections, closed_connections = [], []
    with opened(url) as database:
        for engine in {database.engine, database.reading_engine, database._probing_engine}:
            sa.event.listen(engine, "connect", lambda connection, _record: opened_connections.append(connection))
            sa.event.listen(engine, "close", lambda connection, _record: closed_connections.append(connection))
        if database.url.get_backend_name() == "sqlite":
            made.sync(database.engine)
        for run in (database.read, database.snapshot, database.write, database.probe):
            assert run(lambda db: db.execute(sa.select(1)).scalar()) == 1
    return opened_connections, closed_connections


def test_no_connection_is_left_open_at_the_end(database):
    opened_connections, closed_connections = use_every_engine(database.url)
    assert len(opened_connections) == 3, "for writes, for reads, and for the health check"
    assert {id(connection) for connection in closed_connections} == {
        id(connection) for connection in opened_connections
    }


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:/one?vfs=memdb&uri=true"])
def test_a_database_in_memory_has_one_connection(url):
    """A second connection would find no tables, or would not wait for locks."""
    opened_connections, _ = use_every_engine(url)
    assert len(opened_connections) == 1


@pytest.mark.every_database
def test_parameters_are_added_to_the_url(connect_with, backend):
    name, value = {
        "sqlite": ("timeout", "3"),
        "mariadb": ("program_name", "placement_here"),
        "postgresql": ("application_name", "placement_here"),
    }[backend.kind]
    database = connect_with(connection_parameters=f"{name}={value}")
    assert database.url.query[name] == value
    assert database.read(lambda db: db.execute(sa.select(1)).scalar()) == 1
    if backend.kind == "postgresql":
        query = sa.select(sa.func.current_setting("application_name"))
        assert database.read(lambda db: db.execute(query).scalar()) == value


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize(("mode", "strict"), [("TRADITIONAL", True), ("ANSI_QUOTES", False)])
def test_the_sql_mode_of_mysql_is_the_configured_one(connect_with, mode, strict):
    database = connect_with(mysql_sql_mode=mode)
    reported = database.read(lambda db: db.execute(sa.text("SELECT @@SESSION.sql_mode")).scalar())
    assert ("STRICT_TRANS_TABLES" in reported) is strict
    assert mode in reported


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("waits", "level"), [(True, 2), (False, 1)])
def test_sqlite_waits_for_the_disk_if_configured(connect_with, waits, level):
    database = connect_with(sqlite_synchronous=waits)
    assert database.read(lambda db: db.execute(sa.text("PRAGMA synchronous")).scalar()) == level


@pytest.fixture
def statement_log():
    logger = logging.getLogger("sqlalchemy.engine")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.mark.parametrize(("verbosity", "reported"), [(0, (False, False)), (50, (True, False)), (100, (True, True))])
def test_statements_are_logged_if_configured(connect_with, caplog, statement_log, verbosity, reported):
    database = connect_with(connection_debug=verbosity)
    database.read(lambda db: db.execute(sa.select(sa.literal("asked") + "x")).all())
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("sqlalchemy.engine")]
    assert (any("SELECT" in line for line in lines), any(line.startswith("Row (") for line in lines)) == reported


def test_statements_name_their_caller_if_configured(connect_with):
    statements = []
    database = connect_with(connection_trace=True)

    @sa.event.listens_for(database.reading_engine, "before_cursor_execute")
    def see(_connection, _cursor, statement, *_):
        statements.append(statement)

    with contextlib.suppress(errors.TablesMissing):
        database.read(lambda db: ResourceProvider.get(db, "c" * 36))
    with contextlib.suppress(errors.TablesMissing):
        database.read(lambda db: ClaimedInventory.read(db, {1: "c" * 36}, ["VCPU"]))
    database.read(lambda db: db.execute(sa.select(1)).scalar())
    assert "/* placement/objects/provider.py:" in statements[0]
    assert "/* placement/objects/claims/claimed_inventory.py:" in statements[1]
    assert "/*" not in statements[2]
