"""mysqlclient, the recommended driver of MariaDB and MySQL, behaves like PyMySQL, which all other tests use."""

from __future__ import annotations

import importlib.util

import pytest
import sqlalchemy as sa

from placement import errors
from placement.objects.trait import Trait
from tests import made, servers
from tests.db.db import test_forks
from tests.db.db.test_statement_budget import BUDGET, OWN, questions
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import HOST, claim
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", ["mariadb"], indirect=True)


@pytest.fixture(autouse=True)
def driver(backend):
    """Fail unless the driver is installed."""
    if importlib.util.find_spec("MySQLdb") is None:
        raise servers.Missing(
            "mysqlclient is not installed: run `make servers` (build dependencies) and `pip install mysqlclient`"
        )


def with_mysqlclient(url: str | sa.URL) -> sa.URL:
    return sa.make_url(url).set(drivername="mysql+mysqldb", query={"charset": "utf8mb4"})


@pytest.fixture
def mysqlclient(database):
    """Return the database, accessed through mysqlclient."""
    with opened(with_mysqlclient(database.url)) as mysqlclient_database:
        yield mysqlclient_database


def test_both_drivers_return_the_same_values(database, mysqlclient):
    """mysqlclient writes them: amounts, ratios, dates, generations."""
    names, replies = Names(), []
    for call in (*HOST, claim(**OWN), claim(consumer="other", **OWN)):
        assert placement(mysqlclient)(*names.fill(call)).status in (200, 204)
    paths = [f"/resource_providers/{names['host']}/{part}" for part in ("inventories", "usages", "allocations")]
    for path in (*paths, "/allocation_candidates?resources=VCPU:1"):
        replies.append([placement(driver)("GET", path, 39).body for driver in (database, mysqlclient)])
    assert all(first == second and first for first, second in replies)


def test_a_claim_takes_the_same_round_trips_with_both_drivers(mysqlclient):
    """No ROLLBACK after a COMMIT, no ping, and rows in one statement."""
    names, service = Names(), placement(mysqlclient)
    for call in (*HOST, claim(consumer="consumer_before", **OWN)):
        assert service(*names.fill(call)).status in (200, 204)
    with mysqlclient.engine.connect() as connection:
        before = questions(connection)
        connection.commit()
    assert service(*names.fill(claim(**OWN))).status == 204
    with mysqlclient.engine.connect() as connection:
        round_trips = (
            questions(connection)
            - before
            - len(["the question before", "its COMMIT", "ROLLBACK as it returned to the pool"])
        )
    assert round_trips == BUDGET


@pytest.mark.parametrize(("number", "state"), [(1213, "40001"), (1205, "HY000"), (1020, "HY000"), (1062, "23000")])
def test_a_collision_is_retried(mysqlclient, number, state):
    """Deadlock, lock wait timeout, failed certification, and a duplicate."""
    attempts = []

    def work(db):
        attempts.append(db.attempt)
        if db.attempt == 1:
            signal = f"SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'planted'"
            db.execute(sa.text(signal))

    mysqlclient.write(work)
    assert attempts == [1, 2]


def test_a_killed_connection_is_replaced(database, mysqlclient):
    attempts = []

    def work(db):
        attempts.append(db.execute(sa.text("SELECT CONNECTION_ID()")).scalar())
        if len(attempts) == 1:
            database.write(lambda other: other.execute(sa.text(f"KILL {attempts[0]}")))
        Trait.create(db, "CUSTOM_A")

    mysqlclient.write(work)
    assert len({*attempts}) == 2
    assert database.read(lambda db: Trait.find(db, "CUSTOM_A"))


def test_a_silent_server_is_abandoned_after_the_timeout(database):
    """The driver waits as long as read_timeout."""
    url = with_mysqlclient(database.url)
    with opened(url, read_timeout=1) as impatient, pytest.raises(errors.DatabaseUnavailable):
        impatient.write(lambda db: db.execute(sa.text("SELECT SLEEP(600)")).scalar())


def test_characters_that_mysqlclient_cannot_convert_are_the_clients_fault(database_url):
    with opened(with_mysqlclient(database_url)) as database:
        with database.engine.connect() as connection:
            connection.exec_driver_sql("ALTER DATABASE CHARACTER SET latin1")
        made.sync(database.engine)
        with pytest.raises(errors.InvalidValue):
            database.read(lambda db: Trait.find(db, "\N{GRINNING FACE}"))


def test_forked_processes_share_neither_connections_nor_writers(mysqlclient):
    test_forks.test_forked_processes_share_neither_connections_nor_writers(mysqlclient)
