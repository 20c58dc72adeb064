"""A worker begins with the file of its host, and ignores a file or a directory that cannot be used."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import logging
import os
import random
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import feed_instance
from placement.db.upkeep import standard
from placement.index import array_file, store
from placement.index.position import MAX_GAP
from placement.index.refresh import Base, Contents, load_index
from placement.index.store import LAYOUT, IndexStore
from placement.objects.locked_provider import LockedProvider
from tests import children, servers, web_servers
from tests.children import PATIENCE
from tests.db.forks import from_new_process
from tests.index import rewind
from tests.index.contents import contents
from tests.index.machine import check, files, read, recorded_reloads, worker
from tests.index.test_refresh import maintain
from tests.index.writes import Writer
from tests.made import opened


@pytest.fixture
def directory(tmp_path):
    """A directory that does not exist yet."""
    return tmp_path / "machine" / "index"


@pytest.fixture
def writer(database):
    """A writer of a database with several providers and claims."""
    writer = Writer(database, random.Random(7))
    for _ in range(60):
        writer.write()
    return writer


@pytest.fixture
def file(database, writer, directory, reloads):
    """The file of the database, which a worker has written."""
    worker(database, directory).current()
    (file,) = files(directory)
    reloads.clear()
    return file


@pytest.fixture
def log(caplog):
    """A function that returns the lines about files and directories that are not used."""
    caplog.set_level(logging.INFO)
    return lambda: [record.getMessage() for record in caplog.records if "is not used" in record.message]


def write(writer, number=10):
    for _ in range(number):
        writer.write()


# --- a file that can be used ---


@pytest.mark.every_database
def test_a_worker_begins_with_the_file(database, writer, directory, reloads, log):
    first = worker(database, directory)
    first.current()
    assert reloads == ["start"]
    with opened(database.url) as other:
        second = worker(other, directory)
        assert contents(second.current()) == contents(first.current())
        check(second, database)
    assert reloads == ["start"], "the second worker read the database"
    assert log() == []


@pytest.mark.every_database
def test_a_worker_that_begins_with_the_file_sees_all_later_writes(database, file, writer, reloads):
    with opened(database.url) as other:
        write(writer)
        write(Writer(other, random.Random(2), "later "), 30)
        second = worker(other, file.parent)
        check(second, database)
        write(writer)
        check(second, database)
    assert reloads == [], "the second worker read the database"


@pytest.mark.every_database
def test_a_file_contains_what_the_database_does(database, writer, directory):
    """Odd names and uuids, a provider without a name, and numbers at their limits."""
    statement = "INSERT INTO resource_providers (uuid, name, generation) VALUES (:uuid, :name, :generation)"
    rows = [("é A", "😀\n\t'", 2**31 - 1), ("", "", 0), ("0" * 36, None, None), ("Z" * 36, "z" * 200, 1)]
    with database.engine.begin() as connection:
        for uuid, name, generation in rows:
            connection.execute(sa.text(statement), {"uuid": uuid, "name": name, "generation": generation})
    first = worker(database, directory)
    assert contents(worker(database, directory).current()) == contents(first.current())
    check(first, database)


def test_two_databases_have_separate_files(database, file, reloads, tmp_path):
    standard.renew(database)
    index = worker(database, file.parent)
    check(index, database)
    assert len(files(file.parent)) == 2
    assert reloads == ["start"]


def test_an_empty_database_has_no_file(database, directory, reloads, log):
    for _ in range(2):
        check(worker(database, directory), database)
    assert files(directory) == []
    assert reloads == ["start", "start"]
    assert log() == []


def test_a_database_without_identity_has_no_file_until_it_has_one(database, writer, directory):
    with database.engine.begin() as connection:
        connection.execute(sa.delete(feed_instance))
    check(worker(database, directory), database)
    (file,) = files(directory)
    instance = database.read(lambda db: db.execute(sa.select(feed_instance.c.uuid)).scalar())
    assert file.name == f"{instance}.{LAYOUT}.index"


def test_only_the_user_of_the_service_has_access(database, writer, directory):
    before = os.umask(0)
    try:
        worker(database, directory).current()
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    names = {path.name.rpartition(".")[2]: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert names == {"index": 0o600, "lock": 0o600}


# --- a file that cannot be used ---


def rewrite(file, **facts):
    """Replace facts in the file; None removes one."""
    arrays, old = array_file.read(file)
    file.unlink()
    array_file.write(file, arrays, {name: fact for name, fact in {**old, **facts}.items() if fact is not None})


def name_like_another_database(file, database):
    standard.renew(database)
    instance = database.read(lambda db: db.execute(sa.select(feed_instance.c.uuid)).scalar())
    file.rename(file.with_name(f"{instance}.{LAYOUT}.index"))


def make_old(file, database):
    at = datetime.datetime.fromisoformat(array_file.read(file)[1]["at"])
    rewrite(file, at=(at - MAX_GAP).isoformat())


def delete_feed_rows(file, database):
    """Delete the rows after the position of the file."""
    writer = Writer(database, random.Random(3), "later ")
    write(writer, 20)
    maintain(database, -1.0)
    write(writer, 20)
    maintain(database, -1.0)


def remove_arrays(file, _):
    arrays, facts = array_file.read(file)
    file.unlink()
    array_file.write(file, {name: array for name, array in arrays.items() if name.startswith("forest")}, facts)


def replace_by_symlink(file, database):
    file.rename(file.with_name("target"))
    file.symlink_to(file.with_name("target"))


UNFIT = {
    "of another database": name_like_another_database,
    "of another layout": lambda file, _: rewrite(file, layout=LAYOUT + 1),
    "without a layout": lambda file, _: rewrite(file, layout=None, instance=None),
    "too old": make_old,
    "before deleted rows of the feed": delete_feed_rows,
    "without facts that it should have": lambda file, _: rewrite(file, classes=None),
    "with facts of another type": lambda file, _: rewrite(file, traits=5),
    "without arrays that it should have": remove_arrays,
    "a symlink": replace_by_symlink,
    "empty": lambda file, _: file.write_bytes(b""),
    "truncated": lambda file, _: os.truncate(file, file.stat().st_size // 2),
    "random": lambda file, _: file.write_bytes(random.Random(1).randbytes(10_000)),
    "a text": lambda file, _: file.write_text("PLACEIDX or not\n" * 100),
}


@pytest.mark.parametrize("spoil", UNFIT.values(), ids=UNFIT)
def test_an_unusable_file_is_ignored(database, file, spoil, reloads, log):
    spoil(file, database)
    index = worker(database, file.parent)
    check(index, database)
    assert len(log()) == 1, log()
    assert reloads == ["start"]
    check(index, database)
    check(worker(database, file.parent), database)
    assert reloads == ["start"], "the new file is used"
    assert len(log()) == 1, log()


def test_a_directory_in_place_of_the_file_is_not_used(database, file, reloads, log):
    file.unlink()
    file.mkdir()
    index = worker(database, file.parent)
    for _ in range(3):
        check(index, database)
    assert [line.partition(" ")[2][:10] for line in log()] == ["index file", "directory "], log()
    assert reloads == ["start"]
    assert file.is_dir()


def test_a_file_with_any_damage_is_not_used(database, file, log):
    """Bits are flipped in turn, in positions at random; the space between arrays does not count."""
    intact, chance = file.read_bytes(), random.Random(4)
    expected = contents(worker(database, None).current())
    damaged = 0
    for round_ in range(150):
        content = bytearray(intact)
        if round_ % 3:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        else:
            del content[chance.randrange(len(content)) :]
        file.write_bytes(content)
        before = len(log())
        indexed = IndexStore(file.parent).load(file.name.partition(".")[0])
        damaged += indexed is None
        assert len(log()) - before == (indexed is None)
        assert indexed is None or contents(indexed.snapshot) == expected
    assert damaged > 100


def test_a_damaged_file_is_replaced(database, file, reloads, log):
    chance = random.Random(5)
    for number in range(10):
        content = bytearray(file.read_bytes())
        content[chance.randrange(20 + int.from_bytes(content[8:16], "little"))] ^= 1
        file.write_bytes(content)
        check(worker(database, file.parent), database)
        assert len(log()) == number + 1
        assert len(reloads) == number + 1


@pytest.mark.every_database
@pytest.mark.parametrize("later_writes", [0, 20])
def test_a_file_from_before_a_restored_backup_is_not_used(database, writer, directory, reloads, log, later_writes):
    """The database has lost commits that the file contains, and then has others."""
    state = rewind.save(database)
    database.write(lambda db: LockedProvider.create(db, uuid="lost", name="lost"))
    write(writer, 20)
    worker(database, directory).current()
    rewind.restore(database, state)
    write(Writer(database, random.Random(3), "other "), later_writes)
    reloads.clear()
    index = worker(database, directory)
    check(index, database)
    assert reloads == ["start"]
    assert len(log()) == 1, log()
    check(worker(database, directory), database)
    assert reloads == ["start"], "the new file is used"


def test_a_running_worker_reads_again_after_a_restored_backup_and_replaces_the_file(
    database, writer, directory, reloads
):
    state = rewind.save(database)
    index = worker(database, directory)
    index.current()
    database.write(lambda db: LockedProvider.create(db, uuid="lost", name="lost"))
    write(writer, 30)
    index.current()
    read(worker(database, directory))
    rewind.restore(database, state)
    reloads.clear()
    check(index, database)
    assert reloads == ["feed_lost"]
    check(worker(database, directory), database)
    assert reloads == ["feed_lost"], "the new file is used"


def test_workers_of_two_releases_keep_their_own_files(database, file, reloads, monkeypatch):
    """Both releases begin with their files, again and again."""
    for layout in (LAYOUT + 1, LAYOUT, LAYOUT + 1, LAYOUT):
        monkeypatch.setattr(store, "LAYOUT", layout)
        check(worker(database, file.parent), database)
    assert reloads == ["start"]
    assert len(files(file.parent)) == 2


# --- a directory that cannot be used ---


def nobody():
    return web_servers.NOBODY


def belongs_to_others(path):
    if os.geteuid():
        return Path("/")
    path.mkdir(mode=0o700)
    os.chown(path, nobody(), -1)
    return path


def with_mode(mode):
    def make(path):
        path.mkdir()
        path.chmod(mode)
        return path

    return make


def is_a_file(path):
    path.write_text("")
    return path


def is_a_symlink(path):
    path.with_name("target").mkdir(mode=0o700)
    path.symlink_to(path.with_name("target"))
    return path


UNUSABLE = {
    "of others": belongs_to_others,
    "writable by all": with_mode(0o777),
    "writable by the group": with_mode(0o770),
    "a file": is_a_file,
    "a symlink": is_a_symlink,
    "below a file": lambda path: is_a_file(path) / "index",
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_directory_is_not_used(database, writer, tmp_path, make, reloads, log):
    directory = make(tmp_path / "directory")
    before = sorted(tmp_path.rglob("*"))
    index = worker(database, directory)
    for _ in range(3):
        write(writer)
        check(index, database)
    assert len(log()) == 1, log()
    assert reloads == ["start"]
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written there"


@contextlib.contextmanager
def unprivileged():
    """Run the block as a user who may not write everywhere."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(nobody())
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def own_directory():
    """A directory of the unprivileged user, which that user can reach."""
    path = Path(tempfile.mkdtemp(dir=children.run_directory()))
    if os.geteuid() == 0:
        os.chown(path, nobody(), -1)
    yield path
    path.chmod(0o700)
    shutil.rmtree(path)


@pytest.fixture
def base(database, writer):
    return Base.build(database.snapshot(Contents.read))


@pytest.mark.parametrize("below", ["", "below"])
def test_a_read_only_directory_is_not_used(base, own_directory, below, log):
    own_directory.chmod(0o500)
    index_store, instance = IndexStore(own_directory / below), base.position.instance
    with unprivileged():
        assert index_store.load(instance) is None
        with index_store.lock(instance, 0) as is_locked:
            assert not is_locked
            assert not index_store.has_changed(instance)
            saved = index_store.save(base)
        assert not index_store.is_usable(instance)
    assert contents(saved.snapshot) == contents(base.to_index().snapshot)
    assert len(log()) == 1, log()
    assert [*own_directory.iterdir()] == []


def test_an_unreadable_file_is_ignored(base, own_directory, log):
    instance = base.position.instance
    with unprivileged():
        IndexStore(own_directory).save(base)
        (file,) = files(own_directory)
        file.chmod(0)
        index_store = IndexStore(own_directory)
        assert index_store.load(instance) is None
        assert len(log()) == 1, log()
        assert contents(index_store.save(base).snapshot) == contents(base.to_index().snapshot)
        assert index_store.load(instance) is not None
    assert len(log()) == 1, log()


def test_a_directory_that_cannot_be_listed_is_used(base, own_directory, log):
    own_directory.chmod(0o300)
    with unprivileged():
        index_store = IndexStore(own_directory)
        assert contents(index_store.save(base).snapshot) == contents(base.to_index().snapshot)
        assert index_store.load(base.position.instance) is not None
    assert log() == []


def test_a_directory_is_tried_again_after_a_pause(base, tmp_path, log, monkeypatch):
    clock = SimpleNamespace(now=0.0, time=time.time, sleep=time.sleep)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(store, "time", clock)
    directory, instance = is_a_file(tmp_path / "directory"), base.position.instance
    index_store = IndexStore(directory)
    index_store.save(base)
    directory.unlink()
    for clock.now, is_usable in ((store._FAILURE_PAUSE - 1, False), (store._FAILURE_PAUSE + 1, True)):
        index_store.save(base)
        assert index_store.is_usable(instance) is is_usable
        assert directory.exists() is is_usable
    assert len(files(directory)) == 1
    assert len(log()) == 1, log()


# --- no room ---


def search_without_room(url, directory, limit):
    """Return the log and the reloads of a worker whose files cannot exceed a size, and the suffixes of its files."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("placement.index").addHandler(handler)
    with opened(url) as database, recorded_reloads() as reloads:
        database.snapshot(load_index)  # SQLite writes its own files
        before, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (before if limit is None else limit, hard_limit))
        index = worker(database, Path(directory))
        for _ in range(3):
            check(index, database)
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard_limit))
    return lines, reloads, sorted(path.name.rpartition(".")[2] for path in Path(directory).iterdir())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("limit", [1, 100, 4096])
def test_a_file_that_cannot_be_written_in_full_is_removed(database, writer, directory, limit):
    lines, reloads, remaining = from_new_process(
        search_without_room, database.url.render_as_string(hide_password=False), str(directory), limit
    )
    assert len(lines) == 1, lines
    assert "is not used for the index" in lines[0]
    assert "File too large" in lines[0]
    assert reloads == ["start"]
    assert remaining == ["lock"]


def search_on_a_full_disk(url, directory):
    Path(directory).mkdir(parents=True)
    options = f"size=4k,mode=700,uid={os.getuid()}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=True)
    return search_without_room(url, directory, None)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_with_a_full_disk_the_index_stays_in_memory(database, writer, directory):
    unshare = ["unshare", "-Urm"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, "true"], check=False, timeout=PATIENCE, capture_output=True).returncode
    ):
        raise servers.Missing("user namespaces (unshare -Urm), in which a full file system can be mounted")
    arguments = json.dumps([database.url.render_as_string(hide_password=False), str(directory)])
    command = [*unshare, sys.executable, "-m", "tests.db.forks", __name__, search_on_a_full_disk.__name__, arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    lines, reloads, remaining = json.loads(result.stdout)
    assert len(lines) == 1, lines
    assert "No space left on device" in lines[0]
    assert reloads == ["start"]
    assert remaining == ["lock"]


# --- files that are no longer used ---


def test_files_of_databases_that_are_no_longer_used_are_deleted_after_an_hour(base, directory):
    directory.mkdir(mode=0o700, parents=True)
    now = time.time()
    old, young = str(uuid.uuid4()), str(uuid.uuid4())
    ages = {old: MAX_GAP.total_seconds() + 60, young: MAX_GAP.total_seconds() - 60}
    for name, age in ages.items():
        for suffix in ("1.index", "2.index", "1.lock", "1.new"):
            (directory / f"{name}.{suffix}").touch()
            os.utime(directory / f"{name}.{suffix}", (now - age, now - age))
    unrelated = {"unrelated", "other.lock", "books.1.index", "nginx.conf.new"}
    for name in unrelated:
        (directory / name).touch()
        os.utime(directory / name, (0, 0))
    IndexStore(directory).save(base)
    own = f"{base.position.instance}.{LAYOUT}.index"
    kept = {f"{young}.{suffix}" for suffix in ("1.index", "2.index", "1.lock", "1.new")}
    assert {path.name for path in directory.iterdir()} == {own, *unrelated, *kept}


def test_the_lock_of_a_database_in_use_is_kept(base, directory):
    """Otherwise two workers could hold it."""
    instance = base.position.instance
    first, second = IndexStore(directory), IndexStore(directory)
    with first.lock(instance, 0):
        pass
    (lock,) = files(directory, "lock")
    os.utime(lock, (0, 0))
    with first.lock(instance, 0) as is_locked:
        assert is_locked
        second.save(base)
        with second.lock(instance, 0) as is_locked_twice:
            assert not is_locked_twice


def test_one_worker_at_a_time_holds_the_lock_of_a_database(base, directory):
    first, second, instance = IndexStore(directory), IndexStore(directory), base.position.instance
    with first.lock(instance, 0) as is_locked:
        assert is_locked
        for other_instance, is_free in ((instance, False), ("another", True)):
            with second.lock(other_instance, 0) as is_locked:
                assert is_locked is is_free
    with second.lock(instance, 0) as is_locked:
        assert is_locked


def test_on_a_file_system_without_locks_the_index_stays_in_memory(database, writer, directory, log, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    check(worker(database, directory), database)
    assert len(log()) == 1
    assert files(directory) == []
    opened_files = (os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    assert [path for path in opened_files if str(directory) in path] == []


def test_an_unfinished_file_of_a_killed_worker_is_replaced(base, directory):
    index_store = IndexStore(directory)
    index_store.save(base)
    (file,) = files(directory)
    new = file.with_suffix(".new")
    new.write_bytes(file.read_bytes()[:100])
    assert contents(index_store.save(base).snapshot) == contents(base.to_index().snapshot)
    assert not new.exists()
    assert index_store.load(base.position.instance) is not None
