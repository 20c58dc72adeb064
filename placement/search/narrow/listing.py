"""Providers that match a filter (docs: api-list-providers).

Each provider is judged by itself: its tree and sharing providers do not matter.
"""

from __future__ import annotations

from placement.index.snapshot import Snapshot
from placement.search.narrow.narrowing import providers_serving
from placement.search.query.query import ProviderFilter


def matching(snapshot: Snapshot, wanted: ProviderFilter) -> list[int]:
    """Return the slots of the providers that match, in the order of their ids."""
    slots = providers_serving(wanted.group, snapshot).slots().tolist()
    if wanted.uuid is not None:
        named = snapshot.by_uuid.get(wanted.uuid)
        slots = [slot for slot in slots if slot == named]
    if wanted.name is not None:
        slots = [slot for slot in slots if snapshot.provider(slot).name == wanted.name]
    return sorted(slots, key=lambda slot: snapshot.provider(slot).id)
