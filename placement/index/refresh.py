"""Refreshing of a snapshot: the providers that the feed names are read again, everything else is kept.

The functions run in a transaction that sees a single committed state, including the feed (``Database.snapshot``).  They
return that state, even if other transactions commit meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy.engine import Connection

from placement import signals
from placement.db import feed
from placement.db.writes.transaction import Reader
from placement.index import edit, load
from placement.index.arrays import Arrays
from placement.index.build import Names, build_arrays, from_arrays
from placement.index.contents import tables_of
from placement.index.position import Position
from placement.index.snapshot import Snapshot
from placement.index.tables import Tables

LOG = logging.getLogger(__name__)

#: The cost of reading a provider by its id, relative to reading it with all others.
_COST_BY_ID = 2
#: Maximum number of changes for which providers are always read by id.
_MIN_BY_ID = 500
#: An exclusive upper bound of all ids.
_ID_LIMIT = 2**31


class Indexed(NamedTuple):
    """A snapshot, its position in the feed, and the position at which its arrays were current."""

    snapshot: Snapshot
    position: Position
    base: Position


class Contents(NamedTuple):
    """All rows of a state of the database, the names of the resource classes by id, and the position in the feed."""

    tables: Tables
    class_names: Mapping[int, str]
    position: Position

    @classmethod
    def read(cls, db: Connection) -> Contents:
        """Read all providers of the database."""
        began = time.monotonic()
        position = Position.now(Reader(db))
        contents = cls(load.all_rows(db), load.class_names(db), position)
        LOG.info("Read %d providers into the index in %.1f s.", len(contents.tables.ids), time.monotonic() - began)
        return contents

    @classmethod
    def of(cls, indexed: Indexed) -> Contents:
        """Return the contents of a snapshot, changes included."""
        return cls(tables_of(indexed.snapshot), indexed.snapshot.class_names, indexed.position)


class Base(NamedTuple):
    """The arrays of a snapshot, its names, and its position in the feed."""

    arrays: Arrays
    names: Names
    position: Position

    @classmethod
    def build(cls, contents: Contents) -> Base:
        """Return the arrays of these contents; call this outside of transactions, since it can take seconds."""
        return cls(*build_arrays(contents.tables, contents.class_names), contents.position)

    def to_index(self) -> Indexed:
        """Return the snapshot of the arrays."""
        return Indexed(from_arrays(self.arrays, self.names), self.position, self.position)


def load_index(db: Connection) -> Indexed:
    """Return an index that is read from the database."""
    return Base.build(Contents.read(db)).to_index()


class FollowError(Exception):
    """The feed does not contain all changes since the index was read; the argument says why."""

    def __init__(self, cause: signals.ReloadCause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause


def refresh_index(db: Connection, indexed: Indexed) -> Indexed:
    """Return the index with all changes committed since it was read; it is read again if that is impossible."""
    try:
        return follow(db, indexed)
    except FollowError:
        return load_index(db)


def follow(db: Connection, indexed: Indexed) -> Indexed:
    """Return the index with all changes committed since it was read.

    Raises:
        FollowError: The index must be read again.
    """
    snapshot, earlier, base = indexed
    position = Position.now(Reader(db))
    if not position.follows(earlier):
        raise FollowError("feed_lost", "The change feed cannot be followed from the position of the index")
    changes = position.changes_since(db, earlier, max(_MIN_BY_ID, len(snapshot) // _COST_BY_ID))
    if changes is None:
        raise FollowError("feed_long", "The change feed contains too many changes to apply")
    try:
        return Indexed(apply_changes(db, snapshot, changes), position, base)
    except edit.OutOfStepError as error:
        raise FollowError(
            "out_of_step", f"The change feed names provider {error}, which is not in the index"
        ) from error


def apply_changes(db: Connection, snapshot: Snapshot, changes: Mapping[int, str]) -> Snapshot:
    """Return the snapshot with the changed providers read again.

    Args:
        changes: The kind of change by provider id.

    Raises:
        OutOfStepError: The snapshot has missed an earlier change.
    """
    if changes.get(feed.NO_PROVIDER) == feed.NAMES:
        snapshot = edit.with_classes(snapshot, load.class_names(db))
    changed = {id_: kind for id_, kind in changes.items() if id_ != feed.NO_PROVIDER}
    used = [id_ for id_, kind in changed.items() if kind == feed.USAGE]
    # A deleted provider has no rows; if the database reuses ids, another provider may have its id.
    shaped = [id_ for id_, kind in changed.items() if kind != feed.USAGE]
    if shaped:
        snapshot = edit.with_providers(snapshot, shaped, load.of_providers(db, shaped))
    if used:
        generations, usages = load.generations_and_usages(db, used)
        # Ignore allocations on a provider that neither exists nor existed before.
        if missing := {id_ for id_ in set(used) - generations.keys() if id_ in snapshot.by_id}:
            raise edit.OutOfStepError(*missing)
        snapshot = edit.with_usage(snapshot, generations, usages)
    return snapshot


def bounds(indexed: Indexed, section: int, sections: int) -> tuple[int, int]:
    """Return the lowest id of a section, and the lowest id after it."""
    width = indexed.snapshot.providers.highest_id // sections + 1
    return section * width, ((section + 1) * width if section + 1 < sections else _ID_LIMIT)


def agrees(db: Connection, indexed: Indexed, section: int, sections: int) -> bool:
    """Whether a refreshed snapshot and the database agree on providers, generations and usages.

    They differ if another process writes to the database without the feed.

    Args:
        section: The number of the section of ids to compare, from 0.
        sections: The number of sections.
    """
    low, high = bounds(indexed, section, sections)
    return load.checksum(db, low, high) == _checksum(indexed.snapshot, low, high)


def _checksum(snapshot: Snapshot, low: int, high: int) -> load.Checksum:
    slots = snapshot.providers.slots_between(low, high)
    ids = snapshot.providers.ids(slots)
    usage = 0
    for class_id, column in snapshot.columns.items():
        used = column.usage_of(slots)
        # In two halves of 32 bits, because the sum of the products may exceed 64 bits.
        for half, shift in ((used & 0xFFFFFFFF, 0), (used >> 32, 32)):
            usage += int((half * load.weight(ids, class_id)).sum()) << shift
    return load.Checksum(len(slots), int(ids.max(initial=0)), int(snapshot.generations[slots].sum()), usage)
