"""A snapshot brought up to date: what the feed names is read again, everything else is kept.

The functions here run in one transaction that sees a single committed state, feed included (``Database.snapshot``).
What they return is that state; later commits of other transactions do not affect it.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from sqlalchemy.engine import Connection

from placement import signals
from placement.db import feed
from placement.db.writes.transaction import Reader
from placement.index import edit, load
from placement.index.build import build
from placement.index.position import Position
from placement.index.snapshot import Snapshot

LOG = logging.getLogger(__name__)

#: To read a provider by its id takes about twice as long as to read it among all.
_COST_BY_ID = 2
#: Up to so many changes are read by id in any case.
_FEW = 500
#: Greater than any id.
_ABOVE = 2**31


class Indexed(NamedTuple):
    """A snapshot, and the position in the feed that it shows."""

    snapshot: Snapshot
    position: Position


def loaded(db: Connection) -> Indexed:
    """Read everything from the database."""
    began = time.monotonic()
    with _without_collections():
        position = Position.now(Reader(db))
        snapshot = build(load.everything(db), load.class_names(db))
    # Freeze the snapshot, so that full collections skip it: they take about 0.1 s per 100,000 providers, and providers
    # are in no reference cycle.
    gc.collect()
    gc.freeze()
    LOG.info("Read %d providers into the index in %.1f s.", len(snapshot), time.monotonic() - began)
    return Indexed(snapshot, position)


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Disable the cyclic garbage collector, which takes a third of the time while a million rows are allocated."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def refreshed(db: Connection, indexed: Indexed) -> Indexed:
    """Return the index with all changes that were committed since it was read."""
    snapshot, earlier = indexed
    position = Position.now(Reader(db))
    if not position.follows(earlier):
        LOG.info("The change feed cannot be followed from where the index stands.")
        signals.reloaded("feed_lost")
        return loaded(db)
    changes = position.changes_since(db, earlier, max(_FEW, len(snapshot) // _COST_BY_ID))
    if changes is None:
        LOG.info("The change feed has too many changes: reading everything again.")
        signals.reloaded("feed_long")
        return loaded(db)
    try:
        return Indexed(applied(db, snapshot, changes), position)
    except edit.OutOfStepError as error:
        LOG.error("The change feed names provider %s, which is not in the index: reading everything again.", error)
        signals.reloaded("out_of_step")
        return loaded(db)


def applied(db: Connection, snapshot: Snapshot, changes: Mapping[int, str]) -> Snapshot:
    """Return the snapshot with the changed providers read again.

    Args:
        changes: What changed, by provider id.

    Raises:
        OutOfStepError: The snapshot has missed an earlier change.
    """
    if changes.get(feed.NO_PROVIDER) == feed.NAMES:
        snapshot = edit.with_classes(snapshot, load.class_names(db))
    changed = {id_: what for id_, what in changes.items() if id_ != feed.NO_PROVIDER}
    used = [id_ for id_, what in changed.items() if what == feed.USAGE]
    # A deleted provider has no rows; where the database reuses ids, they are those of another provider.
    shaped = [id_ for id_, what in changed.items() if what != feed.USAGE]
    if shaped:
        snapshot = edit.with_providers(snapshot, shaped, load.of_providers(db, shaped))
    if used:
        generations, usages = load.usage(db, used)
        # Allocations of a provider that does not exist, and did not before, are ignored.
        if missing := snapshot.by_id.keys() & set(used) - generations.keys():
            raise edit.OutOfStepError(*missing)
        snapshot = edit.with_usage(snapshot, generations, usages)
    return snapshot


def bounds(indexed: Indexed, section: int, sections: int) -> tuple[int, int]:
    """Return the lowest id of a section, and the id that ends it."""
    width = max(indexed.snapshot.by_id, default=0) // sections + 1
    return section * width, ((section + 1) * width if section + 1 < sections else _ABOVE)


def agrees(db: Connection, indexed: Indexed, section: int, sections: int) -> bool:
    """Whether a snapshot that was just refreshed has the database's providers, generations and usages.

    It has not if another program writes to the database without the feed.

    Args:
        section: Which section of all ids to compare, from 0.
        sections: The number of sections.
    """
    low, high = bounds(indexed, section, sections)
    return load.checksum(db, low, high) == _checksum(indexed.snapshot, low, high)


def _checksum(snapshot: Snapshot, low: int, high: int) -> load.Checksum:
    ids = np.array([-1 if provider is None else provider.id for provider in snapshot.providers], dtype=np.int64)
    chosen = (ids >= low) & (ids < high)
    usage = 0
    for class_id, column in snapshot.columns.items():
        slots, used = column.usage()
        slots, used = slots[chosen[slots]], used[chosen[slots]]
        # In two halves of 32 bits, since the sum of the products may exceed 64 bits.
        for half, shift in ((used & 0xFFFFFFFF, 0), (used >> 32, 32)):
            usage += int((half * load.weight(ids[slots], class_id)).sum()) << shift
    generations = snapshot.generations[: len(ids)][chosen]
    return load.Checksum(int(chosen.sum()), int(ids[chosen].max(initial=0)), int(generations.sum()), usage)
