"""The contents of a snapshot, independent of its slots, so that two snapshots can be compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from placement.index.column import Amounts
from placement.index.slots import Mask, SlotSet
from placement.index.snapshot import Snapshot


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """Return all facts about a snapshot, each by every method that returns it."""
    size = snapshot.size
    slots = sorted(snapshot.by_uuid.values())
    uuid = {slot: snapshot.provider(slot).uuid for slot in slots}
    assert all(snapshot.by_uuid[uuid[slot]] == slot == snapshot.by_id[snapshot.provider(slot).id] for slot in slots)
    assert snapshot.providers.slots().tolist() == slots
    assert set(snapshot.providers.free_slots()).isdisjoint(slots)
    assert all(snapshot.providers.get(slot) is None for slot in snapshot.providers.free_slots())

    def uuids(numbers: Any) -> list[str]:
        return sorted(uuid[int(slot)] for slot in numbers)

    def in_mask(mask: Mask) -> list[str]:
        assert len(mask) == size
        return uuids(np.flatnonzero(mask))

    def in_set(slot_set: SlotSet) -> list[str]:
        assert slot_set.is_sparse or slot_set.size == size
        assert [*slot_set.slots()] == [*np.flatnonzero(slot_set.mask(size))]
        assert slot_set.count == len(slot_set.slots())
        return uuids(slot_set.slots())

    for column in snapshot.columns.values():
        available = column.available(size)
        assert len(available) == size
        assert all(available[slot] == column.amounts(slot).available for slot in slots)

    for trait in snapshot.trait_ids:
        has_members = any(trait in snapshot.provider(slot).traits for slot in slots)
        assert (trait in snapshot.traits) == (snapshot.traits.get(trait) is not None) == has_members

    forest = snapshot.forest
    all_slots = np.array(slots, dtype=np.intp)
    return {
        "providers": {
            uuid[slot]: (
                provider := snapshot.provider(slot),
                provider.id,
                provider.name,
                snapshot.generations.item(slot),
                uuid.get(provider.parent),
                uuid.get(int(snapshot.providers.parents(np.array([slot]))[0])),
                uuid[provider.root],
                [uuid[other] for other in snapshot.ancestry(slot)],
                uuids(forest.tree(provider.root)),
                provider.classes,
                provider.traits,
                provider.aggregates,
            )[1:]
            for slot in slots
        },
        "inventories": {
            class_id: {uuid[slot]: comparable(column.amounts(slot)) for slot in slots}
            for class_id, column in snapshot.columns.items()
        },
        "fitting": {
            (class_id, amount): in_set(column.fitting_slots(amount, SlotSet.dense(forest.alive)))
            for class_id, column in snapshot.columns.items()
            for amount in (1, 2, 3)
        },
        "fitting among all": {
            (class_id, amount): in_set(column.fitting_slots(amount, SlotSet.sparse(all_slots)))
            for class_id, column in snapshot.columns.items()
            for amount in (1, 2, 3)
        },
        "traits": {trait: in_set(snapshot.with_trait(trait)) for trait in snapshot.traits},
        "aggregates": {name: in_set(snapshot.in_aggregate(name)) for name in snapshot.aggregates},
        "alive": in_mask(forest.alive),
        "roots": in_mask(forest.is_root),
        "lone": in_mask(forest.is_lone),
        "children": uuids(forest.children),
        "classes": dict(snapshot.class_names),
        "trait ids": {trait: snapshot.trait_ids[trait] for trait in snapshot.traits},
    }


def comparable(amounts: Amounts) -> Amounts:
    """Return the amounts with NaN replaced by None as the ratio, because NaN does not equal itself."""
    return amounts._replace(allocation_ratio=None) if math.isnan(amounts.allocation_ratio) else amounts


def meaning(snapshot: Snapshot) -> dict[str, Any]:
    """Return the contents without classes that no provider has any more: a snapshot may keep empty columns."""
    facts = contents(snapshot)
    used_classes = {
        class_id
        for class_id, column in facts["inventories"].items()
        if any(amounts.max_unit for amounts in column.values())
    }
    facts["inventories"] = {
        class_id: column for class_id, column in facts["inventories"].items() if class_id in used_classes
    }
    for name in ("fitting", "fitting among all"):
        facts[name] = {key: uuids for key, uuids in facts[name].items() if key[0] in used_classes}
    return facts
