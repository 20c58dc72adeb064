"""A machine whose workers share the files of an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from placement import signals
from placement.db.database import Database
from placement.index.live import LiveIndex
from placement.index.position import Position
from placement.index.refresh import load_index
from placement.index.snapshot import Snapshot
from placement.index.store import IndexStore
from tests.children import PATIENCE
from tests.index.contents import meaning


def worker(database: Database, directory: Path | None) -> LiveIndex:
    """Return the index of a new worker."""
    return LiveIndex(database, store=IndexStore(directory))


def files(directory: Path, suffix: str = "index") -> list[Path]:
    """Return the files in a directory with a suffix."""
    return sorted(directory.glob(f"*.{suffix}"))


@contextmanager
def recorded_reloads() -> Iterator[list[str]]:
    """Provide a list to which each reading of the whole database adds its cause."""
    causes: list[str] = []
    signals.reloaded.connect(causes.append)
    try:
        yield causes
    finally:
        signals.reloaded.disconnect(causes.append)


def read(live_index: LiveIndex) -> None:
    """Read the database, and replace the file, as a worker does that finds none."""
    instance = live_index._database.read(Position.now).instance
    with live_index._store.lock(instance, PATIENCE) as is_locked:
        assert is_locked
        live_index._read("start", is_locked)


def search(live_index: LiveIndex) -> Snapshot:
    """Return a current snapshot; it is based on renewed arrays, if a renewal was due."""
    _end_renewal(live_index)  # of an earlier search, during which this one would begin none
    live_index.current()
    _end_renewal(live_index)
    return live_index.current()


def _end_renewal(live_index: LiveIndex) -> None:
    renewal = live_index._renewal  # another search may begin the next one
    if renewal is not None:
        renewal.join(PATIENCE)
        assert not renewal.is_alive()


def check(live_index: LiveIndex, database: Database) -> None:
    """Compare the contents of an index with the database, to which no other process writes."""
    assert meaning(live_index.current()) == meaning(database.snapshot(load_index).snapshot)
