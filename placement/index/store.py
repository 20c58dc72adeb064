"""The index of a host: a file that every worker maps (docs/adr/0055).

The file contains the arrays of a snapshot, and its position in the change feed.  A worker that begins with the file
follows the feed from this position.  After a restored backup, lost commits or a long time that is impossible, and the
worker reads the database; so the file needs no checks for them.  A file is never changed: a new one replaces it, and
mappings of the old one remain valid.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.index import array_file
from placement.index.build import Names
from placement.index.position import MAX_GAP, Position
from placement.index.refresh import Base, Indexed

LOG = logging.getLogger(__name__)

#: The version of the arrays.  Each version has its own files, so that workers of two releases do not replace each
#: other's.
LAYOUT = 1
#: The names of the files of any database and layout; an operator's directory may contain others.
_OWN_FILE = re.compile(r"[0-9a-f-]{36}\.\d+\.(index|lock|new)")
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
#: Seconds between two attempts to lock a file that another worker has locked.
_LOCK_INTERVAL = 0.05
#: Seconds for which a directory is not used after a failure.
_FAILURE_PAUSE = 600.0


def default_directory(state_path: str) -> Path:
    """Return the directory in memory of the user of this process, or one below ``state_path``."""
    # Another user may own the directory below it, which ``IndexStore`` then refuses.
    memory = Path("/dev/shm")  # nosec B108
    return memory / f"placement-{os.geteuid()}" if memory.is_dir() else Path(state_path, "index")


class UnusableDirectoryError(OSError):
    """A directory that must not contain index files; the argument says why."""


class IndexStore:
    """The files in a directory, one for each database."""

    def __init__(self, directory: Path | None) -> None:
        """Use a directory, which is created if it does not exist; None for no files."""
        self._directory = directory
        self._disabled_until = 0.0
        self._problem = ""
        #: The file that was read last, as ``_version`` identifies it.
        self._read_version: tuple[int, int] | None = None

    def load(self, instance: str | None) -> Indexed | None:
        """Return the index in the file of a database, or None if there is no file that can be used.

        Args:
            instance: The identity of the database's feed; None if the database has no identity.
        """
        path = self._path(instance)
        if path is None:
            return None
        try:
            self._read_version = _version(path)
            return read(path, instance)
        except FileNotFoundError:
            return None
        except (OSError, array_file.UnusableFileError) as error:
            reason = _reason(error)
        # After the handler, because oslo.log appends the exception that is being handled.
        LOG.warning("The index file %s is not used: %s.", path, reason)
        return None

    def has_changed(self, instance: str | None) -> bool:
        """Whether there is a file of the database that this worker has not read."""
        path = self._path(instance)
        if path is None:
            return False
        try:
            return _version(path) != self._read_version
        except OSError:
            return False

    @property
    def problem(self) -> str | None:
        """The reason why the directory is not used at present; None if no reason is known."""
        return self._problem if time.monotonic() < self._disabled_until else None

    def is_usable(self, instance: str | None) -> bool:
        """Whether a file of the database can be written, as far as is known."""
        return self._path(instance) is not None

    def save(self, base: Base) -> Indexed:
        """Replace the file of a database, which the caller has locked, and return the index in the new file.

        Without a file, the index stays in the memory of this process; if writing fails, the log says why.
        """
        instance = base.position.instance
        path = self._path(instance)
        if path is not None and len(base.arrays["providers/ids"]):
            new = path.with_suffix(".new")
            try:
                new.unlink(missing_ok=True)  # of a worker that was killed
                array_file.write(new, base.arrays, _facts(base))
                stored, self._read_version = read(new, instance), _version(new)
                new.replace(path)
            except (OSError, array_file.UnusableFileError) as error:
                failure = error
                with contextlib.suppress(OSError):
                    new.unlink(missing_ok=True)
            else:
                LOG.info("Wrote the index file %s.", path)
                self._delete_old_files()
                return stored._replace(position=base.position)
            self._pause(failure)
        return base.to_index()

    @contextlib.contextmanager
    def lock(self, instance: str | None, wait: float, meanwhile: Callable[[], object] = lambda: None) -> Iterator[bool]:
        """Lock the file of a database while the context lasts; the end of a process releases its locks.

        Args:
            instance: The identity of the database's feed.
            wait: Seconds to wait for another worker.
            meanwhile: A callback, several times a second while this worker waits.

        Yields:
            Whether this worker holds the lock; False without a directory.
        """
        path = self._path(instance)
        with contextlib.ExitStack() as stack:
            is_locked, failure = False, None
            try:
                if path is not None:
                    descriptor = os.open(path.with_suffix(".lock"), _LOCK_FLAGS, 0o600)
                    stack.callback(os.close, descriptor)
                    os.utime(descriptor)  # it is in use, and not deleted as an old file
                    is_locked = _try_lock(descriptor, wait, meanwhile)
                    if is_locked:
                        # Closing would not unlock it if a child was forked meanwhile, which has the file open, too.
                        stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)
            except OSError as error:  # among others, that of a file system without locks
                failure = error
            if failure is not None:
                self._pause(failure)
            yield is_locked

    def path(self, instance: str | None) -> Path | None:
        """Return the path of the file of a database, which may not exist; None without an identity or a directory."""
        if instance is None or self._directory is None:
            return None
        return self._directory / f"{instance}.{LAYOUT}.index"

    def _path(self, instance: str | None) -> Path | None:
        """Return the path of the file of a database; None if the directory cannot be used."""
        path = self.path(instance)
        if path is None or time.monotonic() < self._disabled_until:
            return None
        try:
            with contextlib.suppress(FileExistsError):
                path.parent.mkdir(mode=0o700, parents=True)
            check_directory(path.parent, os.geteuid())
        except OSError as error:
            failure = error
        else:
            return path
        self._pause(failure)
        return None

    def _pause(self, error: Exception) -> None:
        self._disabled_until = time.monotonic() + _FAILURE_PAUSE
        self._problem = f"The directory {self._directory} is not used for the index: {_reason(error)}."
        LOG.warning(
            "%s This worker keeps the index in its own memory, and tries the directory again after ten minutes.",
            self._problem,
        )

    def _delete_old_files(self) -> None:
        """Delete files that have not been written for an hour, such as those of other databases."""
        assert self._directory is not None
        oldest = time.time() - MAX_GAP.total_seconds()
        with contextlib.suppress(OSError):  # the directory cannot be listed, or another process has deleted it
            for path in [path for path in self._directory.iterdir() if _OWN_FILE.fullmatch(path.name)]:
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < oldest:
                        path.unlink()


def check_directory(directory: Path, user: int | None) -> None:
    """Check a directory of index files.

    Args:
        directory: The directory.
        user: The user to whom it must belong; None for any user.

    Raises:
        UnusableDirectoryError: It must not be used.
        OSError: It does not exist, or cannot be reached.
    """
    status = directory.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        raise UnusableDirectoryError("it is a file or a symbolic link, not a directory")
    if user is not None and status.st_uid != user:
        raise UnusableDirectoryError(f"it belongs to the user {status.st_uid}, not to {user}")
    if mode & 0o022:
        raise UnusableDirectoryError(f"its group or other users may write to it (mode {mode:o})")


def _reason(error: Exception) -> str:
    """Return the reason of a failure without the path."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def read(path: Path, instance: str | None) -> Indexed:
    """Return the index in the file of a database.

    Args:
        path: The file.
        instance: The identity of the database's feed.

    Raises:
        OSError: The file does not exist, or cannot be read.
        UnusableFileError: The file is damaged, or belongs to another database or release.
    """
    try:
        arrays, facts = array_file.read(path)
        if (facts.get("instance"), facts.get("layout")) != (instance, LAYOUT):
            raise array_file.UnusableFileError("it belongs to another database or release")
        return Base(arrays, _names(facts), _position(facts)).to_index()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise array_file.UnusableFileError(f"this release cannot interpret its contents: {error!r}") from error


def _facts(base: Base) -> dict[str, Any]:
    """Return what a file contains besides the arrays, as JSON."""
    return {
        "layout": LAYOUT,
        "instance": base.position.instance,
        "at": base.position.at.isoformat(),
        "newest": [*base.position.newest.items()],
        "classes": [*base.names.classes.items()],
        "trait_ids": dict(base.names.trait_ids),
        "traits": base.names.traits,
        "aggregates": base.names.aggregates,
    }


def _names(facts: Mapping[str, Any]) -> Names:
    return Names(dict(facts["classes"]), facts["trait_ids"], facts["traits"], facts["aggregates"])


def _position(facts: Mapping[str, Any]) -> Position:
    at = datetime.datetime.fromisoformat(facts["at"])
    return Position(facts["instance"], at, dict(facts["newest"]))


def _version(path: Path) -> tuple[int, int]:
    """Return values that differ between a file and the one that replaces it."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _try_lock(descriptor: int, wait: float, meanwhile: Callable[[], object]) -> bool:
    until, is_waiting = time.monotonic() + wait, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            if not is_waiting:
                LOG.info(
                    "Waiting for another worker of this host, which is reading the database or writing the index file."
                )
                is_waiting = True
            meanwhile()
            time.sleep(_LOCK_INTERVAL)
        else:
            return True
