"""A search for providers by name, uuid, class, trait and aggregate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.extensions.console.views.cloud import ProviderName, named
from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot

#: By what the list can be ordered; the first is the default.
ORDERS = ("name", "-name", "tree", "-tree", "-used", "used")


@dataclass(frozen=True, slots=True)
class Criteria:
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
    root: ProviderName
    levels: tuple[ClassLevel, ...]


def find_slots(wanted: Criteria, snapshot: Snapshot) -> list[int]:
    """Return the slots of the providers that match."""
    found = SlotSet.dense(snapshot.forest.alive)
    if wanted.trait:
        found &= snapshot.with_trait(wanted.trait)
    if wanted.aggregate:
        found &= snapshot.in_aggregate(wanted.aggregate)
    slots: list[int] = found.slots().tolist()
    if wanted.resource_class:
        class_id = snapshot.class_ids.get(wanted.resource_class)
        slots = [slot for slot in slots if class_id in snapshot.provider(slot).classes]
    if wanted.name:
        part = wanted.name.casefold()
        slots = [slot for slot in slots if _matches(part, *named(snapshot, slot))]
    return slots


def ordered(slots: list[int], snapshot: Snapshot, by: str, resource_class: str) -> list[int]:
    """Return slots in an order.

    Args:
        by: One of ``ORDERS``: the name, that of the tree, or how full the fullest inventory is; with ``-`` in reverse.
            Providers that have no name but their uuid come after the others.
        resource_class: The class by whose inventory it is said how full providers are; empty for any.
    """

    def name(slot: int) -> tuple[bool, str]:
        uuid, shown = named(snapshot, slot)
        return shown == uuid, shown

    in_order = sorted(slots, key=name)
    match by.removeprefix("-"):
        case "name":
            return in_order[::-1] if by == "-name" else in_order
        case "tree":
            return sorted(in_order, key=lambda slot: name(snapshot.provider(slot).root), reverse=by == "-tree")
    parts = _used_parts(snapshot, resource_class)
    return sorted(in_order, key=lambda slot: parts[slot], reverse=by == "-used")


def _used_parts(snapshot: Snapshot, resource_class: str) -> list[float]:
    """Return how full the fullest inventory of each provider is, by slot: 1 where all is used, 0 without any."""
    parts = np.zeros(snapshot.size)
    named_only = snapshot.column(resource_class) if resource_class else None
    for column in snapshot.columns.values() if named_only is None else [named_only]:
        held = column.inventories()
        parts[held.slots] = np.maximum(parts[held.slots], held.used / np.maximum(held.capacity, 1))
    return parts.tolist()


def row(snapshot: Snapshot, slot: int) -> Row:
    """Return what the list shows of a provider."""
    return Row(*named(snapshot, slot), named(snapshot, snapshot.provider(slot).root), levels_of(snapshot, slot))


def _matches(part: str, uuid: str, name: str) -> bool:
    return part in name.casefold() or part == uuid.casefold()
