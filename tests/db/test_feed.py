"""The feed of changes: what a search may see differently leaves rows with its commit, in order (docs/adr/0004)."""

from __future__ import annotations

import datetime
import threading

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db import feed, schema
from placement.db.engine import opened
from placement.db.tables import change_writers, provider_changes
from tests.db import faults, watch, writes
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.story import Telling


@pytest.mark.parametrize("write", writes.ALL, ids=lambda write: write.name)
def test_a_write_leaves_a_row_for_each_provider_it_changes(database, write):
    """One that is refused leaves none."""
    telling = Telling(write, database)
    before = telling.state()
    answer = telling.ask(placement(database))
    assert answer.status == write.status, answer
    assert telling.changes() == write.changes
    assert (telling.state() == before) == (write in writes.REFUSED)


# --- writers and their numbers ---------------------------------------------------------------------------------------


def rows(database):
    """Writer, number and provider of each row there is."""
    query = sa.select(provider_changes.c.writer_id, provider_changes.c.seq, provider_changes.c.provider_id)
    return sorted(tuple(row) for row in database.read(lambda db: db.execute(query).all()))


def writers(database):
    return set(database.read(lambda db: db.execute(sa.select(change_writers.c.id)).scalars().all()))


def touch(database, *providers):
    database.write(lambda db: [db.changed(provider, feed.SHAPE) for provider in providers])


def execute(database, statement):
    with database.engine.begin() as connection:
        connection.execute(statement)


def refuse(db):
    db.changed(99, feed.SHAPE)
    raise errors.NoAllocations(uuid="x")


def test_transactions_of_a_writer_are_numbered_as_they_commit(database):
    touch(database, 1)
    touch(database, 3, 2)
    with pytest.raises(errors.NoAllocations):
        database.write(refuse)
    touch(database)
    touch(database, 1)
    (writer,) = writers(database)
    assert rows(database) == [(writer, 1, 1), (writer, 2, 2), (writer, 2, 3), (writer, 3, 1)]


@pytest.mark.parametrize("harm", range(3))
@pytest.mark.parametrize("at", ["INSERT INTO provider_changes", "COMMIT"])
def test_the_number_of_an_attempt_that_collided_goes_to_the_next(database, backend, harm, at):
    touch(database, 1)
    plan = Plan(at=at, harms=[faults.collisions(backend.kind)[harm]])
    planted(database, plan)
    touch(database, 2)
    assert plan.done
    (writer,) = writers(database)
    assert rows(database) == [(writer, 1, 1), (writer, 2, 2)]


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_transactions_that_overlap_have_different_writers(database):
    """SQLite has none that do."""

    def work(db):
        db.changed(1, feed.SHAPE)
        meanwhile = threading.Thread(target=touch, args=[database, 2])
        meanwhile.start()
        meanwhile.join()

    database.write(work)
    touch(database, 3)
    writer_of = {provider: writer for writer, _, provider in rows(database)}
    assert writer_of[1] != writer_of[2]
    assert writer_of[3] in (writer_of[1], writer_of[2])


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_writer_whose_commit_went_unanswered_does_not_write_again(database, answer_only):
    """Its number may still appear."""
    touch(database, 1)
    planted(database, Plan(at="COMMIT", harms=[faults.lose], answer_only=answer_only))
    with pytest.raises(errors.OutcomeUnknown):
        touch(database, 2)
    touch(database, 3)
    first, *unknown, (other, number, provider) = rows(database)
    assert [provider for _, _, provider in unknown] == ([2] if answer_only else [])
    assert (number, provider) == (1, 3)
    assert other != first[0]


# --- tidying ---------------------------------------------------------------------------------------------------------


class Clock:
    """Stands still unless it is told to go on, however slow the machine is."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The feed's clock; it tidies with every write."""
    clock = Clock()
    monkeypatch.setattr(feed, "time", clock)
    monkeypatch.setattr(feed, "_TIDY_INTERVAL", -1.0)
    return clock


def test_a_writer_clears_its_old_rows_but_for_the_newest(database, clock):
    for provider in (1, 2, 3):
        touch(database, provider)
        clock.now += 1
    (writer,) = writers(database)
    assert rows(database) == [(writer, 1, 1), (writer, 2, 2), (writer, 3, 3)]
    clock.now += feed.RETENTION + 1
    touch(database, 4)
    assert rows(database) == [(writer, 4, 4)]
    clock.now += feed.RETENTION + 1
    touch(database)
    assert rows(database) == [(writer, 4, 4)]


def test_a_writer_that_was_not_seen_for_long_is_forgotten_with_its_rows(database, clock):
    with opened(database.url) as dead:
        touch(dead, 1)
        touch(dead, 1)
        (dead_writer,) = writers(database)
    with opened(database.url) as idle:
        touch(idle, 2)
    touch(database, 3)
    assert [provider for _, _, provider in rows(database)] == [1, 1, 2, 3]
    long_ago = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(seconds=feed.LIFETIME + 9)
    execute(database, sa.update(change_writers).where(change_writers.c.id == dead_writer).values(seen_at=long_ago))
    touch(database, 4)
    assert [provider for _, _, provider in rows(database)] == [2, 3, 4]
    assert dead_writer not in writers(database)
    assert len(writers(database)) == 2


def test_a_writer_says_that_it_lives(database, clock):
    touch(database, 1)
    long_ago = datetime.datetime(2001, 1, 1)
    execute(database, sa.update(change_writers).values(seen_at=long_ago))
    touch(database, 2)
    seen = database.read(lambda db: db.execute(sa.select(change_writers.c.seen_at)).scalar_one())
    assert seen > long_ago


def test_a_writer_that_was_idle_for_half_its_life_does_not_write_again(database, clock):
    """Others may be about to take it for dead.  One that goes on writing may go on for ever."""
    touch(database, 1)
    (old,) = writers(database)
    for _ in range(5):
        clock.now += feed.LIFETIME / 2 - 1
        touch(database)
    assert writers(database) == {old}
    clock.now += feed.LIFETIME / 2
    touch(database, 2)
    assert [(writer == old, provider) for writer, _, provider in rows(database)] == [(True, 1), (False, 2)]


def test_a_writer_tidies_once_a_minute(database, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(feed, "time", clock)
    tidied = []
    for clock.now in (0, 59, 61, 62, 120, 122):
        seen = []
        with watch.statements(database.engine, seen.append):
            touch(database, 1)
        tidied.append(any(statement.startswith("UPDATE change_writers") for statement in seen))
    assert tidied == [False, False, True, False, False, True]


def test_a_writer_is_given_back_where_no_connection_is_to_be_had(database_url):
    with opened(database_url) as empty:
        schema.sync(empty.engine)
    with opened(database_url, pool_size=1, max_overflow=0, pool_timeout=0) as crowded:
        touch(crowded, 1)
        with crowded.engine.connect(), pytest.raises(errors.DatabaseUnavailable):
            touch(crowded, 2)
        touch(crowded, 3)
        assert len(writers(crowded)) == 1


def test_a_writer_that_was_cleared_away_leaves_the_write_to_a_new_one(database):
    """It slept, a laptop's lid closed, say, and others took it for dead."""
    touch(database, 1)
    (old,) = writers(database)
    execute(database, sa.delete(provider_changes))
    execute(database, sa.delete(change_writers))
    attempts = []

    def work(db):
        attempts.append(db)
        db.changed(2, feed.SHAPE)

    database.write(work)
    (new,) = writers(database)
    assert new != old, "a number is never given twice: readers remember the old one"
    assert len(attempts) == 2
    assert rows(database) == [(new, 1, 2)]
    touch(database, 3)
    assert rows(database) == [(new, 1, 2), (new, 2, 3)]


def test_tidying_that_fails_fails_no_write(database, backend, clock, caplog):
    touch(database, 1)
    plan = Plan(at="UPDATE change_writers", harms=faults.collisions(backend.kind)[:1], for_ever=True)
    planted(database, plan)
    database.write(lambda db: db.changed(2, feed.SHAPE))
    assert plan.done
    assert "could not be tidied" in caplog.text
    with opened(database.url) as witness:
        assert [provider for _, _, provider in rows(witness)] == [1, 2]
