"""Names that a field of a form suggests while somebody types."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from placement.extensions.console.views.cloud import class_names
from placement.index.snapshot import Snapshot

#: How many names are suggested.
_MOST = 20


def found(snapshot: Snapshot, what: str, part: str) -> list[str]:
    """Return names that have a text in them, in any case: those that begin with it first, then by name.

    Args:
        what: ``classes``, ``traits``, ``aggregates`` or ``providers``.
    """
    wanted = part.casefold()
    having = (name for name in _names(snapshot, what) if wanted in name.casefold())
    return heapq.nsmallest(_MOST, having, key=lambda name: (not name.casefold().startswith(wanted), name))


def _names(snapshot: Snapshot, what: str) -> Iterable[str]:
    match what:
        case "classes":
            return class_names(snapshot)
        case "traits":
            return snapshot.traits
        case "aggregates":
            return snapshot.aggregates
    return snapshot.by_name
