"""Suggestions for a form field while the user types."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from placement.extensions.console.views.cloud import class_names
from placement.index.snapshot import Snapshot

#: Maximum number of suggestions.
_MAX_NAMES = 20


def suggest(snapshot: Snapshot, kind: str, part: str) -> list[str]:
    """Return names that contain a text, ignoring case: first names that begin with it, then other names, each sorted.

    Args:
        kind: ``classes``, ``traits``, ``aggregates`` or ``providers``.
    """
    folded = part.casefold()
    matches = (name for name in _names(snapshot, kind) if folded in name.casefold())
    return heapq.nsmallest(_MAX_NAMES, matches, key=lambda name: (not name.casefold().startswith(folded), name))


def _names(snapshot: Snapshot, kind: str) -> Iterable[str]:
    match kind:
        case "classes":
            return class_names(snapshot)
        case "traits":
            return snapshot.traits
        case "aggregates":
            return snapshot.aggregates
    return snapshot.by_name
