"""Edited copies of a snapshot, which share everything unchanged with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from copy import copy
from typing import TypeVar

from placement.index.build import name_classes, slots_for
from placement.index.column import ABSENT, Amounts, Column
from placement.index.providers import ChangedProvider, Provider
from placement.index.records import Rows
from placement.index.slot_sets import SlotSets
from placement.index.slots import EMPTY
from placement.index.snapshot import Snapshot, amounts_of
from placement.objects.ancestry import CycleError, add_root

#: The providers in the slots that change; None in a slot without a provider.
Occupants = Mapping[int, ChangedProvider | None]


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class OutOfStepError(LookupError):
    """A change does not fit the snapshot, which has missed an earlier change and must be built again."""


def group(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Group the second elements of the pairs by the first."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def with_usage(snapshot: Snapshot, generations: Mapping[int, int], usages: Iterable[tuple[int, int, int]]) -> Snapshot:
    """Return the snapshot with new generations and usages of some providers.

    Args:
        generations: Generations by provider id.
        usages: Provider id, class id and amount, for all usages of these providers.

    Raises:
        OutOfStepError: A provider is not in the snapshot.
    """
    try:
        slots = {snapshot.by_id[provider_id]: generation for provider_id, generation in generations.items()}
    except KeyError as error:
        raise OutOfStepError(*error.args) from None
    used: dict[int, dict[int, int]] = defaultdict(dict)
    for slot in slots:
        for class_id in snapshot.provider(slot).classes:
            used[class_id][slot] = 0
    for provider_id, class_id, amount in usages:
        if (slot := snapshot.by_id[provider_id]) in used.get(class_id, ()):
            used[class_id][slot] = amount
    edited = with_usage_by_slot(snapshot, used)
    edited.generations = snapshot.generations.with_changes(slots)
    return edited


def with_usage_by_slot(snapshot: Snapshot, used: Mapping[int, Mapping[int, int]]) -> Snapshot:
    """Return the snapshot with new usages of some inventories, and unchanged generations.

    Args:
        used: Amounts by class id and slot; the providers must have inventory in the class.
    """
    edited = copy(snapshot)
    columns = {class_id: snapshot.columns[class_id].with_usage(by_slot) for class_id, by_slot in used.items()}
    edited.columns = {**snapshot.columns, **columns}
    return edited


def with_classes(snapshot: Snapshot, class_names: Mapping[int, str]) -> Snapshot:
    """Return the snapshot with new names of resource classes."""
    edited = copy(snapshot)
    edited.class_names, edited.class_ids = name_classes(class_names)
    return edited


def with_providers(snapshot: Snapshot, ids: Collection[int], rows: Rows) -> Snapshot:
    """Return the snapshot with some providers replaced by their rows; providers without a row are removed.

    Args:
        ids: The providers that may have changed.
        rows: All rows of these providers.

    Raises:
        OutOfStepError: A parent is not in the snapshot, or a descendant of a moved provider has not moved.
    """
    edited = copy(snapshot)
    slots, freed = _assign_slots(snapshot, ids, {row[0]: row[1] for row in rows.providers})
    changed_slots = [*slots.values(), *freed]
    before: Occupants = {slot: _copy(snapshot.providers.get(slot)) for slot in changed_slots}
    after: Occupants = dict.fromkeys(changed_slots) | _providers(rows, snapshot, slots)

    _check_descendants(snapshot, before, after)

    different = {slot: provider for slot, provider in after.items() if provider != before[slot]}
    if different:
        edited.providers = snapshot.providers.with_changes(different)
    size = snapshot.size if edited.providers.end <= snapshot.size else slots_for(edited.providers.end)
    edited.generations = snapshot.generations.with_changes({slots[row[0]]: row[3] or 0 for row in rows.providers})
    if size != snapshot.size or _roots(before) != _roots(after):
        edited.forest = snapshot.forest.with_roots(_roots(after), size)
    edited.columns = _columns(snapshot.columns, before, _inventories(rows, slots))
    if rows.trait_ids.items() - snapshot.trait_ids.items():
        edited.trait_ids = {**snapshot.trait_ids, **rows.trait_ids}
    traits, aggregates = snapshot.traits, snapshot.aggregates
    if size != snapshot.size:
        traits, aggregates = _resize(traits, size), _resize(aggregates, size)
    edited.traits = _sets(traits, before, after, lambda provider: provider.traits, size)
    edited.aggregates = _sets(aggregates, before, after, lambda provider: provider.aggregates, size)
    return edited


def _assign_slots(
    snapshot: Snapshot, ids: Collection[int], uuids: Mapping[int, str]
) -> tuple[dict[int, int], list[int]]:
    """Return the slot of each existing provider, by id, and the slots of the deleted providers.

    Args:
        snapshot: The snapshot; its slots without a provider are used first.
        ids: The providers that may have changed.
        uuids: The uuids of the existing providers, by id.
    """
    old_slots = {id_: slot for id_ in ids if (slot := snapshot.by_id.get(id_)) is not None}
    freed = [slot for id_, slot in old_slots.items() if id_ not in uuids]
    slots = {id_: old_slots[id_] for id_ in uuids if id_ in old_slots}
    free, next_slot = [*snapshot.providers.free_slots(), *freed], snapshot.providers.end
    for id_ in uuids:
        if id_ not in slots:
            slots[id_], next_slot = (free.pop(), next_slot) if free else (next_slot, next_slot + 1)
    return slots, [*set(freed).difference(slots.values())]


def _providers(rows: Rows, snapshot: Snapshot, slots: Mapping[int, int]) -> dict[int, ChangedProvider | None]:
    """Return the providers of the rows by slot."""
    traits, aggregates = group(rows.traits), group(rows.aggregates)
    classes = group((row[0], row[1]) for row in rows.inventories)
    providers: dict[int, ChangedProvider | None] = {}
    try:
        parents = {
            slots[row[0]]: None if row[4] is None else _slot_of(row[4], slots, snapshot) for row in rows.providers
        }
        root_of = _roots_of(parents, snapshot)
    except (KeyError, CycleError) as error:
        raise OutOfStepError(*error.args) from None
    for provider_id, uuid, name, *_ in rows.providers:
        slot = slots[provider_id]
        parent = parents[slot]
        providers[slot] = ChangedProvider(
            id=provider_id,
            uuid=uuid,
            name=name,
            parent=-1 if parent is None else parent,
            root=root_of[slot],
            classes=tuple(sorted(classes.get(provider_id, ()))),
            traits=frozenset(traits.get(provider_id, ())),
            aggregates=frozenset(aggregates.get(provider_id, ())),
        )
    return providers


def _copy(provider: Provider | None) -> ChangedProvider | None:
    return None if provider is None else ChangedProvider.copy(provider)


def _slot_of(provider_id: int, slots: Mapping[int, int], snapshot: Snapshot) -> int:
    """Return the slot of a provider that may be new, or raise KeyError."""
    return slots[provider_id] if provider_id in slots else snapshot.by_id[provider_id]


def _roots_of(parents: Mapping[int, int | None], snapshot: Snapshot) -> dict[int, int]:
    """Return the root of each slot in ``parents``, and of its ancestors, or raise CycleError."""

    def parent_of(slot: int) -> int | None:
        if slot in parents:
            return parents[slot]
        parent = snapshot.provider(slot).parent
        return None if parent < 0 else parent

    root_of: dict[int, int] = {}
    for slot in parents:
        add_root(slot, parent_of, root_of)
    return root_of


def _check_descendants(snapshot: Snapshot, before: Occupants, after: Occupants) -> None:
    """Raise OutOfStepError unless all descendants of a moved provider have moved with it."""
    roots = _roots(after)
    moved = {slot for slot, root in _roots(before).items() if root is not None and roots[slot] != root}
    for root in {provider.root for slot in moved if (provider := before[slot])}:
        for slot in snapshot.forest.tree(root):
            if slot not in after and snapshot.provider(slot).parent in moved:
                raise OutOfStepError(snapshot.provider(slot).id)


def _roots(occupants: Occupants) -> dict[int, int | None]:
    return {slot: None if provider is None else provider.root for slot, provider in occupants.items()}


def _inventories(rows: Rows, by_id: Mapping[int, int]) -> dict[int, dict[int, Amounts]]:
    """Return the inventories of the rows, by class id and slot."""
    used = {(provider_id, class_id): amount for provider_id, class_id, amount in rows.usages}
    inventories: dict[int, dict[int, Amounts]] = defaultdict(dict)
    for row in rows.inventories:
        inventories[row[1]][by_id[row[0]]] = amounts_of(row, used.get((row[0], row[1]), 0))
    return inventories


def _columns(
    columns: Mapping[int, Column], before: Occupants, inventories: dict[int, dict[int, Amounts]]
) -> Mapping[int, Column]:
    for slot, provider in before.items():
        for class_id in () if provider is None else provider.classes:
            inventories.setdefault(class_id, {}).setdefault(slot, ABSENT)
    edited = dict(columns)
    for class_id, changes in inventories.items():
        column = columns.get(class_id) or Column.empty()
        different = {slot: inventory for slot, inventory in changes.items() if column.amounts(slot) != inventory}
        if different:
            edited[class_id] = column.with_inventories(different)
    return edited


def _resize(sets: SlotSets, size: int) -> SlotSets:
    """Return the sets for a snapshot with more slots."""
    return sets.with_changes({name: members.resize(size) for name, members in sets.items() if not members.is_sparse})


def _sets(
    sets: SlotSets, before: Occupants, after: Occupants, names: Callable[[Provider], Iterable[str]], size: int
) -> SlotSets:
    """Return the slot sets by trait or by aggregate; ``names`` returns the traits or aggregates of a provider."""
    added: dict[str, list[int]] = defaultdict(list)
    removed: dict[str, list[int]] = defaultdict(list)
    for slot, provider in after.items():
        occupant = before[slot]
        old_names = frozenset(() if occupant is None else names(occupant))
        new_names = frozenset(() if provider is None else names(provider))
        for name in new_names - old_names:
            added[name].append(slot)
        for name in old_names - new_names:
            removed[name].append(slot)
    changed = added.keys() | removed.keys()
    if not changed:
        return sets
    return sets.with_changes(
        {name: sets.get(name, EMPTY).with_changes(added[name], removed[name], size) for name in changed}
    )
