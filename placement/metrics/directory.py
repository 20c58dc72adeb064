"""Where the processes of the service count, and how their numbers are added up.

prometheus_client keeps the numbers of a process in files with its id in their names.  Beside them each process keeps a
lock, which the system takes from it when it ends, however it ends.  So whoever adds up can tell the dead from the
living, from another container too: what the dead have counted is added to one file for all of them, and their own
files are removed.  Counters never go down, and a service whose workers come and go does not fill its disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, exposition, multiprocess

from placement.metrics.reserved import Reserved

LOG = logging.getLogger(__name__)

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Directory:
    """A directory for the processes of one service on one machine."""

    def __init__(self, path: str) -> None:
        """Made if it is not there; raises OSError."""
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._process = 0
        #: What holds the lock, for as long as the process lives.
        self._alive: int | None = None
        with self._alone():
            pass  # it is ours to write to

    def join(self) -> None:
        """Say, before it counts anything, that this process lives; nothing if it has been said.  Raises OSError.

        A fork's child is another process than its parent.
        """
        if self._process == os.getpid():
            return
        with self._alone():
            if self._process == os.getpid():
                return  # another thread was faster
            alive = os.open(self._note(str(os.getpid())), os.O_CREAT | os.O_WRONLY, 0o644)
            try:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(alive)
                raise
            if self._alive is not None:
                os.close(self._alive)  # our copy of our parent's
            self._alive, self._process = alive, os.getpid()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """All numbers in the form that ``accept`` asks for, and the name of that form."""
        with self._alone():
            for process in list(self._dead()):
                try:
                    self._bury(process)
                except OSError as error:  # the disk is full; its own files are added up all the same
                    LOG.warning("The numbers of process %s, which has ended, stay in its own files: %s", process, error)
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, str(self.path))
            # No more of what a client says: some of it the library cannot bear.
            encode, content_type = exposition.choose_encoder(_OPENMETRICS if "openmetrics-text" in accept else "")
            return encode(registry), content_type

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No process comes and none is buried meanwhile."""
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _note(self, process: str) -> Path:
        return self.path / f"{process}.alive"

    def _dead(self) -> Iterator[str]:
        for note in self.path.glob("*.alive"):
            with note.open() as held, contextlib.suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield note.stem

    def _bury(self, process: str) -> None:
        for file in self.path.glob(f"*_{process}.db"):
            kind = file.name.partition("_")[0]
            if kind != "gauge":  # which says how something is, where somebody still lives
                self._add(file, self.path / f"{kind}_ended.db")
            file.unlink()
        self._note(process).unlink()

    def _add(self, file: Path, ended: Path) -> None:
        """Add the numbers of one file to those of all that have ended; either all of them or none."""
        fresh = self.path / "ended.new"
        fresh.unlink(missing_ok=True)
        if ended.exists():
            shutil.copyfile(ended, fresh)
        numbers = Reserved(str(fresh))
        try:
            for key, value, _, _ in Reserved.read_all_values_from_file(str(file)):
                numbers.write_value(key, numbers.read_value(key)[0] + value, 0.0)
        except (struct.error, ValueError, RuntimeError) as error:  # it died while it made the file
            LOG.warning("%s cannot be read and is left out: %s", file, error)
            return
        finally:
            numbers.close()
        fresh.replace(ended)
