"""The feed: each change that affects searches adds rows in the same commit, in order (docs/adr/0004)."""

from __future__ import annotations

import datetime
import threading

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import change_writers, provider_changes
from tests import made
from tests.clock import PATIENCE, Clock
from tests.db import faults, sql_hooks, writes
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.interleaving import just_before, wait_for_lock
from tests.db.scenario_run import ScenarioRun
from tests.index import rewind
from tests.made import opened


@pytest.mark.parametrize("write", writes.ALL, ids=lambda write: write.name)
def test_a_write_leaves_a_row_for_each_provider_it_changes(database, write):
    """A refused write leaves no row."""
    scenario_run = ScenarioRun(write, database)
    before = scenario_run.state()
    answer = scenario_run.ask(placement(database))
    assert answer.status == write.status, answer
    assert scenario_run.changes() == write.changes
    assert (scenario_run.state() == before) == (write in writes.REFUSED)


# --- writers and their numbers ---------------------------------------------------------------------------------------


def rows(database):
    """Return the writer, the sequence number and the provider of each row."""
    query = sa.select(provider_changes.c.writer_id, provider_changes.c.seq, provider_changes.c.provider_id)
    return sorted(tuple(row) for row in database.read(lambda db: db.execute(query).all()))


def writers(database):
    return set(database.read(lambda db: db.execute(sa.select(change_writers.c.id)).scalars().all()))


def touch(database, *providers):
    database.write(lambda db: [db.record_change(provider, feed.SHAPE) for provider in providers])


def execute(database, statement):
    with database.engine.begin() as connection:
        connection.execute(statement)


def refuse(db):
    db.record_change(99, feed.SHAPE)
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


@pytest.mark.parametrize("changes", [(feed.USAGE, feed.SHAPE, feed.GONE), (feed.GONE, feed.SHAPE, feed.USAGE)])
def test_the_strongest_of_several_changes_of_a_provider_is_recorded(database, changes):
    database.write(lambda db: [db.record_change(1, change) for change in changes])
    recorded = database.read(lambda db: db.execute(sa.select(provider_changes.c.what)).scalars().all())
    assert recorded == [feed.GONE]


@pytest.mark.parametrize("fault", range(3))
@pytest.mark.parametrize("at", ["INSERT INTO provider_changes", "COMMIT"])
def test_the_number_of_an_attempt_that_collided_is_used_by_the_next(database, backend, fault, at):
    touch(database, 1)
    plan = Plan(at=at, faults=[faults.collisions(backend.kind)[fault]])
    plant(database, plan)
    touch(database, 2)
    assert plan.injected
    (writer,) = writers(database)
    assert rows(database) == [(writer, 1, 1), (writer, 2, 2)]


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_transactions_that_overlap_have_different_writers(database):
    """SQLite has no concurrent transactions."""

    def work(db):
        db.record_change(1, feed.SHAPE)
        meanwhile = threading.Thread(target=touch, args=[database, 2])
        meanwhile.start()
        meanwhile.join()

    database.write(work)
    touch(database, 3)
    touch(database, 4)
    writer_of = {provider: writer for writer, _, provider in rows(database)}
    assert writer_of[1] != writer_of[2]
    assert writer_of[3] in (writer_of[1], writer_of[2])
    assert writer_of[4] == writer_of[3], "no more writers are registered than necessary"


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_writer_whose_commit_was_not_answered_does_not_write_again(database, answer_only):
    """The transaction with its sequence number may still be committed."""
    touch(database, 1)
    plant(database, Plan(at="COMMIT", faults=[faults.lose], answer_only=answer_only))
    with pytest.raises(errors.OutcomeUnknown):
        touch(database, 2)
    touch(database, 3)
    number_of = {provider: (writer, number) for writer, number, provider in rows(database)}
    assert sorted(number_of) == ([1, 2, 3] if answer_only else [1, 3])
    assert number_of[3][1] == 1
    assert number_of[3][0] != number_of[1][0]


INTERRUPTED = {"mariadb": "KILL QUERY CONNECTION_ID()", "postgresql": "SELECT pg_cancel_backend(pg_backend_pid())"}


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_an_interrupted_statement_costs_no_writer(database, backend):
    """The connection is intact.  Every search reads the number of each writer, so superfluous writers cost time."""
    touch(database, 1)
    for _ in range(3):
        with pytest.raises(errors.DatabaseUnavailable):
            database.read(lambda db: db.execute(sa.text(INTERRUPTED[backend.kind])))
        touch(database, 2)
    assert len(writers(database)) == 1


UNKNOWN_ERRORS = {"mariadb": faults._signal(1105, "HY000", rolls_back=False), "postgresql": faults._raise("42601")}


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_writer_whose_commit_ended_in_an_unknown_error_does_not_write_again(database, backend):
    """The transaction may be committed, so its number may be in use."""
    touch(database, 1)
    plant(database, Plan(at="COMMIT", faults=[UNKNOWN_ERRORS[backend.kind]], answer_only=True))
    with pytest.raises(sa.exc.DBAPIError):
        touch(database, 2)
    touch(database, 3)
    number_of = {provider: (writer, number) for writer, number, provider in rows(database)}
    assert number_of[1][0] == number_of[2][0] != number_of[3][0]


def test_a_lost_connection_replaces_all_writers_of_the_process(database):
    """The database may have lost commits of these writers."""
    touch(database, 1)
    plant(database, Plan(at="SELECT", faults=[faults.lose]))

    def work(db):
        db.execute(sa.select(1))
        db.record_change(2, feed.SHAPE)

    database.write(work)
    number_of = {provider: (writer, number) for writer, number, provider in rows(database)}
    assert number_of[1][0] != number_of[2][0]
    assert number_of[2][1] == 1


def test_a_commit_without_an_answer_replaces_all_writers_of_the_process(database):
    for writer in [database.writers.check_out(database.engine) for _ in range(2)]:
        database.writers.check_in(writer)
    plant(database, Plan(at="COMMIT", faults=[faults.lose]))
    with pytest.raises(errors.OutcomeUnknown):
        touch(database, 1)
    assert [*database.writers.idle] == []


def test_the_id_of_a_writer_whose_registration_was_lost_is_not_reused(database):
    """Its process may continue, and would share the id with another process."""
    state = rewind.save(database)
    rewind.restore(database, state)
    with opened(database.url) as first, opened(database.url) as second:
        touch(first, 1)
        (lost,) = writers(database)
        rewind.restore(database, state)
        touch(second, 2)
        touch(first, 3)
    assert lost not in writers(database)
    assert [(seq, provider) for _, seq, provider in sorted(rows(database), key=lambda row: row[2])] == [(1, 2), (1, 3)]


# --- maintenance -----------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Return the feed's clock; every write does the maintenance."""
    clock = Clock()
    monkeypatch.setattr(feed, "time", clock)
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", -1.0)
    return clock


def test_a_writer_deletes_its_old_rows_except_the_newest(database, clock):
    for provider in (1, 2, 3):
        touch(database, provider)
        clock.now += 1
    (writer,) = writers(database)
    clock.now = 599
    touch(database)
    assert rows(database) == [(writer, 1, 1), (writer, 2, 2), (writer, 3, 3)], "kept for ten minutes"
    clock.now = 603
    touch(database, 4)
    assert rows(database) == [(writer, 3, 3), (writer, 4, 4)], "readers at 3 can read it for ten more minutes"
    clock.now = 1204
    touch(database)
    assert rows(database) == [(writer, 4, 4)]
    clock.now = 9999
    touch(database)
    assert rows(database) == [(writer, 4, 4)]


def set_renewal(database, writer, ago):
    """Set the writer's last renewal to ``ago`` seconds before now."""
    then = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(seconds=ago)
    execute(database, sa.update(change_writers).where(change_writers.c.id == writer).values(seen_at=then))


@pytest.fixture
def dead_writer(database):
    """Return the id of a writer of another process, which has written the numbers 1 and 2."""
    with opened(database.url) as dead:
        touch(dead, 1)
        touch(dead, 1)
    (writer,) = writers(database)
    return writer


def test_an_abandoned_writer_is_ended_and_its_number_kept_for_the_same_time(database, clock, dead_writer):
    with opened(database.url) as idle:
        touch(idle, 2)
    (idle_writer,) = writers(database) - {dead_writer}
    set_renewal(database, dead_writer, 3 * 3600)
    touch(database, 3)
    (own,) = writers(database) - {dead_writer, idle_writer}
    assert len(rows(database)) == 4, "three hours are below the limit"
    set_renewal(database, dead_writer, 4 * 3600 + 9)
    touch(database, 4)
    ended = (own, 3, feed.NO_PROVIDER)
    assert rows(database) == sorted([(-dead_writer, 2, 1), (idle_writer, 1, 2), (own, 1, 3), (own, 2, 4), ended])
    assert writers(database) == {-dead_writer, idle_writer, own}
    set_renewal(database, -dead_writer, 3 * 3600)
    touch(database, 5)
    assert -dead_writer in writers(database)
    set_renewal(database, -dead_writer, 4 * 3600 + 9)
    touch(database)
    assert writers(database) == {idle_writer, own}
    assert {writer for writer, _, _ in rows(database)} == {idle_writer, own}


def test_a_writer_that_never_wrote_is_ended_too(database, clock):
    with opened(database.url) as dead:
        touch(dead)
    (writer,) = writers(database)
    set_renewal(database, writer, 4 * 3600 + 9)
    touch(database, 1)
    assert -writer in writers(database)
    assert writer not in writers(database)


LOCKED = "SELECT change_writers.id \nFROM change_writers \nWHERE change_writers.id ="


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_writer_that_renews_its_lease_just_before_its_end_continues(database, clock, dead_writer):
    """SQLite has no concurrent transactions."""
    set_renewal(database, dead_writer, 5 * 3600)
    with opened(database.url) as witness, just_before(database, LOCKED, lambda: set_renewal(witness, dead_writer, 0)):
        touch(database, 3)
    assert dead_writer in writers(database)
    assert [seq for writer, seq, _ in rows(database) if writer == dead_writer] == [1, 2]


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_last_commit_of_an_ended_writer_is_kept(database, clock, monkeypatch):
    """The writer was suspended, and commits while another writer ends it."""
    recorded, go_on = threading.Event(), threading.Event()
    due = feed.Writer.maintenance_due
    with opened(database.url) as sleeper:
        touch(sleeper, 1)
        (writer,) = writers(database)
        # It does not renew its lease after that commit; in some runs the renewal would succeed.
        monkeypatch.setattr(
            feed.Writer, "maintenance_due", lambda any_writer: any_writer.id != writer and due(any_writer)
        )
        set_renewal(database, writer, 5 * 3600)
        last = threading.Thread(target=touch, args=[sleeper, 2])

        def hold(connection, cursor, statement, parameters, context, executemany):
            if statement.startswith("INSERT INTO provider_changes"):
                recorded.set()
                go_on.wait(PATIENCE)

        sa.event.listen(sleeper.engine, "after_cursor_execute", hold)
        last.start()
        assert recorded.wait(PATIENCE)
        # The commit follows once the other transaction waits for the row of the writer.
        waits = threading.Thread(target=lambda: (wait_for_lock(database), go_on.set()))
        with just_before(database, LOCKED, waits.start):
            touch(database, 3)
        waits.join()
        last.join()
    assert (-writer, 2, 2) in rows(database)
    assert writer not in writers(database)


def test_events_alone_are_recorded_as_a_kind_that_older_releases_know(database):
    """Their workers read the feed during an upgrade, and fail on an unknown kind."""
    with opened(database.url, recorded=True) as recording:
        for name in ("CUSTOM_A", "CUSTOM_B"):
            recording.write(lambda db, name=name: db.note("trait", name, {("name",): (None, name)}))
    recorded = sa.select(provider_changes.c.provider_id, provider_changes.c.what)
    assert {tuple(row) for row in database.read(lambda db: db.execute(recorded).all())} == {(0, "usage")}
    before = feed.stronger_change("usage", "names"), feed.stronger_change("names", "usage")
    assert before == ("names", "names"), "a change that affects searches takes precedence"


def test_an_ended_writer_leaves_the_maintenance_to_others(database, clock, caplog):
    touch(database, 1)
    (writer,) = database.writers.idle
    execute(database, sa.delete(provider_changes))
    execute(database, sa.delete(change_writers))
    seen = []
    with sql_hooks.statements(database.engine, seen.append):
        writer.maintain(database.engine)
    assert [statement.split()[0] for statement in seen if not statement.startswith("BEGIN")] == ["UPDATE"]


def test_a_writer_renews_its_lease(database, clock):
    touch(database, 1)
    long_ago = datetime.datetime(2001, 1, 1)
    execute(database, sa.update(change_writers).values(seen_at=long_ago))
    touch(database, 2)
    seen = database.read(lambda db: db.execute(sa.select(change_writers.c.seen_at)).scalar_one())
    assert seen > long_ago


def test_a_writer_that_was_idle_for_half_its_lease_does_not_write_again(database, clock):
    """Another writer may be ending it.  A writer that keeps writing is never ended."""
    touch(database, 1)
    (old,) = writers(database)
    for _ in range(5):
        clock.now += feed.LIFETIME / 2 - 1
        touch(database)
    assert writers(database) == {old}
    clock.now += feed.LIFETIME / 2
    touch(database, 2)
    assert {(writer == old, provider) for writer, _, provider in rows(database)} == {(True, 1), (False, 2)}


def test_a_writer_does_the_maintenance_once_a_minute(database, monkeypatch):
    monkeypatch.undo()  # the interval of the service
    clock = Clock()
    monkeypatch.setattr(feed, "time", clock)
    maintained = []
    for clock.now in (0, 59, 61, 62, 120, 122):
        seen = []
        with sql_hooks.statements(database.engine, seen.append):
            touch(database, 1)
        maintained.append(any(statement.startswith("UPDATE change_writers") for statement in seen))
    assert maintained == [False, False, True, False, False, True]


def test_a_writer_returns_to_the_pool_if_no_connection_is_available(database_url):
    with opened(database_url) as empty:
        made.sync(empty.engine)
    with opened(database_url, pool_size=1, max_overflow=0, pool_timeout=0) as crowded:
        touch(crowded, 1)
        with crowded.engine.connect(), pytest.raises(errors.DatabaseUnavailable):
            touch(crowded, 2)
        touch(crowded, 3)
        assert len(writers(crowded)) == 1


def test_a_write_whose_writer_was_deleted_uses_a_new_one(database):
    """The process was suspended, and other writers ended its writer."""
    touch(database, 1)
    (old,) = writers(database)
    execute(database, sa.delete(provider_changes))
    execute(database, sa.delete(change_writers))
    attempts = []

    def work(db):
        attempts.append(db)
        db.record_change(2, feed.SHAPE)

    database.write(work)
    (new,) = writers(database)
    assert new != old, "an id is never reused: readers remember the old writer"
    assert len(attempts) == 2
    assert rows(database) == [(new, 1, 2)]
    touch(database, 3)
    assert rows(database) == [(new, 1, 2), (new, 2, 3)]


def test_failed_maintenance_fails_no_write(database, backend, clock, caplog):
    touch(database, 1)
    plan = Plan(at="UPDATE change_writers", faults=faults.collisions(backend.kind)[:1], permanent=True)
    plant(database, plan)
    database.write(lambda db: db.record_change(2, feed.SHAPE))
    assert plan.injected
    assert "maintenance of the change feed failed" in caplog.text
    with opened(database.url) as witness:
        assert [provider for _, _, provider in rows(witness)] == [1, 2]
