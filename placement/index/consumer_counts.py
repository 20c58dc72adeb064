"""How many consumers hold something on each provider, kept from one snapshot to the next."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from placement.db.database import Database
from placement.index.column import Column
from placement.index.slots import Mask
from placement.index.snapshot import Snapshot
from placement.objects import usage

Counts = npt.NDArray[np.int64]


class ConsumerCounts:
    """Counts once, and then again where a snapshot differs from the last one; shared by all threads.

    To count for all providers is to read all allocations.  No consumer comes to a provider unless the generation of the
    provider advances, and none goes unless the generation advances or the usage shrinks: a deletion locks no provider.
    So the number is the same where both are.
    """

    def __init__(self, database: Database) -> None:
        """Count nothing yet."""
        self._database = database
        #: A snapshot, and numbers by slot that were read after it.
        self._kept: tuple[Snapshot, Counts] | None = None

    def of(self, snapshot: Snapshot) -> Counts:
        """Return the number for each slot, as of the snapshot or later.

        Raises:
            Unavailable: The database cannot be read.
        """
        kept = self._kept
        if kept is not None and kept[0] is snapshot:
            return kept[1]
        counts = np.zeros(snapshot.size, dtype=np.int64)
        changed = np.ones(snapshot.size, dtype=np.bool_)
        if kept is not None:
            changed = _changed(kept[0], snapshot)
            known = np.flatnonzero(~changed)
            counts[known] = kept[1][known]
        for provider_id, number in self._read(snapshot, changed).items():
            counts[snapshot.by_id[provider_id]] = number
        self._kept = snapshot, counts
        return counts

    def _read(self, snapshot: Snapshot, changed: Mask) -> dict[int, int]:
        """Return the numbers of the providers in these slots by id."""
        slots = np.flatnonzero(changed & snapshot.forest.alive).tolist()
        ids = [snapshot.provider(slot).id for slot in slots]
        return self._database.read(lambda db: usage.count_by_provider(db, ids)) if ids else {}


def _changed(before: Snapshot, now: Snapshot) -> Mask:
    """Return the slots in which something may have changed: the provider, its generation, or a usage of it."""
    size = now.size
    changed = np.ones(size, dtype=np.bool_)
    common = min(len(before.generations), size)
    changed[:common] = before.generations[:common] != now.generations[:common]
    pairs = itertools.zip_longest(before.providers, now.providers)
    moved = [slot for slot, (one, other) in enumerate(pairs) if one is not other]
    changed[[slot for slot in moved if slot < size]] = True
    for class_id in before.columns.keys() | now.columns.keys():
        one, other = before.columns.get(class_id), now.columns.get(class_id)
        if one is not other:
            changed |= _usage(one, size) != _usage(other, size)
    return changed


def _usage(column: Column | None, size: int) -> npt.NDArray[np.int64]:
    """Return the usage of each slot."""
    usage = np.zeros(size, dtype=np.int64)
    if column is not None:
        slots, used = column.usage()
        within = slots < size
        usage[slots[within]] = used[within]
    return usage
