"""Workers renew the file, and change over to the file of another worker, while searches run."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import datetime
import errno
import itertools
import json
import mmap
import os
import random
import secrets
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema.tables import resource_providers
from placement.db.upkeep import standard
from placement.index import array_file, live
from placement.index.position import MAX_GAP
from placement.index.refresh import Base, load_index
from placement.index.store import IndexStore
from placement.objects.locked_provider import LockedProvider
from tests import children, preloaded
from tests.children import PATIENCE, until
from tests.db.forks import Fork, from_new_process, shared_integer, together
from tests.index import rewind
from tests.index.contents import contents, meaning
from tests.index.machine import check, files, read, recorded_reloads, search, worker
from tests.index.writes import Writer
from tests.made import opened


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "index"


@pytest.fixture(autouse=True)
def looking(monkeypatch):
    """Let each refresh check whether a renewal is due."""
    monkeypatch.setattr(live, "_RENEWAL_INTERVAL", 0)


@pytest.fixture
def renewing(monkeypatch):
    """Make workers renew the arrays after a few changes."""
    monkeypatch.setattr(live, "_MIN_CHANGES", 3)
    monkeypatch.setattr(live, "_PROVIDERS_PER_CHANGE", 10**9)


def renew_soon():
    """As the fixtures do, in a new process."""
    live._RENEWAL_INTERVAL = 0
    live._MIN_CHANGES = 3


def url_of(database):
    return database.url.render_as_string(hide_password=False)


def create(database, *names):
    for name in names:
        database.write(lambda db, name=name: LockedProvider.create(db, uuid=name, name=name))


def inode_of(file):
    """Return the inode of the file, which differs from that of its replacement."""
    return file.stat().st_ino


def instance_of(live_index):
    return live_index._indexed.position.instance


# --- one worker ---


@pytest.mark.every_database
def test_a_worker_renews_the_file_after_changes(database, directory, renewing, reloads):
    create(database, "first")
    index = worker(database, directory)
    before = search(index)
    (file,) = files(directory)
    create(database, "second")
    search(index)
    old = inode_of(file)
    create(database, "third", "fourth", "fifth")
    after = search(index)
    assert inode_of(file) != old
    assert after.changes == 0, "it is based on the new arrays"
    check(index, database)
    check(worker(database, directory), database)
    assert set(before.by_uuid) == {"first"}
    assert reloads == ["start"]
    assert files(directory, "new") == []


def test_a_worker_that_compares_at_each_search_uses_its_renewed_arrays(database, directory, renewing):
    """In a large cloud, a worker with few searches compares a part of the index at each of them."""
    create(database, "first")
    index = worker(database, directory)
    index._verify_interval = 1e-9
    search(index)
    create(database, "second", "third", "fourth", "fifth")
    search(index)
    (file,) = files(directory)
    old = inode_of(file)
    for _ in range(3):
        after = search(index)
        assert inode_of(file) == old
    assert after.changes == 0
    check(index, database)


def test_few_changes_are_no_reason_to_renew(database, directory, renewing):
    create(database, "first")
    index = worker(database, directory)
    index.current()
    (file,) = files(directory)
    old = inode_of(file)
    create(database, "second")
    assert search(index).changes == 2
    assert index._renewal is None
    assert inode_of(file) == old


def test_without_a_directory_the_arrays_are_renewed_in_memory(database, renewing, reloads):
    index, writer = worker(database, None), Writer(database, random.Random(1))
    search(index)
    renewals = set()
    for _ in range(20):
        for _ in range(5):
            writer.write()
        assert search(index).changes <= 3
        renewals.add(index._renewal)
        check(index, database)
    assert len(renewals) > 3
    assert reloads == ["start"]


def test_without_room_at_a_renewal_the_arrays_are_renewed_in_memory(
    database, directory, renewing, reloads, caplog, monkeypatch
):
    create(database, "first")
    index = worker(database, directory)
    search(index)
    (file,) = files(directory)
    old, write = inode_of(file), array_file.write

    def fail(path, arrays, facts):
        write(path, arrays, facts)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(array_file, "write", fail)
    create(database, "second", "third", "fourth", "fifth")
    assert search(index).changes == 0
    check(index, database)
    assert (inode_of(file), files(directory, "new")) == (old, [])
    assert reloads == ["start"]
    assert caplog.text.count("is not used") == 1


def test_if_others_may_write_to_the_directory_the_arrays_are_renewed_in_memory(
    database, directory, renewing, reloads, caplog
):
    create(database, "first")
    index = worker(database, directory)
    search(index)
    (file,) = files(directory)
    old = inode_of(file)
    directory.chmod(0o777)
    create(database, "second", "third", "fourth", "fifth")
    assert search(index).changes == 0
    check(index, database)
    assert inode_of(file) == old
    assert reloads == ["start"]
    assert caplog.text.count("is not used") == 1


@pytest.mark.parametrize(("changed", "limit"), [(True, live._CHANGED_AGE), (False, live._UNCHANGED_AGE)])
def test_a_file_is_renewed_before_it_is_too_old_to_be_followed(database, directory, reloads, changed, limit):
    create(database, "first")
    index = worker(database, directory)
    index.current()
    (file,) = files(directory)
    if changed:
        create(database, "second")
    old = inode_of(file)
    minute = datetime.timedelta(minutes=1)
    for age, is_renewed in ((limit - minute, False), (limit + minute, True)):
        # As if the file had been written this much earlier.
        indexed = index._indexed
        base = dataclasses.replace(indexed.base, at=indexed.position.at - age)
        index._indexed = indexed._replace(base=base)
        search(index)
        assert (inode_of(file) != old) is is_renewed
    age = index._indexed.position.at - index._indexed.base.at
    assert age < minute, "the renewed file begins at the present position"
    assert reloads == ["start"]


def test_a_deleted_file_is_written_again_when_that_is_due(database, directory, renewing, reloads):
    create(database, "first")
    index = worker(database, directory)
    index.current()
    (file,) = files(directory)
    file.unlink()
    check(index, database)
    create(database, "second", "third", "fourth", "fifth")
    search(index)
    check(index, database)
    check(worker(database, directory), database)
    assert reloads == ["start"]
    assert files(directory) == [file]


def test_arrays_newer_than_the_database_are_not_used(database, directory, renewing, reloads):
    """Another worker may have read a newer state from another server, or the database has lost commits since."""
    create(database, "first")
    index = worker(database, directory)
    index.current()
    state = rewind.save(database)
    create(database, "lost")
    with opened(database.url) as other:
        newer = worker(other, directory)
        read(newer)
        index._renewed = IndexStore(directory).load(instance_of(index)), index._readings
    rewind.restore(database, state)
    check(index, database)
    assert set(index.current().by_uuid) == {"first"}


def test_a_renewal_that_began_before_the_database_was_read_is_not_used(database, directory, renewing, monkeypatch):
    """The index differed from the database, which another process had changed without the feed."""
    create(database, "first", "second", "third")
    index = worker(database, directory)
    search(index)
    may_build, build = threading.Event(), Base.build

    def wait_and_build(contents):
        if threading.current_thread() is not threading.main_thread():
            may_build.wait(PATIENCE)
        return build(contents)

    monkeypatch.setattr(Base, "build", wait_and_build)
    with database.engine.begin() as db:
        db.execute(sa.update(resource_providers).where(resource_providers.c.uuid == "first").values(generation=77))
    create(database, "fourth", "fifth")
    # The renewal holds the lock, for which the comparison would wait.
    monkeypatch.setattr(live, "LOCK_TIME_LIMIT", 0)
    index.current()
    index._verify_interval = 1e-9
    check(index, database)
    index._verify_interval = 0
    may_build.set()
    search(index)
    check(index, database)


def test_a_failed_renewal_is_logged_and_not_repeated_at_once(database, directory, renewing, caplog, monkeypatch):
    create(database, "first")
    index = worker(database, directory)
    search(index)
    create(database, "second", "third", "fourth", "fifth")
    monkeypatch.setattr(array_file, "write", lambda *_: 1 / 0)
    for _ in range(3):
        search(index)
    check(index, database)
    assert caplog.text.count("ZeroDivisionError") == 1


def test_a_search_succeeds_if_no_thread_can_be_started(database, directory, renewing, caplog, monkeypatch):
    create(database, "first")
    index = worker(database, directory)
    search(index)
    create(database, "second", "third", "fourth", "fifth")

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limit:
        limit.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            check(index, database)
    assert caplog.text.count("can't start new thread") == 1


def test_counts_of_consumers_keep_no_old_file(database, directory, renewing):
    """Otherwise the memory of the old file would not be freed."""
    create(database, "first")
    index = worker(database, directory)
    index.consumers.counts_of(search(index))
    create(database, "second", "third", "fourth", "fifth")
    search(index)
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(directory) in line]
    assert [line for line in mapped if line.endswith("(deleted)")] == []
    assert mapped


def test_counts_of_consumers_keep_no_file_of_a_database_that_was_replaced(database, directory):
    create(database, "first")
    index = worker(database, directory)
    index.consumers.counts_of(index.current())
    old = files(directory)
    standard.renew(database)
    index.current()
    (file,) = {*files(directory)} - {*old}
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if str(directory) in line}
    assert mapped == {str(file)}


def test_arrays_in_memory_are_not_renewed_because_of_their_age(database):
    """Only a file can become too old for the feed."""
    create(database, "first")
    index = worker(database, None)
    index.current()
    indexed = index._indexed
    base = dataclasses.replace(indexed.base, at=indexed.position.at - MAX_GAP)
    index._indexed = indexed._replace(base=base)
    search(index)
    assert index._renewal is None


def test_a_large_cloud_is_renewed_after_more_changes(database, directory, renewing, monkeypatch):
    monkeypatch.setattr(live, "_PROVIDERS_PER_CHANGE", 1)
    create(database, *(f"host {number}" for number in range(10)))
    index = worker(database, directory)
    index.current()
    create(database, "second", "third")
    assert search(index).changes == 4
    create(database, *(f"new {number}" for number in range(20)))
    assert search(index).changes == 0


def test_a_worker_checks_at_intervals_whether_a_renewal_is_due(database, directory, renewing, monkeypatch):
    monkeypatch.setattr(live, "_RENEWAL_INTERVAL", 3600)
    create(database, "first")
    index = worker(database, directory)
    index.current()
    create(database, "second", "third", "fourth")
    assert search(index).changes == 6
    index._next_renewal = 0
    assert search(index).changes == 0


def test_a_snapshot_is_in_the_memory_of_the_file(database, directory, renewing):
    """After a load, a start with the file, and a renewal: otherwise each worker has a copy."""
    create(database, "first")
    index = worker(database, directory)
    assert is_mapped(index.current())
    assert is_mapped(worker(database, directory).current())
    create(database, "second", "third", "fourth")
    assert is_mapped(search(index))


def is_mapped(snapshot):
    """Whether an array that no write has changed is mapped from a file."""
    array = snapshot.forest.alive
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array.base, mmap.mmap)


# --- several workers ---


@pytest.mark.every_database
def test_a_worker_changes_over_to_the_file_of_another(database, directory, renewing, reloads):
    create(database, "first")
    with opened(database.url) as other:
        renewing_index, following_index = worker(database, directory), worker(other, directory)
        renewing_index.current()
        before = following_index.current()
        before_contents = copy.deepcopy(contents(before))
        create(database, "second", "third", "fourth")
        renewed = search(renewing_index)
        create(database, "fifth")
        after = search(following_index)
        assert after.changes == 2, "only what has changed since the file"
        check(following_index, database)
        assert contents(before) == before_contents
        assert renewed.changes == 0
        assert following_index._indexed.base == renewing_index._indexed.base
    assert reloads == ["start"]


def test_a_worker_changes_over_although_it_has_few_changes(database, directory, renewing, reloads):
    """Otherwise the memory of the replaced file remains in use."""
    create(database, "first")
    with opened(database.url) as other:
        index, renewing_index = worker(database, directory), worker(other, directory)
        index.current()
        create(database, "second")
        renewing_index.current()
        renewing_index._run_renewal(renewing_index._indexed, renewing_index._readings)
        assert search(index).changes == 0
        check(index, database)
    assert reloads == ["start"]


def test_a_file_that_another_worker_is_renewing_is_not_renewed_twice(database, directory, renewing, reloads):
    create(database, "first")
    index, other = worker(database, directory), IndexStore(directory)
    index.current()
    (file,) = files(directory)
    old = inode_of(file)
    with other.lock(instance_of(index), 0) as is_locked:
        assert is_locked
        create(database, "second", "third", "fourth", "fifth")
        search(index)
        assert inode_of(file) == old
        check(index, database)
    search(index)
    assert inode_of(file) != old
    check(index, database)


@pytest.mark.every_database
@pytest.mark.parametrize("seed", [1, 2])
def test_renewals_during_random_writes_and_searches_change_no_contents(database, directory, renewing, reloads, seed):
    """Earlier snapshots keep their contents, after their files were replaced and deleted."""
    create(database, "first")
    kept, numbers = [], set()
    with opened(database.url) as other:
        indexes = [worker(database, directory), worker(other, directory)]
        writers = [Writer(database, random.Random(seed), "a "), Writer(other, random.Random(seed + 10), "b ")]
        with searching(indexes * 2):
            for round_ in range(8):
                for writer in writers * 6:
                    writer.write()
                for index in indexes:
                    snapshot = search(index)
                    kept.append((snapshot, copy.deepcopy(contents(snapshot))))
                    check(index, database)
                numbers.update(map(inode_of, files(directory)))
                if round_ == 5:
                    for file in files(directory):
                        file.unlink()
        check(worker(database, directory), database)
    for snapshot, expected in kept:
        assert contents(snapshot) == expected
    assert len(numbers) > 1, "the file was renewed"
    assert set(reloads) == {"start"}


@contextlib.contextmanager
def searching(indexes):
    """Read one snapshot after another from each index, in a thread for each, while the block runs."""
    stop = threading.Event()

    def read_on(index):
        while not stop.is_set():
            snapshot = index.current()
            assert len(meaning(snapshot)["providers"]) == len(snapshot)

    with ThreadPoolExecutor(len(indexes)) as threads:
        results = [threads.submit(read_on, index) for index in indexes]
        try:
            yield
        finally:
            stop.set()
        for result in results:
            result.result(PATIENCE)


# --- processes that begin at the same time ---


def first_search(wait, url, directory):
    """Search once all processes begin; return the reasons of reloads, and whether the contents are right."""
    live.LOCK_TIME_LIMIT = PATIENCE
    with opened(url) as database, recorded_reloads() as reloads:
        index = worker(database, Path(directory))
        wait()
        return reloads, meaning(index.current()) == meaning(database.snapshot(load_index).snapshot)


def begin_together(url, directory):
    return together(4, first_search, url, directory)


@pytest.mark.every_database
def test_one_process_reads_the_database_for_all_that_begin_at_once(database, directory):
    writer = Writer(database, random.Random(1))
    create(database, "first")
    for _ in range(20):
        writer.write()
    outcomes = from_new_process(begin_together, url_of(database), str(directory))
    assert sorted(reloads for reloads, _ in outcomes) == [[], [], [], ["start"]]
    assert all(is_right for _, is_right in outcomes)


def hold_lock(directory, instance, is_held):
    """Hold the lock until the process is killed."""
    with IndexStore(Path(directory)).lock(instance, 0) as is_locked:
        is_held.value = is_locked
        time.sleep(2 * PATIENCE)


def is_waiting(thread):
    """Whether the thread waits for the lock of a file."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code.co_name != "_try_lock":
        frame = frame.f_back
    return frame is not None


def search_beside_a_killed_reader(url, directory):
    """Begin to search while another process holds the lock, and kill that process."""
    with opened(url) as database:
        instance = database.snapshot(load_index).position.instance
    is_held = shared_integer()
    holder = Fork(hold_lock, directory, instance, is_held)
    until(lambda: is_held.value or holder.check())
    with opened(url) as database, recorded_reloads() as reloads:
        index = worker(database, Path(directory))
        thread = threading.Thread(target=index.current)
        thread.start()
        until(lambda: is_waiting(thread))
        waited = list(reloads)
        holder.kill()
        thread.join(PATIENCE)
        check(index, database)
        check(worker(database, Path(directory)), database)
        return waited, reloads


def test_a_worker_reads_the_database_if_the_one_it_waits_for_is_killed(database, directory):
    create(database, "first")
    waited, reloads = from_new_process(search_beside_a_killed_reader, url_of(database), str(directory))
    assert waited == []
    assert reloads == ["start"]


def test_a_worker_that_waits_for_another_does_not_count_as_stalled(database, directory, monkeypatch):
    """Otherwise it would refuse requests, although the database answers."""
    monkeypatch.setattr(live, "LOCK_TIME_LIMIT", 10 * PATIENCE)
    create(database, "first")
    instance = database.snapshot(load_index).position.instance
    database.bulkhead = Bulkhead(1)
    thread = threading.Thread(target=worker(database, directory).current)
    with IndexStore(directory).lock(instance, 0) as is_locked:
        assert is_locked
        thread.start()
        until(lambda: is_waiting(thread))
        (noted,) = database.bulkhead._admitted.values()
        until(lambda: [*database.bulkhead._admitted.values()] > [noted])
    thread.join(PATIENCE)


def test_a_worker_does_not_wait_for_ever(database, directory, reloads, monkeypatch):
    monkeypatch.setattr(live, "LOCK_TIME_LIMIT", 0.01)
    create(database, "first")
    instance = database.snapshot(load_index).position.instance
    with IndexStore(directory).lock(instance, 0) as is_locked:
        assert is_locked
        check(worker(database, directory), database)
    assert reloads == ["start"]


# --- forks ---


def fork():
    """Fork as uWSGI does: without Python's hooks."""
    return ctypes.PyDLL(None).fork()


def exit_code_of_child(work):
    """Run the work in a forked child, and return 0 if it returns a true value."""
    child = fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fork_with_a_mapping(url, directory):
    """Return the exit codes of forked children that search, also after the file was replaced and deleted."""
    renew_soon()
    with opened(url) as database:
        create(database, "first")
        index = worker(database, Path(directory))
        index.current()
        codes = [exit_code_of_child(lambda: set(index.current().by_uuid) == {"first"})]
        create(database, "second")
        codes.append(exit_code_of_child(lambda: set(index.current().by_uuid) == {"first", "second"}))
        create(database, "third", "fourth", "fifth")
        codes.append(exit_code_of_child(lambda: search(index).changes == 0))
        for file in files(Path(directory)):
            file.unlink()
        codes.append(exit_code_of_child(lambda: len(index.current()) == 5 and len(contents(index.current()))))
        search(index)  # no renewal continues at the end of the process
        check(index, database)
        return codes


def test_forked_children_use_the_mapping_of_their_parent(database, directory):
    assert from_new_process(fork_with_a_mapping, url_of(database), str(directory)) == [0, 0, 0, 0]


def fork_during_a_renewal(url, directory):
    """Fork while a thread renews the file; return whether the lock is free then, and the exit code of the child."""
    renew_soon()
    with opened(url) as database:
        create(database, "first")
        index = worker(database, Path(directory))
        index.current()
        begun, may_end = threading.Event(), threading.Event()
        save = index._store.save

        def slow(base):
            begun.set()
            may_end.wait(PATIENCE)
            return save(base)

        index._store.save = slow
        create(database, "second", "third", "fourth", "fifth")
        index.current()
        assert begun.wait(PATIENCE)
        index._store.save = save
        reading, writing = os.pipe()
        child = fork()
        if child == 0:
            os.read(reading, 1)  # until the parent has renewed the file
            create(database, "sixth", "seventh", "eighth", "ninth")
            index.current()
            until(lambda: index.current().changes == 0)
            os._exit(0)
        try:
            may_end.set()
            index._renewal.join(PATIENCE)
            with IndexStore(Path(directory)).lock(instance_of(index), 0) as is_locked:
                pass
            os.write(writing, b".")
            return is_locked, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def test_a_child_forked_during_a_renewal_does_not_keep_the_lock_and_renews_later(database, directory):
    assert from_new_process(fork_during_a_renewal, url_of(database), str(directory)) == [True, 0]


# --- kill -9 ---


def renew_in_a_loop(url, directory, seed):
    """Renew the file again and again, and print a line for each renewal."""
    with opened(url) as database:
        index, writer = worker(database, Path(directory)), Writer(database, random.Random(seed), "other ")
        for number in itertools.count():
            if number % 10 == 0:
                writer.write()
            index.current()
            index._run_renewal(index._indexed, index._readings)
            sys.stdout.write(".\n")
            sys.stdout.flush()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_worker_killed_while_it_writes_the_file_leaves_nothing_that_is_read(
    database, directory, reloads, caplog, seed
):
    caplog.set_level("INFO")
    create(database, "first", "second", "third")
    chance = random.Random(seed)
    worker(database, directory).current()
    for number in range(15):
        arguments = json.dumps([url_of(database), str(directory), seed + number])
        command = [sys.executable, "-m", "tests.db.forks", __name__, renew_in_a_loop.__name__, arguments]
        log = children.run_directory() / f"renewals-{secrets.token_hex(4)}"
        child = children.Child(command, log, begin=preloaded.service().popen)
        try:
            lines = chance.randrange(1, 30)
            child.wait_until(lambda lines=lines, log=log: log.read_text().count("\n") >= lines)
            time.sleep(chance.random() / 200)
        finally:
            child.kill()
        check(worker(database, directory), database)
    assert reloads == ["start"], "each worker began with the file"
    assert "is not used" not in caplog.text
    read(worker(database, directory))
    assert {path.suffix for path in directory.iterdir()} == {".index", ".lock"}


def test_a_worker_that_finds_a_difference_replaces_the_file_for_all(database, directory, reloads):
    """Another process has changed the database without the feed."""
    create(database, "first")
    with opened(database.url) as other:
        index, other_index = worker(database, directory), worker(other, directory)
        index.current()
        search(other_index)
        with database.engine.begin() as db:
            db.execute(sa.update(resource_providers).values(generation=77))
        index._verify_interval = 1e-9
        check(index, database)
        search(other_index)
        check(other_index, database)
        check(worker(other, directory), database)
    assert reloads == ["start", "differs"]
