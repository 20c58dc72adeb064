"""The directory of metrics shared by the processes of a service.

prometheus_client keeps the metrics of a process in files named after its id.  Each process also holds a file lock,
which the kernel releases however the process ends, so that the exporter recognizes ended processes even in other
containers. It merges the counts of ended processes into one file and removes their own files: counters never decrease,
and a service that often replaces its workers does not fill its disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, exposition, multiprocess

from placement.metrics.allocated_file import AllocatedFile

LOG = logging.getLogger(__name__)

#: A value and its timestamp in seconds; the timestamp of a count is 0.
_Value = tuple[float, float]

#: Functions that merge values of ended processes, by kind of metric; other gauges describe running processes only.
_MERGES: dict[str, Callable[[_Value, _Value], _Value]] = {
    "counter": lambda left, right: (left[0] + right[0], 0.0),
    "histogram": lambda left, right: (left[0] + right[0], 0.0),
    "gauge_mostrecent": lambda left, right: max(left, right, key=lambda value: value[1]),
}

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Directory:
    """The directory of the processes of one service on one machine."""

    def __init__(self, path: str) -> None:
        """Create the directory if it does not exist; raise OSError if it cannot be written to."""
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._process = 0
        #: The file descriptor that holds this process's lock.
        self._lock_descriptor: int | None = None
        with self._lock():
            pass  # proves that the directory is writable

    def join(self) -> None:
        """Acquire this process's lock before it changes a metric; a forked child acquires its own.

        Raises:
            OSError: The disk is full, or a process in another container has the same id.
        """
        if self._process == os.getpid():
            return
        with self._lock():
            if self._process == os.getpid():
                return  # another thread has joined in the meantime
            descriptor = os.open(self._lock_file(str(os.getpid())), os.O_CREAT | os.O_WRONLY, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise
            if self._lock_descriptor is not None:
                os.close(self._lock_descriptor)  # inherited from the parent
            self._lock_descriptor, self._process = descriptor, os.getpid()

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return all metrics in the format requested by the Accept header, and its content type."""
        with self._lock():
            for process in list(self._ended_processes()):
                try:
                    self._merge(process)
                except OSError as error:  # the disk is full; the unmerged files are still included
                    LOG.warning("The metrics of the ended process %s cannot be merged: %s", process, error)
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, str(self.path))
            # The library raises for some Accept headers of clients.
            encode, content_type = exposition.choose_encoder(_OPENMETRICS if "openmetrics-text" in accept else "")
            return encode(registry), content_type

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the directory's lock, so that no process joins or is merged."""
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _lock_file(self, process: str) -> Path:
        return self.path / f"{process}.alive"

    def _ended_processes(self) -> Iterator[str]:
        for path in self.path.glob("*.alive"):
            with path.open() as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path.stem

    def _merge(self, process: str) -> None:
        for file in self.path.glob(f"*_{process}.db"):
            kind = file.name.removesuffix(f"_{process}.db")
            if kind in _MERGES:
                self._add(file, self.path / f"{kind}_ended.db", _MERGES[kind])
            file.unlink()
        self._lock_file(process).unlink()

    def _add(self, file: Path, ended: Path, merge: Callable[[_Value, _Value], _Value]) -> None:
        """Merge the values of ``file`` into ``ended``, the file of all ended processes, atomically."""
        fresh = self.path / "ended.new"
        fresh.unlink(missing_ok=True)
        if ended.exists():
            shutil.copyfile(ended, fresh)
        sums = AllocatedFile(str(fresh))
        try:
            for key, value, timestamp, _ in AllocatedFile.read_all_values_from_file(str(file)):
                sums.write_value(key, *merge(sums.read_value(key), (value, timestamp)))
        except (struct.error, ValueError, RuntimeError) as error:  # its process ended while it created the file
            LOG.warning("%s cannot be read and is skipped: %s", file, error)
            return
        finally:
            sums.close()
        fresh.replace(ended)
