"""Providers that match a filter.  Each is judged by itself: nothing is shared, no tree helps (contract 2.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from placement.index.snapshot import Snapshot
from placement.search.narrow.narrowing import serving
from placement.search.query.request import Group


@dataclass(frozen=True, slots=True)
class Filter:
    """What a provider must be; everything that is given must hold."""

    name: str | None = None
    uuid: str | None = None
    #: What it can serve.
    group: Group = field(default_factory=Group)


def matching(snapshot: Snapshot, wanted: Filter) -> list[int]:
    """The slots of the providers that match, in the order of their ids."""
    slots = serving(wanted.group, snapshot).slots().tolist()
    if wanted.uuid is not None:
        named = snapshot.by_uuid.get(wanted.uuid)
        slots = [slot for slot in slots if slot == named]
    if wanted.name is not None:
        slots = [slot for slot in slots if snapshot.provider(slot).name == wanted.name]
    return sorted(slots, key=lambda slot: snapshot.provider(slot).id)
