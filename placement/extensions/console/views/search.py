"""A search for providers by name, uuid, class, trait and aggregate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.extensions.console.views.cloud import ProviderName, provider_name
from placement.extensions.console.views.level import ClassLevel, levels_of
from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot

#: Orders of the list; the first is the default.
ORDERS = ("name", "-name", "tree", "-tree", "-used", "used")


@dataclass(frozen=True, slots=True)
class Criteria:
    """The conditions of a search; an empty condition matches every provider.

    Attributes:
        name: A part of the name, case-insensitive, or the uuid.
        resource_class: A class in the provider's inventory.
    """

    name: str = ""
    resource_class: str = ""
    trait: str = ""
    aggregate: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One provider in the result."""

    uuid: str
    name: str
    root: ProviderName
    levels: tuple[ClassLevel, ...]


def find_slots(criteria: Criteria, snapshot: Snapshot) -> list[int]:
    """Return the slots of the matching providers."""
    matches = SlotSet.dense(snapshot.forest.alive)
    if criteria.trait:
        matches &= snapshot.with_trait(criteria.trait)
    if criteria.aggregate:
        matches &= snapshot.in_aggregate(criteria.aggregate)
    slots: list[int] = matches.slots().tolist()
    if criteria.resource_class:
        class_id = snapshot.class_ids.get(criteria.resource_class)
        slots = [slot for slot in slots if class_id in snapshot.provider(slot).classes]
    if criteria.name:
        part = criteria.name.casefold()
        slots = [slot for slot in slots if _matches(part, *provider_name(snapshot, slot))]
    return slots


def sort_slots(slots: list[int], snapshot: Snapshot, order: str, resource_class: str) -> list[int]:
    """Return the slots, sorted.

    Args:
        order: One of ``ORDERS``: name, name of the tree, or used share of the fullest inventory; ``-`` reverses.
            In ascending order of names, providers named only by their uuid come last.
        resource_class: The class whose used share counts; empty for all classes.
    """

    def name(slot: int) -> tuple[bool, str]:
        uuid, display_name = provider_name(snapshot, slot)
        return display_name == uuid, display_name

    by_name = sorted(slots, key=name)
    match order.removeprefix("-"):
        case "name":
            return by_name[::-1] if order == "-name" else by_name
        case "tree":
            return sorted(by_name, key=lambda slot: name(snapshot.provider(slot).root), reverse=order == "-tree")
    shares = _used_shares(snapshot, resource_class)
    return sorted(by_name, key=lambda slot: shares[slot], reverse=order == "-used")


def _used_shares(snapshot: Snapshot, resource_class: str) -> list[float]:
    """Return the used share of each provider's fullest inventory, by slot: 1 if all is used, 0 without inventory."""
    shares = np.zeros(snapshot.size)
    only_column = snapshot.column(resource_class) if resource_class else None
    for column in snapshot.columns.values() if only_column is None else [only_column]:
        inventories = column.inventories()
        used_shares = inventories.used / np.maximum(inventories.capacity, 1)
        shares[inventories.slots] = np.maximum(shares[inventories.slots], used_shares)
    return shares.tolist()


def row(snapshot: Snapshot, slot: int) -> Row:
    """Return the row of a provider."""
    return Row(
        *provider_name(snapshot, slot), provider_name(snapshot, snapshot.provider(slot).root), levels_of(snapshot, slot)
    )


def _matches(part: str, uuid: str, name: str) -> bool:
    return part in name.casefold() or part == uuid.casefold()
