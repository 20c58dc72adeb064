"""Usage that a dry run would add or release.

The transactions of a dry run are rolled back, so the index never shows this usage.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from placement.extensions.v1.claims.writing import ChosenPlace
from placement.index.edit import with_usage_by_slot
from placement.index.snapshot import Snapshot
from placement.objects.claims.holding import Holding


class UncommittedUsage:
    """Changes of usage by the writes of a dry run so far."""

    def __init__(self) -> None:
        #: Changes of the amounts in use, by provider uuid and class.
        self._changes: Counter[tuple[str, str]] = Counter()

    def note(self, place: ChosenPlace, holding: Holding | None) -> None:
        """Add the usage of a place, and remove the usage of the consumer's holding."""
        for resources, sign in ((place.resources, 1), (holding.resources if holding else {}, -1)):
            for uuid, amounts in resources.items():
                for name, amount in amounts.items():
                    self._changes[uuid, name] += sign * amount

    def applied_to(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the changes added to its usage."""
        used: dict[int, dict[int, int]] = defaultdict(dict)
        for (uuid, name), change in self._changes.items():
            slot, column = snapshot.by_uuid.get(uuid), snapshot.column(name)
            if change and slot is not None and column is not None:
                class_id = snapshot.class_ids[name]
                if class_id in snapshot.provider(slot).classes:
                    used[class_id][slot] = int(column.amounts(slot).used) + change
        return with_usage_by_slot(snapshot, used) if used else snapshot
