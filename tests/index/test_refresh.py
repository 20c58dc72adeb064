"""A refreshed index equals one built from scratch, after any sequence of changes since the last refresh."""

from __future__ import annotations

import contextlib
import datetime
import gc
import random
import threading
import time
from unittest import mock

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement import errors
from placement.db import feed
from placement.db.database import Database
from placement.db.schema.tables import (
    allocations,
    change_writers,
    feed_instance,
    inventories,
    provider_changes,
    resource_providers,
)
from placement.db.writes.transaction import Transaction
from placement.index.refresh import agrees, load_index, refresh_index
from placement.objects.locked_provider import LockedProvider
from placement.objects.resource_class import ResourceClass
from tests.children import PATIENCE
from tests.index import rewind, writes
from tests.index.contents import meaning
from tests.index.reader import Reader
from tests.index.writes import Writer
from tests.made import opened
from tests.strategies import scale

LONG_AGO = datetime.datetime(2001, 1, 1)


def maintain(database: Database, retention: float = feed.RETENTION) -> None:
    """Run the maintenance of all feed writers of a process, with this retention of rows."""
    with mock.patch.object(feed, "RETENTION", retention):
        for writer in list(database.writers.idle):
            database._attempts.maintain(writer)


class Scenario:
    """Three writers and two readers of one database, which run one at a time."""

    def __init__(self, stack: contextlib.ExitStack, url: str, chance: random.Random) -> None:
        self.chance = chance
        self.databases = [stack.enter_context(opened(url)) for _ in range(3)]
        self.writers = [Writer(database, chance) for database in self.databases]
        # The open transaction does not collide with the others, because it writes other providers.
        self.open_writer = Writer(stack.enter_context(opened(url)), chance, "apart ")
        self.single_writer = self.databases[0].url.get_backend_name() == "sqlite"
        self.readers = [Reader(self.databases[0]), Reader(self.databases[1])]
        self.followers = set(self.readers)
        self.saved_state = rewind.save(self.databases[0])

    def write(self) -> None:
        for _ in range(self.chance.randint(1, 6)):
            self.chance.choice(self.writers).write()

    def look(self) -> None:
        reader = self.chance.choice(self.readers)
        reader.look(must_follow=reader in self.followers)
        self.followers.add(reader)

    def leave_open(self) -> None:
        """Leave a transaction open during writes and refreshes of others, then commit it or roll it back."""
        work, end = self.chance.choice(writes.LOCAL)(self.open_writer), self.chance.choice(["commit", "roll back"])
        has_written, may_end = threading.Event(), threading.Event()

        def slowly(db: Transaction) -> None:
            try:
                work(db)
            finally:
                has_written.set()
            may_end.wait(PATIENCE)
            if end == "roll back":
                raise errors.ConsumerGenerationConflict(expected=1, given=2)

        def write() -> None:
            with contextlib.suppress(errors.Failure):
                self.open_writer.database.write(slowly)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert has_written.wait(PATIENCE)
            for _ in range(self.chance.randint(1, 3)):
                if not self.single_writer and self.chance.randrange(2):
                    self.chance.choice(self.writers).write()
                else:
                    self.look()
        finally:
            may_end.set()
            thread.join()

    def prune(self) -> None:
        """Prune the feed: readers that have not refreshed since may be unable to follow it; they read everything."""
        maintain(self.chance.choice(self.databases), -1.0)
        self.followers.clear()

    def forget_writers(self) -> None:
        """End all writers: readers that refreshed just before miss nothing; the others have paused for too long."""
        for reader in self.readers:
            if self.chance.randrange(2):
                reader.look()
                self.followers.add(reader)
            else:
                reader.age(feed.LIFETIME)
                self.followers.discard(reader)
        write_by_hand(self.readers[0], sa.update(change_writers).values(seen_at=LONG_AGO))
        maintain(self.chance.choice(self.databases))

    def save(self) -> None:
        """Save the committed state, like a backup or the disk."""
        self.saved_state = rewind.save(self.chance.choice(self.databases))

    def lose(self) -> None:
        """Lose the commits since the saved state; some writers also lose their connections."""
        rewind.restore(self.databases[0], self.saved_state)
        for database in self.databases:
            if self.chance.randrange(2):
                database.writers.drop_idle()
        self.followers.clear()

    def end(self) -> None:
        for reader in self.readers:
            reader.look(must_follow=reader in self.followers)


STEPS = (
    *(Scenario.write, Scenario.write, Scenario.write, Scenario.look, Scenario.look, Scenario.leave_open),
    *(Scenario.prune, Scenario.forget_writers, Scenario.save, Scenario.lose),
)


@pytest.mark.every_database
@settings(
    max_examples=scale(25),
    suppress_health_check=[*HealthCheck],  # the test itself empties the database
)
@given(chance=st.randoms(use_true_random=False), steps=st.lists(st.sampled_from(STEPS), min_size=3, max_size=12))
def test_a_refreshed_index_equals_one_built_from_scratch(synced_database, chance, steps):
    with contextlib.ExitStack() as stack:
        scenario = Scenario(stack, synced_database.clean(), chance)
        for step in steps:
            step(scenario)
        scenario.end()


@pytest.mark.every_database
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_refreshed_index_equals_one_built_while_threads_write_and_processes_are_killed(database, seed):
    url = database.url.render_as_string(hide_password=False)
    stop = threading.Event()

    def write(seed: int) -> None:
        writer = Writer(database, random.Random(seed))
        while not stop.is_set():
            writer.write()

    reader = Reader(database)
    threads = [threading.Thread(target=write, args=(10 * seed + number,)) for number in range(3)]
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [thread.join() for thread in threads])
        stack.callback(stop.set)
        for thread in threads:
            thread.start()
        for round_ in range(3):
            killed = stack.enter_context(writes.process(url, 100 * seed + round_, 15, then_hold=True))
            other = stack.enter_context(writes.process(url, 200 * seed + round_, 15, then_hold=False))
            for _ in range(10):
                reader.look(must_follow=True)
            killed.wait_until(lambda killed=killed: "holding\n" in killed.log.read_text())
            reader.look(must_follow=True)
            killed.kill()
            while not other.ended:
                time.sleep(0.01)
            assert other.log.read_text().endswith("done\n")
            reader.look(must_follow=True)
    reader.look(must_follow=True)
    assert reader.followed > 30


@pytest.fixture
def reader(database):
    """A reader of a database with three providers, two of them in one tree."""
    for uuid, parent in (("root", None), ("child", "root"), ("other", None)):
        create = {"uuid": uuid, "name": uuid, "parent_uuid": parent}
        database.write(lambda db, create=create: LockedProvider.create(db, **create))
    return Reader(database)


def write_by_hand(reader, *statements):
    """Write without recording the change in the feed."""
    with reader.database.engine.begin() as connection:
        for statement in statements:
            connection.execute(statement)


RENAME = sa.update(resource_providers).where(resource_providers.c.uuid == "other").values(name="by hand")


def rename(reader, name):
    reader.database.write(lambda db: LockedProvider.lock(db, "root").rename(name))


def test_only_providers_named_in_the_feed_are_read_again(reader):
    write_by_hand(reader, RENAME)
    rename(reader, "renamed")
    after = reader.database.snapshot(lambda db: refresh_index(db, reader.indexed)).snapshot
    names = [after.provider(after.by_uuid[uuid]).name for uuid in ("root", "child", "other")]
    assert names == ["renamed", "child", "other"]
    assert after.changes, "everything was read again"


@pytest.mark.parametrize("renamed_first", [True, False])
def test_the_strongest_of_several_changes_of_a_provider_counts(reader, renamed_first):
    root = _id(reader, "root")
    if renamed_first:
        rename(reader, "renamed")
    reader.database.write(lambda db: db.record_change(root, feed.USAGE))
    if not renamed_first:
        rename(reader, "renamed")
    reader.look(must_follow=True)


def test_a_replaced_database_is_read_completely(reader):
    write_by_hand(reader, RENAME, sa.update(feed_instance).values(uuid="another"))
    reader.look()
    assert not reader.followed


def test_a_database_without_identity_is_read_completely_each_time(reader):
    write_by_hand(reader, RENAME, sa.delete(feed_instance))
    reader.look()
    reader.look()
    assert not reader.followed


def test_a_feed_that_was_set_back_is_not_followed(reader):
    rename(reader, "one")
    rename(reader, "two")
    reader.look(must_follow=True)
    newest = sa.select(sa.func.max(provider_changes.c.seq)).scalar_subquery()
    seq = reader.database.read(lambda db: db.execute(sa.select(newest)).scalar())
    # As after a restore from a backup whose state the index has never read.
    write_by_hand(reader, RENAME, sa.delete(provider_changes).where(provider_changes.c.seq == seq))
    reader.look()
    assert reader.followed == 1


@pytest.mark.parametrize("later_writes", [0, 1, 3])
def test_the_index_loses_a_commit_that_the_database_lost(reader, later_writes):
    """The writer of the commit does not notice, and continues with the next number; readers have seen the lost one."""
    rename(reader, "one")
    state = rewind.save(reader.database)
    rename(reader, "lost")
    reader.look(must_follow=True)
    rewind.restore(reader.database, state)
    for number in range(later_writes):
        reader.database.write(lambda db, number=number: LockedProvider.lock(db, "other").rename(f"n{number}"))
    reader.look()
    assert reader.followed == 1
    rename(reader, "two")
    reader.look(must_follow=True)


def test_the_loss_of_a_writers_registration_is_noticed(reader):
    state = rewind.save(reader.database)
    with opened(reader.database.url) as other:
        other.write(lambda db: LockedProvider.lock(db, "root").rename("lost"))
    reader.look(must_follow=True)
    rewind.restore(reader.database, state)
    reader.look()
    assert reader.followed == 1


def expire_writer(reader, writer):
    """Have another writer's maintenance find that this writer's lease has expired, and end the writer."""
    write_by_hand(reader, sa.update(change_writers).where(change_writers.c.id == writer).values(seen_at=LONG_AGO))
    maintain(reader.database)


@pytest.mark.parametrize("writes_again", [True, False])
def test_a_writer_that_was_ended_while_in_use_loses_no_change(reader, writes_again):
    """For example, the database's clock was set forward, or the writer's machine was suspended."""
    with opened(reader.database.url) as sleeper:
        sleeper.write(lambda db: LockedProvider.lock(db, "root").rename("one"))
        reader.look(must_follow=True)
        (writer,) = sleeper.writers.idle
        if writes_again:
            sleeper.write(lambda db: LockedProvider.lock(db, "root").rename("two"))
        expire_writer(reader, writer.id)
        # If the writer has written nothing more, nothing is read again.
        reader.look(must_follow=not writes_again)
        sleeper.write(lambda db: LockedProvider.lock(db, "root").rename("three"))
        reader.look(must_follow=True)
        expire_writer(reader, -writer.id)
        reader.look(must_follow=True)


@pytest.mark.parametrize("existed", [True, False])
def test_the_loss_of_writes_of_ended_writers_is_noticed(reader, existed):
    """A restored backup is older than all writes of a process that has ended since, or than its last writes."""
    with opened(reader.database.url) as other:
        if existed:
            other.write(lambda db: LockedProvider.lock(db, "root").rename("kept"))
        state = rewind.save(reader.database)
        other.write(lambda db: LockedProvider.lock(db, "root").rename("lost"))
        (writer,) = other.writers.idle
    reader.look(must_follow=True)
    expire_writer(reader, writer.id)
    reader.look(must_follow=True)
    rewind.restore(reader.database, state)
    reader.look()
    assert reader.followed == 2


def test_a_writer_ended_before_the_index_has_read_it_is_noticed(reader):
    with opened(reader.database.url) as sleeper:
        sleeper.write(lambda db: LockedProvider.lock(db, "root").rename("one"))
        (writer,) = sleeper.writers.idle
    expire_writer(reader, writer.id)
    reader.look()
    assert reader.followed == 0


def test_a_reader_that_paused_for_too_long_reads_everything(reader):
    write_by_hand(reader, RENAME)
    reader.age(feed.LIFETIME / 4)
    reader.look()
    assert not reader.followed


def test_a_reader_reads_everything_after_the_clock_was_set_back_by_hours(reader):
    write_by_hand(reader, RENAME)
    reader.age(-feed.LIFETIME / 4 - 60)
    reader.look()
    assert not reader.followed


def test_a_reader_that_paused_for_less_than_the_limit_follows_existing_rows(reader):
    reader.age(2 * feed.RETENTION)
    rename(reader, "renamed")
    reader.look(must_follow=True)


def test_a_reader_that_missed_deleted_rows_reads_everything(reader):
    rename(reader, "one")
    rename(reader, "two")
    maintain(reader.database, -1.0)
    reader.look()
    assert not reader.followed
    rename(reader, "three")
    reader.look(must_follow=True)


def test_more_changes_than_the_limit_are_not_returned(reader):
    for name in "abc":
        rename(reader, name)

    def changes(db, max_changes):
        fresh = load_index(db)
        return fresh.position.changes_since(db, reader.indexed.position, max_changes)

    assert reader.database.snapshot(lambda db: changes(db, 0)) is None
    (change,) = reader.database.snapshot(lambda db: changes(db, 1)).items()
    assert change == (reader.indexed.snapshot.provider(reader.indexed.snapshot.by_uuid["root"]).id, feed.SHAPE)
    reader.database.write(lambda db: LockedProvider.lock(db, "other").rename("d"))
    assert reader.database.snapshot(lambda db: changes(db, 1)) is None, "two changes are more than one"
    assert len(reader.database.snapshot(lambda db: changes(db, 2))) == 2


@pytest.mark.every_database
def test_usage_beyond_32_bits_is_compared_in_full(reader):
    """Such usage is the sum of several consumers."""
    place = {"resource_provider_id": _id(reader, "root"), "resource_class_id": 0}
    amounts = dict.fromkeys(("total", "min_unit", "max_unit", "step_size", "allocation_ratio"), 1)
    rows = [{"consumer_id": f"consumer {number}", "used": 2**31 - 1, **place} for number in range(5)]
    write_by_hand(
        reader, sa.insert(inventories).values(reserved=0, **amounts, **place), sa.insert(allocations).values(rows)
    )
    assert reader.database.snapshot(lambda db: agrees(db, load_index(db), 0, 1))


def test_a_new_class_is_known(reader):
    reader.database.write(lambda db: ResourceClass.create(db, "CUSTOM_NEW"))
    reader.look(must_follow=True)
    assert "CUSTOM_NEW" in reader.indexed.snapshot.class_ids


def test_a_small_index_follows_a_hundred_changes(reader):
    def work(db):
        for number in range(100):
            LockedProvider.create(db, uuid=f"new {number}", name=f"new {number}")

    reader.database.write(work)
    reader.look()
    after = reader.indexed.snapshot
    assert len(after) == 103
    assert after.changes, "everything was read again"


def test_a_change_of_an_unknown_provider_causes_no_failure(reader):
    write_by_hand(reader, sa.insert(resource_providers).values(uuid="by hand", name="by hand", generation=3))
    new = _id(reader, "by hand")
    reader.database.write(lambda db: db.record_change(new, feed.USAGE))
    reader.look()
    assert "by hand" in reader.indexed.snapshot.by_uuid


@pytest.mark.parametrize("kind", [feed.USAGE, feed.SHAPE])
def test_a_provider_without_a_generation_causes_no_failure(reader, kind):
    other = _id(reader, "other")
    write_by_hand(reader, sa.update(resource_providers).where(resource_providers.c.id == other).values(generation=None))
    reader.database.write(lambda db: db.record_change(other, kind))
    reader.look(must_follow=True)


def test_a_move_recorded_in_part_causes_no_failure(reader):
    root, child, other = (_id(reader, uuid) for uuid in ("root", "child", "other"))
    move = sa.update(resource_providers).values(root_provider_id=other)
    write_by_hand(
        reader,
        move.where(resource_providers.c.id == root).values(parent_provider_id=other),
        move.where(resource_providers.c.id == child),
    )
    reader.database.write(lambda db: db.record_change(root, feed.SHAPE))
    reader.look()


def test_a_provider_deleted_by_hand_causes_no_failure(reader):
    gone = _id(reader, "other")
    write_by_hand(
        reader,
        sa.update(resource_providers).where(resource_providers.c.id == gone).values(root_provider_id=None),
        sa.delete(resource_providers).where(resource_providers.c.id == gone),
    )
    reader.database.write(lambda db: db.record_change(gone, feed.USAGE))
    reader.look()
    assert "other" not in reader.indexed.snapshot.by_uuid


def _id(reader, uuid):
    statement = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == uuid)
    return reader.database.read(lambda db: db.execute(statement).scalar())


@pytest.mark.parametrize("collecting", [True, False])
def test_loading_restores_the_state_of_the_cycle_collector(reader, collecting):
    """If it stayed off, the reference cycles of all later requests would stay in memory."""
    before = gc.isenabled()
    try:
        gc.enable() if collecting else gc.disable()
        reader.database.snapshot(load_index)
        assert gc.isenabled() is collecting
    finally:
        gc.enable() if before else gc.disable()


def test_a_second_load_equals_the_first(reader):
    assert meaning(reader.indexed.snapshot) == meaning(reader.database.snapshot(load_index).snapshot)
