"""The number of consumers with allocations on each provider, cached from one snapshot to the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.db.database import Database
from placement.index.column import Column
from placement.index.slots import Mask
from placement.index.snapshot import Snapshot
from placement.objects import usage

Counts = npt.NDArray[np.int64]


class ConsumerCounts:
    """The counts of the last snapshot, updated where a new snapshot differs; shared by all threads.

    Counting for all providers reads all allocations.  A provider gets a new consumer only when its generation advances.
    It loses one only when its generation advances or its usage shrinks, since a deletion does not lock the provider.
    So a count is unchanged if the generation and the usage are unchanged.
    """

    def __init__(self, database: Database) -> None:
        """Create an empty cache; the first call counts."""
        self._database = database
        #: A snapshot, counts by slot that were read after it, and a mask of the slots whose count is unknown.
        self._cached: tuple[Snapshot, Counts, Mask] | None = None

    def counts_of(self, snapshot: Snapshot) -> Counts:
        """Return the number of consumers of each slot, as of the snapshot or later.

        Raises:
            Unavailable: The database cannot be read.
        """
        _, counts, is_unknown = self._carried_over(snapshot)
        for provider_id, number in self._read(snapshot, is_unknown).items():
            counts[snapshot.by_id[provider_id]] = number
        self._cached = snapshot, counts, np.zeros(snapshot.size, dtype=np.bool_)
        return counts

    def rebase(self, snapshot: Snapshot) -> None:
        """Let the counts refer to another snapshot, so that the arrays of the present one can be freed."""
        if self._cached is not None:
            self._cached = self._carried_over(snapshot)

    def _carried_over(self, snapshot: Snapshot) -> tuple[Snapshot, Counts, Mask]:
        """Return the cached counts for a snapshot, in new arrays; the counts of changed providers are 0 and unknown."""
        counts = np.zeros(snapshot.size, dtype=np.int64)
        is_unknown = np.ones(snapshot.size, dtype=np.bool_)
        if (cached := self._cached) is not None:
            before, old, was_unknown = cached
            is_unknown = _changed_slots(before, snapshot)
            is_unknown[: len(old)] |= was_unknown[: snapshot.size]
            valid = np.flatnonzero(~is_unknown)
            valid = valid[valid < len(old)]
            counts[valid] = old[valid]
        return snapshot, counts, is_unknown

    def _read(self, snapshot: Snapshot, is_unknown: Mask) -> dict[int, int]:
        """Return the numbers of consumers of the providers in these slots, by provider id."""
        ids = snapshot.providers.ids(np.flatnonzero(is_unknown & snapshot.forest.alive)).tolist()
        return self._database.read(lambda db: usage.count_by_provider(db, ids)) if ids else {}


def _changed_slots(before: Snapshot, now: Snapshot) -> Mask:
    """Return a mask of the slots whose provider, generation or usage differs."""
    size = now.size
    changed: Mask = before.generations.array(size) != now.generations.array(size)
    changed |= before.providers.identities(size) != now.providers.identities(size)
    for class_id in before.columns.keys() | now.columns.keys():
        old, new = before.columns.get(class_id), now.columns.get(class_id)
        if old is not new:
            changed |= _usage(old, size) != _usage(new, size)
    return changed


def _usage(column: Column | None, size: int) -> npt.NDArray[np.int64]:
    """Return the usage of each slot."""
    amounts = np.zeros(size, dtype=np.int64)
    if column is not None:
        slots, used = column.usage()
        within = slots < size
        amounts[slots[within]] = used[within]
    return amounts
