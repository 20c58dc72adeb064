"""A search for providers by name, uuid, class, trait and aggregate."""

from __future__ import annotations

from dataclasses import dataclass

from placement.extensions.console.views.cloud import Named, named
from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search asks for; all that is not empty must hold.

    Args:
        name: A part of the name, in any case, or the uuid.
        resource_class: A class of its inventory.
    """

    name: str = ""
    resource_class: str = ""
    trait: str = ""
    aggregate: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A provider that was found."""

    uuid: str
    name: str
    root: Named
    levels: tuple[ClassLevel, ...]


def find_slots(wanted: Wanted, snapshot: Snapshot) -> list[int]:
    """Return the slots of the providers that match, by name."""
    found = SlotSet.dense(snapshot.forest.alive)
    if wanted.trait:
        found &= snapshot.with_trait(wanted.trait)
    if wanted.aggregate:
        found &= snapshot.in_aggregate(wanted.aggregate)
    slots = found.slots().tolist()
    if wanted.resource_class:
        class_id = snapshot.class_ids.get(wanted.resource_class)
        slots = [slot for slot in slots if class_id in snapshot.provider(slot).classes]
    if wanted.name:
        part = wanted.name.casefold()
        slots = [slot for slot in slots if _matches(part, *named(snapshot, slot))]
    return sorted(slots, key=lambda slot: named(snapshot, slot).name)


def row(snapshot: Snapshot, slot: int) -> Row:
    """Return what the list shows of a provider."""
    return Row(*named(snapshot, slot), named(snapshot, snapshot.provider(slot).root), levels_of(snapshot, slot))


def _matches(part: str, uuid: str, name: str) -> bool:
    return part in name.casefold() or part == uuid.casefold()
