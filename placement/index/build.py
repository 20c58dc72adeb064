"""Construction of a snapshot from the rows of a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.index import inconsistent, packed_uuids
from placement.index.arrays import Arrays, join, part
from placement.index.column import Column, capacity_and_ratio, column_arrays
from placement.index.forest import Forest, forest_arrays
from placement.index.key_index import key_arrays
from placement.index.member_sets import intern_sets
from placement.index.patched import PatchedArray
from placement.index.providers import ProviderArrays, Providers
from placement.index.slot_sets import SlotSets, slot_set_arrays
from placement.index.slots import Slots
from placement.index.snapshot import Snapshot
from placement.index.tables import NULL, Integers, Tables
from placement.index.texts import Texts

#: Spare slots of a snapshot, so that its arrays need not grow with every new provider: a constant, and one for every
#: _PROVIDERS_PER_SPARE_SLOT providers.
SPARE_SLOTS = 64
_PROVIDERS_PER_SPARE_SLOT = 8


class Names(NamedTuple):
    """The names in a snapshot."""

    #: Names of resource classes by id.
    classes: Mapping[int, str]
    #: Ids by name, of all traits of providers.
    trait_ids: Mapping[str, int]
    #: The traits and aggregates of providers, to which the arrays refer by number.
    traits: list[str]
    aggregates: list[str]


def slots_for(count: int) -> int:
    """Return the number of slots for ``count`` providers, spare slots included."""
    return count + count // _PROVIDERS_PER_SPARE_SLOT + SPARE_SLOTS


def build(tables: Tables, class_names: Mapping[int, str]) -> Snapshot:
    """Return a snapshot of all providers."""
    return from_arrays(*build_arrays(tables, class_names))


def from_arrays(arrays: Arrays, names: Names) -> Snapshot:
    """Return the snapshot that consists of these arrays, which are not copied."""
    snapshot = Snapshot()
    forest = part(arrays, "forest")
    providers = ProviderArrays(part(arrays, "providers"), forest["root"], names.traits, names.aggregates)
    snapshot.providers = Providers(providers, {})
    snapshot.generations = PatchedArray(arrays["generations"])
    snapshot.forest = Forest(forest, {})
    columns = part(arrays, "columns")
    class_ids = {int(name.partition("/")[0]) for name in columns}
    snapshot.columns = {class_id: Column.from_arrays(part(columns, str(class_id))) for class_id in sorted(class_ids)}
    snapshot.traits = SlotSets.from_arrays(part(arrays, "traits"), names.traits)
    snapshot.aggregates = SlotSets.from_arrays(part(arrays, "aggregates"), names.aggregates)
    snapshot.trait_ids = names.trait_ids
    snapshot.class_names, snapshot.class_ids = name_classes(names.classes)
    return snapshot


def build_arrays(tables: Tables, class_names: Mapping[int, str]) -> tuple[Arrays, Names]:
    """Return the arrays of a snapshot of all providers, and the names to which they refer."""
    size = slots_for(len(tables.ids))
    parents, roots = inconsistent.parents_and_roots(tables)
    trait_pairs, traits = _members(tables.ids, tables.traits, tables.trait_names, "trait")
    aggregate_pairs, aggregates = _members(tables.ids, tables.aggregates, tables.aggregate_names, "aggregate")
    class_pairs, columns = _columns(tables, size)
    sets = {"classes": class_pairs, "traits": trait_pairs, "aggregates": aggregate_pairs}
    parts = {
        "providers": {
            **_providers(tables, parents),
            **join({name: intern_sets(_sort_pairs(pairs), len(tables.ids)) for name, pairs in sets.items()}),
        },
        "forest": forest_arrays(roots, size),
        "columns": columns,
        "traits": slot_set_arrays(_sort_pairs(trait_pairs, 1), len(traits), size),
        "aggregates": slot_set_arrays(_sort_pairs(aggregate_pairs, 1), len(aggregates), size),
    }
    ids = {name: id_ for id_, name in tables.trait_names.items() if name is not None}
    names = Names(dict(class_names), ids, traits, aggregates)
    generations = np.where(tables.generations == NULL, 0, tables.generations)
    return {**join(parts), "generations": generations}, names


def name_classes(class_names: Mapping[int, str]) -> tuple[dict[int, str], dict[str, int]]:
    """Return the names of the resource classes by id, and their ids by name."""
    return dict(class_names), {name: class_id for class_id, name in class_names.items()}


def _sort_pairs(pairs: Integers, by: int = 0) -> Integers:
    """Return the pairs sorted by one of the two numbers, and then by the other one."""
    return pairs[np.lexsort((pairs[:, 1 - by], pairs[:, by]))]


def _providers(tables: Tables, parents: Slots) -> Arrays:
    slots = np.arange(len(tables.ids))
    uuids, is_packed = packed_uuids.pack(tables.uuids)
    unpacked = np.flatnonzero(~is_packed)
    other_uuids = Texts.of(tables.uuids.select(unpacked))
    named = ~tables.nameless
    indexes: dict[str, Arrays] = {
        "by_uuid": key_arrays(packed_uuids.hashes(uuids[is_packed]), slots[is_packed]),
        "by_name": key_arrays(tables.names.hashes()[named], slots[named]),
        "names": {"data": tables.names.data, "offsets": tables.names.offsets},
        "other_uuids": {"data": other_uuids.data, "offsets": other_uuids.offsets},
    }
    return {
        "ids": tables.ids,
        "uuids": uuids,
        "other_slots": unpacked,
        "nameless": tables.nameless,
        "parents": parents,
        **join(indexes),
    }


def _slots_of(ids: Integers, provider_ids: npt.NDArray[np.number]) -> tuple[Slots, npt.NDArray[np.bool_]]:
    """Return the slots of the providers with these ids, and a mask of the ids that exist; the others are left out."""
    if not len(ids):
        return np.empty(0, np.intp), np.zeros(len(provider_ids), np.bool_)
    slots = np.minimum(np.searchsorted(ids, provider_ids), len(ids) - 1)
    exists = ids[slots] == provider_ids
    return slots[exists], exists


def _members(ids: Integers, rows: Integers, names: Mapping[int, str | None], kind: str) -> tuple[Integers, list[str]]:
    """Return rows of slot and number of a name, and the names.

    Args:
        ids: The ids of all providers, ascending.
        rows: Rows of provider id and trait id, or aggregate id.
        names: The traits or aggregates by id.
        kind: The kind of the names, for messages.
    """
    rows = inconsistent.with_names(rows, names, kind)
    slots, exists = _slots_of(ids, rows[:, 0])
    named_ids, numbers = np.unique(rows[exists, 1], return_inverse=True)
    return np.stack((slots, numbers), axis=1), [names[named_id] or "" for named_id in named_ids.tolist()]


def _columns(tables: Tables, size: int) -> tuple[Integers, Arrays]:
    """Return rows of slot and class id for all inventories, and the arrays of the columns."""
    slots, exists = _slots_of(tables.ids, tables.inventories[:, 0])
    classes = tables.inventories[exists, 1].astype(np.int64)
    usage_slots, exists_usage = _slots_of(tables.ids, tables.usages[:, 0])
    usage_classes, usages = tables.usages[exists_usage, 1], tables.usages[exists_usage, 2]
    columns = {}
    for class_id in np.unique(classes).tolist():
        of_class = classes == class_id
        class_slots = slots[of_class]
        order = np.argsort(class_slots, kind="stable")
        rows = np.flatnonzero(exists)[of_class][order]
        total, reserved, min_unit, max_unit, step_size, ratio = tables.inventories[rows, 2:].T
        used = np.zeros(size)
        used_here = usage_classes == class_id
        used[usage_slots[used_here]] = usages[used_here]
        capacity, ratio = capacity_and_ratio(total, reserved, ratio)
        class_slots = class_slots[order]
        fields = (capacity, used[class_slots], min_unit, max_unit, step_size, total, reserved, ratio)
        columns[str(class_id)] = column_arrays(class_slots, fields, size)
    return np.stack((slots, classes), axis=1), join(columns)
