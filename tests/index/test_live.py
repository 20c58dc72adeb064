"""A live index returns the state at the time of the call, whichever process wrote it and however many threads read."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import datetime
import linecache
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db import feed
from placement.db.engine import bulkhead
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema.tables import allocations, change_writers, feed_instance, provider_changes, resource_providers
from placement.db.upkeep import standard
from placement.index import live
from placement.index.live import LiveIndex
from placement.index.refresh import Base, load_index
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import made, preloaded
from tests.children import PATIENCE, until
from tests.clock import Clock, WatchedClock
from tests.db import faults, sql_hooks
from tests.db.faults import Plan, plant
from tests.index.contents import meaning
from tests.index.writes import Writer
from tests.made import opened

pytestmark = pytest.mark.every_database


def url_of(database):
    return database.url.render_as_string(hide_password=False)


def create(database, uuid, **stock):
    """Create a provider of generation 1 with this inventory."""

    def work(db):
        provider = LockedProvider.create(db, uuid=uuid, name=uuid)
        provider.replace_inventories([Inventory(name, total) for name, total in stock.items()])
        return provider.record

    return database.write(work)


def uuids(snapshot):
    return set(snapshot.by_uuid)


def generation_and_usage(snapshot, uuid):
    """Return the generation and the VCPU usage of a provider."""
    slot = snapshot.by_uuid[uuid]
    return snapshot.generations.item(slot), int(snapshot.column("VCPU").amounts(slot).used)


def test_a_database_that_answers_each_statement_of_a_long_load_is_not_stalled(database, monkeypatch):
    """A concurrent claim waits, and is not refused."""
    timeout = 0.05  # seconds; the waiting thread reads the clock once in this time
    clock = WatchedClock()
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", timeout)
    monkeypatch.setattr(bulkhead, "time", clock)
    database.bulkhead = Bulkhead(1)

    def slow(*_):
        if not clock.is_watched_here():
            clock.advance(timeout / 5)

    def slowly(step):
        def work(*arguments):
            clock.advance(0.7 * timeout)
            return step(*arguments)

        return work

    sa.event.listen(database.reading_engine, "before_cursor_execute", slow)
    monkeypatch.setattr(Base, "build", slowly(Base.build))
    monkeypatch.setattr(Base, "to_index", slowly(Base.to_index))
    with ThreadPoolExecutor() as threads:
        loading = threads.submit(LiveIndex(database).current)
        clock.wait_for_step()
        clock.watch()
        try:
            create(database, "beside", VCPU=1)
        finally:
            clock.end()
        assert loading.result(PATIENCE) is not None
    assert clock.now > timeout, "all statements together took longer than a stalled thread may"


def test_read_your_writes_through_any_process(database):
    """Threads claim through one database, and read the live indexes of two others, which they share."""
    stale_reads, claims = [], 15
    with opened(url_of(database)) as first, opened(url_of(database)) as second:
        live_indexes = [LiveIndex(first), LiveIndex(second)]

        def claim_and_read(name):
            create(database, name, VCPU=1000)
            owner = Owner("project", "user")
            for number in range(1, claims + 1):
                claim = Claim(f"{name} {number}", {name: {"VCPU": 1}}, owner)
                database.write(lambda db, claim=claim: ClaimSet(db, [claim]).place())
                for live_index in live_indexes:
                    if generation_and_usage(live_index.current(), name) != (number + 1, number):
                        stale_reads.append((name, number))

        threads = [threading.Thread(target=claim_and_read, args=(f"p{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not stale_reads
        assert all(
            generation_and_usage(live_index.current(), "p3") == (claims + 1, claims) for live_index in live_indexes
        )


@contextlib.contextmanager
def block_first_reader(database):
    """Block the first thread after it has read the feed until the test lets it continue; record the reading threads."""
    readers, has_read, may_continue = [], threading.Event(), threading.Event()

    def after(connection, cursor, statement, parameters, context, executemany):
        if "change_writers" in statement:
            readers.append(threading.get_ident())
            if len(readers) == 1:
                has_read.set()
                may_continue.wait(PATIENCE)

    sa.event.listen(database.reading_engine, "after_cursor_execute", after)
    try:
        yield readers, has_read, may_continue
    finally:
        may_continue.set()
        sa.event.remove(database.reading_engine, "after_cursor_execute", after)


def waits(thread):
    """Whether the thread waits for the lock of a live index: its frame is on the line that acquires the lock."""
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and ", self._lock:" in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def test_a_refresh_serves_only_calls_made_before_it_began(database):
    results = []
    with opened(url_of(database)) as reading, contextlib.ExitStack() as stack:
        live_index = LiveIndex(reading)
        live_index.current()
        readers, has_read, may_continue = stack.enter_context(block_first_reader(reading))
        early = threading.Thread(target=live_index.current)
        early.start()
        assert has_read.wait(PATIENCE)
        # Too late for the running refresh.
        create(database, "new", VCPU=1)
        late = [threading.Thread(target=lambda: results.append(uuids(live_index.current()))) for _ in range(5)]
        for thread in late:
            thread.start()
        until(lambda: all(map(waits, late)))
        may_continue.set()
        for thread in [early, *late]:
            thread.join()
    assert results == [{"new"}] * 5
    # One refresh serves all late threads: it reads the feed twice, before the snapshot and in it.
    assert len(readers) == 3
    assert len(set(readers)) == 2


def test_a_failed_refresh_fails_for_all_calls_that_waited_for_it(database):
    """The earlier snapshot may lack their own writes."""
    outcomes = []

    def look():
        try:
            outcomes.append(live_index.current())
        except errors.DatabaseUnavailable:
            outcomes.append(None)

    with opened(url_of(database)) as reading, contextlib.ExitStack() as stack:
        live_index = LiveIndex(reading)
        before = live_index.current()
        _, has_read, may_continue = stack.enter_context(block_first_reader(reading))
        early = threading.Thread(target=look)
        early.start()
        assert has_read.wait(PATIENCE)
        late = [threading.Thread(target=look) for _ in range(4)]
        for thread in late:
            thread.start()
        until(lambda: all(map(waits, late)))
        plan = Plan(at=1, faults=[faults.lose], permanent=True)
        plant(reading, plan)
        may_continue.set()
        for thread in [early, *late]:
            thread.join()
    assert outcomes.count(before) == 1, "the first thread had read the database already"
    assert plan.injected == 2, "one thread tried for all, twice because it lost its connection"
    assert outcomes.count(None) == 4


def test_the_refresh_after_a_failed_one_is_like_any_other(database):
    live_index, plan = LiveIndex(database), Plan(at=1, faults=[faults.lose], permanent=True)
    live_index.current()
    plant(database, plan)
    with pytest.raises(errors.DatabaseUnavailable):
        live_index.current()
    plan.permanent = False
    create(database, "new", VCPU=1)
    assert uuids(live_index.current()) == {"new"}


def test_an_unchanged_database_costs_one_statement(database):
    create(database, "host", VCPU=1)
    live_index, statements = LiveIndex(database), []
    first = live_index.current()
    with sql_hooks.statements(database.reading_engine, statements.append):
        assert live_index.current() is first
    assert len(statements) == 1
    create(database, "another", VCPU=1)
    # After a refresh with changes, the next one does not check first whether there are any.  The second one had none.
    busy = live_index.current()
    assert live_index.current() is busy
    statements.clear()
    with sql_hooks.statements(database.reading_engine, statements.append):
        assert live_index.current() is busy
    assert len(statements) == 1


def test_after_a_refresh_with_changes_the_next_one_skips_the_check(database):
    live_index, numbers = LiveIndex(database), []
    live_index.current()
    for name in ("first", "second"):
        create(database, name, VCPU=1)
        statements = []
        with sql_hooks.statements(database.reading_engine, statements.append):
            live_index.current()
        numbers.append(len(statements))
    assert numbers[1] == numbers[0] - 1


def test_a_recent_snapshot_is_refreshed_once_it_is_too_old(database, clock):
    create(database, "host", VCPU=1)
    live_index, statements = LiveIndex(database), []
    first = live_index.recent(1)
    assert uuids(first) == {"host"}
    create(database, "another", VCPU=1)
    clock.now += 1
    with sql_hooks.statements(database.reading_engine, statements.append):
        assert live_index.recent(1) is first
    assert statements == []
    clock.now += 0.5
    fresh = live_index.recent(1)
    assert uuids(fresh) == {"host", "another"}
    clock.now += 1
    assert live_index.recent(1) is fresh


def test_the_age_of_a_snapshot_counts_from_the_start_of_its_refresh(database, clock):
    def slow(_):
        clock.now += 2

    live_index = LiveIndex(database)
    with sql_hooks.statements(database.reading_engine, slow):
        assert uuids(live_index.current()) == set()
    create(database, "new", VCPU=1)
    assert uuids(live_index.recent(1)) == {"new"}


def test_sums_are_published_when_they_may_have_changed(database):
    live_index, published = LiveIndex(database), []

    def listener(totals):
        published.append(totals["VCPU"])

    signals.amounts_changed.connect(listener)
    try:
        for name in ("first", "second"):
            create(database, name, VCPU=4)
            for _ in range(2):
                live_index.current()
    finally:
        signals.amounts_changed.disconnect(listener)
    assert published == [(4, 0, 0), (8, 0, 0)]


def test_a_refresh_publishes_the_number_of_missed_transactions(database):
    live_index, published = LiveIndex(database), []

    def listener(_seconds, missed, providers):
        published.append((missed, providers))

    signals.refreshed.connect(listener)
    try:
        for number in (1, 2, 0):
            for name in range(number):
                create(database, f"{number} {name}", VCPU=4)
            live_index.current()
    finally:
        signals.refreshed.disconnect(listener)
    assert published == [(0, 1), (2, 3), (0, 3)]


def test_threads_that_write_and_read_at_random_end_with_the_database_state(database):
    live_index = LiveIndex(database)

    def work(seed):
        writer = Writer(database, random.Random(seed))
        for _ in range(30):
            writer.write()
            live_index.current()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meaning(live_index.current()) == meaning(database.snapshot(load_index).snapshot)


def test_an_in_memory_database_is_indexed_too():
    with opened("sqlite://") as database:
        made.sync(database.engine)
        standard.insert(database)
        live_index = LiveIndex(database, 1)
        assert len(live_index.current()) == 0
        for number in range(3):
            create(database, f"host{number}", VCPU=number + 1)
            assert len(live_index.current()) == number + 1
        database.write(lambda db: LockedProvider.lock(db, "host1").delete())
        assert uuids(live_index.current()) == {"host0", "host2"}


# --- writes that the feed does not record ---


@pytest.fixture
def clock(monkeypatch):
    """The clock of all live indexes."""
    clock = Clock()
    monkeypatch.setattr(live, "time", clock)
    return clock


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_search_during_a_restore_in_one_transaction_sees_no_empty_database(database):
    """A snapshot that began before the transaction waits for its locks, and then sees no rows at all."""
    create(database, "a")
    index = LiveIndex(database)
    index.current()
    create(database, "b")
    index.current()
    assert index._found_changes, "the next refresh begins with its snapshot"
    tables = [table.name for table in (feed_instance, change_writers, provider_changes, resource_providers)]
    with ThreadPoolExecutor(1) as pool, database.engine.connect() as restoring:
        for table in tables:
            restoring.exec_driver_sql(f"CREATE TEMPORARY TABLE copy_of_{table} AS TABLE {table}")
        restoring.exec_driver_sql(f"TRUNCATE {', '.join(tables)} CASCADE")
        for table in tables:
            restoring.exec_driver_sql(f"INSERT INTO {table} SELECT * FROM copy_of_{table}")
        search = pool.submit(index.current)
        # The server has the databases of other tests, too.
        waiting = (
            "SELECT 1 FROM pg_locks WHERE NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        while not search.done() and not restoring.exec_driver_sql(waiting).all():
            time.sleep(0.01)
        assert not search.done(), "the search has to wait"
        restoring.commit()
        assert uuids(search.result()) == {"a", "b"}


def write_by_hand(database, statement):
    with database.engine.begin() as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        sa.update(resource_providers).values(generation=resource_providers.c.generation + 1),
        sa.insert(resource_providers).values(uuid="new", name="new", generation=0),
        sa.update(resource_providers).where(resource_providers.c.uuid == "two").values(id=10**6, root_provider_id=None),
    ],
    ids=["a generation advanced", "a provider was created", "a provider was replaced"],
)
def test_the_next_verification_finds_foreign_writes(database, caplog, clock, statement):
    for uuid in ("one", "two"):
        create(database, uuid, VCPU=1)
    write_by_hand(database, sa.update(resource_providers).values(root_provider_id=None))
    live_index, blind = LiveIndex(database, 60), LiveIndex(database)
    before = meaning(live_index.current())
    blind.current()
    write_by_hand(database, statement)
    clock.now = 61
    assert meaning(live_index.current()) == meaning(database.snapshot(load_index).snapshot) != before
    assert [record.levelname for record in caplog.records if "differs" in record.message] == ["ERROR"]
    assert meaning(blind.current()) == before, "it does not verify"


def test_a_database_with_another_identity_is_read_again(database):
    """An operator renews the identity after a write to the database without the feed."""
    create(database, "one", VCPU=1)
    live_index = LiveIndex(database)
    live_index.current()
    write_by_hand(database, sa.insert(resource_providers).values(uuid="two", name="two", generation=0))
    assert uuids(live_index.current()) == {"one"}
    standard.renew(database)
    assert uuids(live_index.current()) == {"one", "two"}


USED = (allocations.c.used == 3) | (allocations.c.used == 5)


@pytest.mark.parametrize(
    "statement",
    [
        sa.delete(allocations).where(allocations.c.used == 3),
        sa.update(allocations).where(allocations.c.used == 3).values(used=4),
        sa.update(allocations).where(USED).values(used=8 - allocations.c.used),
        sa.update(allocations).where(USED).values(resource_class_id=1 - allocations.c.resource_class_id),
    ],
    ids=["released", "another amount", "exchanged between providers", "exchanged between classes"],
)
def test_the_next_verification_finds_usage_missing_from_the_feed(database, caplog, clock, statement):
    """Such a write advances no generation."""
    owner = Owner("project", "user")
    for name, resource_class, amount in (("one", "VCPU", 3), ("two", "VCPU", 5)):
        create(database, name, VCPU=100, MEMORY_MB=100)
        claim = Claim(name, {name: {resource_class: amount}}, owner)
        database.write(lambda db, claim=claim: ClaimSet(db, [claim]).place())
    live_index = LiveIndex(database, 60)
    before = meaning(live_index.current())
    write_by_hand(database, statement)
    clock.now = 61
    assert meaning(live_index.current()) == meaning(database.snapshot(load_index).snapshot) != before
    assert "differs" in caplog.text


def test_a_large_index_is_compared_in_sections_within_the_interval(database, caplog, clock, monkeypatch):
    monkeypatch.setattr(live, "SECTION", 2)
    names = [f"p{number}" for number in range(7)]
    for name in names:
        create(database, name, VCPU=1)
    live_index = LiveIndex(database, 60)
    live_index.current()
    for turn, name in enumerate([*names, *names]):
        advance = sa.update(resource_providers).values(generation=turn + 9)
        write_by_hand(database, advance.where(resource_providers.c.uuid == name))
        quarters = 0
        while generation_and_usage(live_index.current(), name)[0] != turn + 9 and quarters < 5:
            clock.now, quarters = clock.now + 16, quarters + 1
        assert quarters <= 4, "a quarter of the interval each"
    assert caplog.text.count("differs") == 14
    caplog.clear()
    for _ in range(8):
        clock.now += 16
        live_index.current()
    assert "differs" not in caplog.text


def test_verification_accepts_ordinary_writes(database, caplog):
    live_index, writer = LiveIndex(database, 1e-9), Writer(database, random.Random(3))
    live_index.current()
    for _ in range(40):
        writer.write()
        live_index.current()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(live_index.current()) > 0


def test_verification_runs_once_per_interval(database, clock):
    live_index, verifications = LiveIndex(database, 3600), []
    live_index.current()
    for clock.now in (3599, 3601, 3602, 7200, 7202):
        statements = []
        with sql_hooks.statements(database.reading_engine, statements.append):
            live_index.current()
        verifications.append(any("resource_providers" in statement for statement in statements))
    assert verifications == [False, True, False, False, True]


def test_a_rarely_used_index_follows_a_feed_without_changes(database):
    create(database, "quiet", VCPU=1)
    live_index = LiveIndex(database)
    before = live_index.current()
    for _ in range(3):
        # As if the index had been idle for almost as long as it can follow the feed.
        position = live_index._indexed.position
        at = position.at - datetime.timedelta(seconds=feed.LIFETIME / 4 - 60)
        live_index._indexed = live_index._indexed._replace(position=dataclasses.replace(position, at=at))
        assert live_index.current() is before


# --- forks and failures ---


def fork_and_read(url):
    """Exit with 0 if a forked child can read the index while a thread of its parent refreshes it."""
    with opened(url) as database:
        live_index = LiveIndex(database)
        live_index.current()
        with block_first_reader(database) as (_, has_read, _):
            threading.Thread(target=live_index.current, daemon=True).start()
            assert has_read.wait(PATIENCE)
            create(database, "new", VCPU=1)
            # As uWSGI forks: without Python's hooks.
            child = ctypes.CDLL(None).fork()
            if child == 0:
                os._exit(0 if uuids(live_index.current()) == {"new"} else 1)
            _, status = os.waitpid(child, 0)
            sys.exit(os.waitstatus_to_exitcode(status))


def test_a_forked_child_does_not_wait_for_a_refresh_of_its_parent(database):
    result = preloaded.service().run([sys.executable, "-m", "tests.index.test_live", url_of(database)])
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("private_server", ["mariadb", "postgresql"], indirect=True)
def test_a_database_that_was_down_is_followed_again(private_server):
    with opened(private_server.create_database()) as database:
        made.sync(database.engine)
        standard.insert(database)
        live_index = LiveIndex(database)
        create(database, "before", VCPU=1)
        live_index.current()
        private_server.kill()
        outcomes = []

        def look():
            with contextlib.suppress(errors.DatabaseUnavailable):
                outcomes.append(live_index.current())

        threads = [threading.Thread(target=look) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not outcomes
        private_server.start()
        create(database, "after", VCPU=1)
        after = live_index.current()
        assert uuids(after) == {"before", "after"}
        assert after.changes, "everything was read again"


if __name__ == "__main__":
    fork_and_read(sys.argv[1])
