"""The contents of a snapshot as rows, from which an equal snapshot without changed rows can be built."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placement.index.column import LARGEST_AMOUNT
from placement.index.slot_sets import SlotSets
from placement.index.slots import Slots
from placement.index.snapshot import Snapshot
from placement.index.tables import NULL, Floats, Integers, Tables


def tables_of(snapshot: Snapshot) -> Tables:
    """Return the rows of a snapshot."""
    providers = snapshot.providers
    slots = providers.slots()
    slots = slots[np.argsort(providers.ids(slots))]
    # The id of the provider in each slot.  The last element is read for slot -1, the parent of a root.
    ids = np.full(snapshot.size + 1, NULL, dtype=np.int64)
    ids[slots] = providers.ids(slots)
    names, nameless = providers.name_array(slots)
    inventories, usages = _amounts(snapshot, ids)
    aggregate_ids = {name: number for number, name in enumerate(snapshot.aggregates, 1)}
    trait_ids = {name: snapshot.trait_ids[name] for name in snapshot.traits}
    return Tables(
        ids=ids[slots],
        uuids=providers.uuid_array(slots),
        names=names,
        nameless=nameless,
        generations=snapshot.generations[slots],
        parents=ids[providers.parents(slots)],
        roots=ids[snapshot.forest.roots(slots)],
        inventories=inventories,
        usages=usages,
        traits=_members(snapshot.traits, trait_ids, ids),
        trait_names={id_: name for name, id_ in trait_ids.items()},
        aggregates=_members(snapshot.aggregates, aggregate_ids, ids),
        aggregate_names={id_: name for name, id_ in aggregate_ids.items()},
    )


def _amounts(snapshot: Snapshot, ids: Integers) -> tuple[Floats, Floats]:
    """Return the rows of inventories and of usages."""
    inventories, usages = [np.empty((0, 8))], [np.empty((0, 3))]
    for class_id, column in snapshot.columns.items():
        slots, capacity, used, min_unit, max_unit, step_size, total, reserved, ratio = column.inventories()
        owners, classes = ids[slots], np.full(len(slots), class_id)
        # The capacity was computed before a larger total was clamped.
        is_clamped = (np.abs(total) == LARGEST_AMOUNT) & (ratio != 0)
        totals = total.astype(np.float64)
        totals[is_clamped] = np.rint((capacity / np.where(is_clamped, ratio, 1) + reserved)[is_clamped])
        inventories.append(np.stack((owners, classes, totals, reserved, min_unit, max_unit, step_size, ratio), axis=1))
        usages.append(np.stack((owners, classes, used), axis=1))
    return np.concatenate(inventories), np.concatenate(usages)


def _members(sets: SlotSets, numbers: Mapping[str, int], ids: Integers) -> Integers:
    """Return rows of provider id and number of the set."""
    members: list[Slots] = [members.slots() for members in sets.values()]
    counts = np.fromiter(map(len, members), np.int64, len(members))
    owners = ids[np.concatenate(members)] if members else np.empty(0, np.int64)
    return np.stack((owners, np.repeat([numbers[name] for name in sets], counts).astype(np.int64)), axis=1)
