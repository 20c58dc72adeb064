"""The number and the duration of attempts: of a write before it is refused, and of the start before it fails."""

from __future__ import annotations

import sqlite3
import threading

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db import database as databases
from placement.db.engine import timeouts
from placement.db.schema.tables import traits
from placement.db.writes import attempt, retry
from placement.db.writes.transaction import Collision, Prerequisite
from tests import children, made
from tests.clock import PATIENCE, Clock
from tests.made import opened

pytestmark = pytest.mark.every_database


@pytest.fixture
def clock(monkeypatch):
    made = Clock(1000.0)
    for module in (databases, retry):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def memory():
    """Return a database with the tables that a transaction needs."""
    with opened("sqlite://") as database:
        made.sync(database.engine)
        yield database


def count_attempts(run, work, refused, **options):
    """Run the work until it is refused; return the number of attempts."""
    attempts = []

    def attempt(db):
        attempts.append(db)
        work(db)

    with pytest.raises(refused):
        run(attempt, **options)
    return len(attempts)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_failing_callback_fails_no_committed_write(database, caplog):
    counted = []

    def work(db):
        db.execute(sa.insert(traits), {"name": "CUSTOM_COUNTED"})
        db.on_commit(lambda: 1 / 0)
        db.on_commit(lambda: counted.append(True))
        return "done"

    assert database.write(work) == "done"
    assert counted == [True]
    assert "ZeroDivisionError" in caplog.text


def collide(db):
    raise Collision


def lose_connection(db):
    lost_connection = sqlite3.OperationalError("gone")
    raise sa.exc.DBAPIError.instance("x", {}, lost_connection, sqlite3.Error, connection_invalidated=True)


def test_a_write_is_attempted_ten_times(memory, clock):
    assert count_attempts(memory.write, collide, errors.TooManyConflicts) == 10


@pytest.mark.parametrize("attempts", [1, 2, 7])
def test_a_write_has_the_attempts_of_its_route(memory, clock, attempts):
    exhausted = errors.AllocationsChanged
    assert count_attempts(memory.write, collide, exhausted, attempts=attempts, exhausted=exhausted) == attempts


def test_the_pause_between_two_attempts_is_short_and_random_and_grows(memory, clock):
    count_attempts(memory.write, collide, errors.TooManyConflicts, attempts=30)
    assert len(clock.pauses) == 29
    assert len(set(clock.pauses)) == 29
    assert all(0 <= pause <= min(0.1, 0.001 * 2**number) for number, pause in enumerate(clock.pauses, 1))
    assert max(clock.pauses) > 0.03


def test_a_pause_after_very_many_attempts_is_short(clock):
    """A request for a node that loses every race is repeated for a minute."""
    retry.pause(5000)
    (pause,) = clock.pauses
    assert 0 <= pause <= 0.1


def test_a_writer_whose_transaction_gets_no_connection_is_kept(memory, monkeypatch):
    """Every refresh of an index would read the row of a superfluous writer."""
    memory.write(lambda _: None)
    writers = [*memory.writers.idle]

    def refuse():
        raise sa.exc.TimeoutError

    monkeypatch.setattr(memory.engine, "connect", refuse)
    with pytest.raises(errors.DatabaseUnavailable):
        memory.write(lambda _: None)
    assert [*memory.writers.idle] == writers != []


def test_no_attempt_is_begun_after_a_minute(memory, clock):
    def slow(db):
        clock.now += 7
        raise Collision

    assert count_attempts(memory.write, slow, errors.TooManyConflicts, attempts=1000) == 9


def test_a_connection_lost_after_a_minute_is_not_a_conflict(memory, clock):
    def work(db):
        clock.now += 61
        lose_connection(db)

    assert count_attempts(memory.write, work, errors.DatabaseUnavailable) == 1


def test_prerequisites_count_towards_the_minute(memory, clock):
    def work(db):
        clock.now += 25
        db.require(lambda _: None)

    assert count_attempts(memory.write, work, errors.TooManyConflicts) == 3


def test_the_work_is_attempted_again_after_its_first_prerequisite(memory, clock):
    """Otherwise no request with a prerequisite would succeed on a slow server."""
    made = []

    def work(db):
        clock.now += 61
        if not made:
            db.require(lambda _: made.append(True))
        return "done"

    assert memory.write(work) == "done"


@pytest.mark.parametrize("is_dry", [False, True], ids=["write", "dry run"])
def test_a_write_may_have_several_prerequisites(memory, no_pauses, is_dry):
    """Prerequisites may take up to a minute: thousands of expired leases are released in batches."""
    attempts = []

    def work(db):
        attempts.append(db.attempt)
        if len(attempts) < 30:
            raise Prerequisite(lambda _: None)
        return "done"

    result = memory.dry_run([work], lambda _: None) if is_dry else memory.write(work)
    assert (result, len(attempts)) == ("done", 30)


def test_a_prerequisite_that_collides_fails_the_write(memory, clock):
    with pytest.raises(errors.AllocationsChanged):
        memory.write(lambda db: db.require(collide), exhausted=errors.AllocationsChanged)


def test_a_connection_may_be_lost_once(memory, clock):
    assert count_attempts(memory.write, lose_connection, errors.DatabaseUnavailable) == 2
    assert count_attempts(memory.read, lose_connection, errors.DatabaseUnavailable) == 2
    assert count_attempts(memory.write, lose_connection, errors.DatabaseUnavailable, attempts=1) == 1


def fail_to_lock(db):
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    raise sa.exc.DBAPIError.instance("x", {}, busy, sqlite3.Error)


@pytest.mark.parametrize("collides", [collide, fail_to_lock])
def test_a_connection_may_be_lost_once_between_collisions(memory, clock, collides):
    outcomes = [collides, lose_connection, collides, lose_connection, collides]

    def work(db):
        outcomes.pop(0)(db)

    assert count_attempts(memory.write, work, errors.DatabaseUnavailable) == 4


def test_a_database_in_memory_is_read_between_writes_and_within_one(memory, monkeypatch):
    """The database has one connection, so another thread would read uncommitted data."""
    monkeypatch.setattr(attempt, "LOCK_TIMEOUT", 0.01)
    refused = []

    def work(db):
        def other():
            with pytest.raises(errors.DatabaseUnavailable):
                memory.read(refused.append)
            refused.append(None)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
        return memory.read(lambda _: "read")

    assert memory.write(work) == "read"
    assert refused == [None]


@pytest.mark.parametrize(
    "run",
    [
        lambda memory: memory.write(lambda _: None, attempts=2),
        lambda memory: memory.dry_run([lambda _: None], lambda _: None, attempts=2),
    ],
    ids=["write", "dry run"],
)
def test_a_thread_that_waits_long_for_sqlites_write_lock_collides(memory, monkeypatch, run):
    monkeypatch.setattr(attempt, "LOCK_TIMEOUT", 0.01)
    refusals = []

    def hold_the_lock(db):
        def other():
            with pytest.raises(errors.TooManyConflicts) as refused:
                run(memory)
            refusals.append(refused)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    memory.write(hold_the_lock)
    assert refusals


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_the_start_makes_one_attempt_and_the_configured_retries(clock, retries):
    url = f"mysql+pymysql://u:p@127.0.0.1:{children.free_port()}/d"
    with opened(url) as database, pytest.raises(errors.DatabaseUnavailable):
        database.wait_until_reachable(retries, 3)
    assert clock.pauses == [3] * retries


def test_the_start_retries_without_limit_if_configured(clock):
    url = f"mysql+pymysql://u:p@127.0.0.1:{children.free_port()}/d"

    class Enough(Exception):
        pass

    def sleep(seconds):
        clock.pauses.append(seconds)
        if len(clock.pauses) > 20:
            raise Enough

    clock.sleep = sleep
    with opened(url) as database, pytest.raises(Enough):
        database.wait_until_reachable(-1, 3)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("part", ["password", "database"])
def test_permanent_errors_are_not_retried_at_the_start(backend, database, clock, part):
    url = database.url.set(**{part: "wrong"})
    with opened(url) as wrong:
        for run in (lambda: wrong.wait_until_reachable(5, 3), lambda: wrong.read(collide)):
            with pytest.raises(errors.DatabaseRefuses):
                run()
    assert clock.pauses == []


def test_the_longest_wait_for_a_lock_is_ten_seconds():
    """This is documented; the settings of the sessions are tested in test_silence.py."""
    assert timeouts.LOCK_TIMEOUT == 10
