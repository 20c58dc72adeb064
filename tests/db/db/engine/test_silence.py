"""A server that accepts connections and sends nothing (frozen, or cut off) blocks no thread forever."""

from __future__ import annotations

import contextlib
import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import deploy, errors
from placement.cmd import program
from placement.db.connect import connect
from placement.db.engine import dialects
from placement.db.engine.timeouts import Timeouts
from placement.db.schema import schema
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests import made, proxies, web
from tests.clock import PATIENCE
from tests.made import opened

SHORT = {"connect_timeout": 2, "read_timeout": 1}
LONG = int(2 * PATIENCE)


@pytest.fixture
def patient_by_default(monkeypatch):
    """Make every limit that the test does not set longer than the test."""
    monkeypatch.setitem(dialects.Setup.from_options.__kwdefaults__, "read_timeout", LONG)
    monkeypatch.setattr(Timeouts.__init__, "__defaults__", (Timeouts().connect, LONG))


def is_unavailable(run, work):
    """Return True once the work has failed with an unavailable database; without a limit this would not return."""
    with pytest.raises(errors.DatabaseUnavailable):
        run(work)
    return True


def find(db):
    return ResourceProvider.find(db, "x")


def create(name):
    return lambda db: LockedProvider.create(db, uuid=name, name=name)


def within_the_limit(run):
    """Repeat ``run(number)`` until a busy machine meets the short time limit; return the result."""
    deadline = time.monotonic() + PATIENCE
    numbers = itertools.count()
    while True:
        try:
            return run(next(numbers))
        except (errors.Unavailable, sa.exc.DBAPIError):
            assert time.monotonic() < deadline


def create_within_the_limit(database, name):
    """Create a provider, under another name if the server exceeded the limit; return the name."""

    def run(number):
        database.write(create(f"{name}{number}"))
        return f"{name}{number}"

    return within_the_limit(run)


def check(database, silent):
    """Check that requests end while the server is silent, and are served afterwards."""
    before = create_within_the_limit(database, "before")
    within_the_limit(lambda _: database.snapshot(find))
    with ThreadPoolExecutor(3) as threads, silent():
        works = (database.read, find), (database.snapshot, find), (database.write, create("meanwhile"))
        waiting = [threads.submit(is_unavailable, *work) for work in works]
        assert [future.result(PATIENCE) for future in waiting] == [True] * 3
    create_within_the_limit(database, "after")
    # The next statement does not read the late response.
    with within_the_limit(lambda _: database.reading_engine.connect()) as connection:
        with silent(), pytest.raises(sa.exc.DBAPIError) as lost:
            connection.execute(sa.select(1))
        assert lost.value.connection_invalidated
    assert within_the_limit(lambda _: database.read(lambda db: ResourceProvider.find(db, before))) is not None


@pytest.mark.usefixtures("patient_by_default")
@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
def test_a_frozen_server_is_lost(private_server):
    """Its kernel still acknowledges packets, so only the service can notice."""
    url = private_server.create_database()
    with opened(url) as patient:
        made.sync(patient.engine)
    with opened(url, **SHORT) as database:
        check(database, private_server.frozen)


@pytest.mark.every_database
@pytest.mark.usefixtures("patient_by_default")
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_server_whose_packets_are_dropped_is_lost(backend, database):
    with proxies.proxy(database.url.port) as proxy, opened(database.url.set(port=proxy.port), **SHORT) as cut_off:
        check(cut_off, proxy.silent)


#: A statement during which the server sends nothing, by kind; the parameter is in seconds.
SLOW = {"mariadb": "SELECT SLEEP({})", "postgresql": "SELECT pg_sleep({})"}


@pytest.mark.every_database
@pytest.mark.usefixtures("patient_by_default")
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_changes_of_the_schema_have_no_time_limit(backend, database):
    # Shorter than LONG, so that it ends if the limit is ignored; longer than this process may be delayed.
    endless, slow = (sa.text(SLOW[backend.kind].format(duration)) for duration in (int(PATIENCE), 2))
    with opened(database.url, **SHORT | {"connect_timeout": int(PATIENCE)}) as bounded:
        within_the_limit(lambda _: bounded.write(lambda db: db.execute(sa.select(1))))  # opens the connection
        assert is_unavailable(bounded.write, lambda db: db.execute(endless))
        with bounded.unbounded_engine() as engine, engine.begin() as connection:
            connection.execute(slow)


#: The server's own limits for silent clients and for abandoned statements.
LIMITS = {
    "mariadb": "SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@idle_transaction_timeout, "
    "@@max_statement_time",
    "postgresql": "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), "
    "current_setting('statement_timeout')",
}
READ_LIMITS = {"mariadb": (10, 10, 60, 40), "postgresql": ("10s", "1min", "40s")}
# If a limit ended a COMMIT, its outcome would be unknown.
WRITE_LIMITS = {"mariadb": (10, 10, 60, 0), "postgresql": ("10s", "1min", "0")}
COMMAND_LIMITS = {"mariadb": (86400, 10, 0, 0), "postgresql": ("10s", "0", "0")}


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_server_limits_waits_of_the_service_and_statements_of_reads(backend, database):
    """MariaDB's default is to wait a day for a table that is being changed."""
    statement = sa.text(LIMITS[backend.kind])
    url = database.url.render_as_string(hide_password=False)
    conf = web.configuration(placement_database__connection=url, placement_database__read_timeout=40)

    def limits_of(run):
        return run(lambda db: tuple(db.execute(statement).one()))

    with contextlib.closing(contextlib.ExitStack()) as stack, program.connected(conf) as command:
        service = connect(conf)
        stack.callback(service.dispose)
        assert limits_of(service.read) == READ_LIMITS[backend.kind]
        assert limits_of(service.write) == WRITE_LIMITS[backend.kind]
        assert limits_of(command.read) == limits_of(command.write) == COMMAND_LIMITS[backend.kind]


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_start_that_changes_the_schema_has_the_time_limits_of_commands(backend, database, monkeypatch):
    def limits(engine, **_):
        with engine.connect() as connection:
            reported.append(tuple(connection.execute(sa.text(LIMITS[backend.kind])).one()))

    reported = []
    monkeypatch.setattr(schema, "sync", limits)
    deploy.loadapp(web.configuration(placement_database__sync_on_startup=True), database)
    assert reported == [COMMAND_LIMITS[backend.kind]]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_an_open_connection_has_the_read_timeout(database):
    """The connect timeout limits only the handshake."""
    with opened(database.url, connect_timeout=3, read_timeout=40) as bounded, bounded.engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        assert (driver._read_timeout, driver._write_timeout) == (40, 40)


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("mysql+mysqldb://h/d", {"connect_timeout": 5, "read_timeout": 30, "write_timeout": 30}),
        (
            "postgresql+psycopg2://h/d?keepalives_idle=7",
            {
                "connect_timeout": 5,
                "keepalives": 1,
                "tcp_user_timeout": 30000,
                "keepalives_interval": 3,
                "keepalives_count": 5,
            },
        ),
        ("mysql+mysqlconnector://h/d", {}),
    ],
)
def test_the_timeouts_of_a_connection_are_arguments_of_its_driver(url, arguments):
    """Parameters of the URL take precedence; a driver that this service does not know gets no arguments."""
    assert dialects.Timeouts().connect_args(sa.make_url(url)) == arguments
