"""A snapshot brought up to date: what the feed names is read again, everything else is kept.

The functions here run in one transaction that sees a single committed state (``Database.snapshot``), feed and all: what
they return is that state, also if others write meanwhile.
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
from placement.index import edit, load
from placement.index.build import build
from placement.index.position import Position
from placement.index.snapshot import Snapshot

LOG = logging.getLogger(__name__)

#: Reading a provider again by its id takes so many times as long as reading it among all.
_DEARER = 2
_FEW = 500
#: More than any id.
_ABOVE = 2**31


class Indexed(NamedTuple):
    """A snapshot, and the position of the feed at which it is what the database says."""

    snapshot: Snapshot
    position: Position


def loaded(db: Connection) -> Indexed:
    """Everything, from the database."""
    began = time.monotonic()
    with _uncollected():
        position = Position.now(db)
        snapshot = build(load.everything(db), load.class_names(db))
    # Providers are no part of any cycle.  The garbage collector would look at all of them whenever large replies have
    # made it curious, a tenth of a second for a hundred thousand: whatever is alive now is out of its sight.
    gc.collect()
    gc.freeze()
    LOG.info("Read %d providers into the index in %.1f s.", len(snapshot), time.monotonic() - began)
    return Indexed(snapshot, position)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Spare the cycle collector: it would look through a million new rows again and again, for a third of all time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def refreshed(db: Connection, indexed: Indexed) -> Indexed:
    """The same, with all that has changed since."""
    snapshot, earlier = indexed
    position = Position.now(db)
    if not position.follows(earlier):
        LOG.info("The change feed cannot be followed from where the index stands.")
        signals.reloaded("feed_lost")
        return loaded(db)
    changes = position.changes_since(db, earlier, max(_FEW, len(snapshot) // _DEARER))
    if changes is None:
        LOG.info("The change feed has more to say than everything.")
        signals.reloaded("feed_long")
        return loaded(db)
    try:
        return Indexed(applied(db, snapshot, changes), position)
    except edit.OutOfStepError as error:
        LOG.error("The change feed names provider %s, which is not in the index: reading everything again.", error)
        signals.reloaded("out_of_step")
        return loaded(db)


def applied(db: Connection, snapshot: Snapshot, changes: Mapping[int, str]) -> Snapshot:
    """The snapshot with these providers as they are now; raises OutOfStepError if it has missed something."""
    if feed.NO_PROVIDER in changes:
        snapshot = edit.with_classes(snapshot, load.class_names(db))
    changed = {id_: what for id_, what in changes.items() if id_ != feed.NO_PROVIDER}
    used = [id_ for id_, what in changed.items() if what == feed.USAGE]
    # Of a provider that is gone there is nothing to read; or, where ids are used again, another provider.
    shaped = [id_ for id_, what in changed.items() if what != feed.USAGE]
    if shaped:
        snapshot = edit.with_providers(snapshot, shaped, load.of_providers(db, shaped))
    if used:
        generations, usages = load.usage(db, used)
        # Allocations of a provider that has long been gone are nothing to us.
        if missing := snapshot.by_id.keys() & set(used) - generations.keys():
            raise edit.OutOfStepError(*missing)
        snapshot = edit.with_usage(snapshot, generations, usages)
    return snapshot


def agrees(db: Connection, indexed: Indexed, part: int = 0, parts: int = 1) -> bool:
    """Whether a snapshot that was just refreshed shows the providers, generations and usage that there are.

    It does not if a program writes that leaves nothing in the feed.  Looked at is one of several parts of all ids.
    """
    width = max(indexed.snapshot.by_id, default=0) // parts + 1
    low, high = part * width, ((part + 1) * width if part + 1 < parts else _ABOVE)
    return load.census(db, low, high) == _census(indexed.snapshot, low, high)


def _census(snapshot: Snapshot, low: int, high: int) -> load.Census:
    ids = np.array([-1 if provider is None else provider.id for provider in snapshot.providers], dtype=np.int64)
    chosen = (ids >= low) & (ids < high)
    usage = 0
    for class_id, column in snapshot.columns.items():
        slots, used = column.usage()
        slots, used = slots[chosen[slots]], used[chosen[slots]]
        # In two halves, since the sum may be more than 64 bits hold.
        for half, shift in ((used & 0xFFFFFFFF, 0), (used >> 32, 32)):
            usage += int((half * load.weight(ids[slots], class_id)).sum()) << shift
    generations = snapshot.generations[: len(ids)][chosen]
    return load.Census(int(chosen.sum()), int(ids[chosen].max(initial=0)), int(generations.sum()), usage)
