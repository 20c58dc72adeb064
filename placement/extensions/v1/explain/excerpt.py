"""A snapshot of a few providers: what a tree can be supplied by, so that it is searched without all others."""

from __future__ import annotations

from collections.abc import Iterable

from placement.index.build import build
from placement.index.records import Rows
from placement.index.slots import SlotSet
from placement.index.snapshot import SHARES, Provider, Snapshot

#: So many sharing providers are taken at most.
_SHARING = 256


def usable(snapshot: Snapshot, root: int) -> list[int]:
    """Return the providers that can supply a tree: its own, and those that share with it."""
    tree = snapshot.forest.tree(root)
    aggregates = frozenset().union(*(snapshot.provider(slot).aggregates for slot in tree))
    sharing = snapshot.with_trait(SHARES)
    if not aggregates or not sharing:
        return list(tree)
    inside = SlotSet.union([snapshot.in_aggregate(name) for name in aggregates], snapshot.size)
    return list(dict.fromkeys([*tree, *(sharing & inside).slots()[:_SHARING].tolist()]))


def excerpt(snapshot: Snapshot, slots: Iterable[int]) -> Snapshot:
    """Return a snapshot of these providers and those above them; it has slots of its own."""
    taken = dict.fromkeys(up for slot in slots for up in snapshot.ancestry(slot))
    providers = [snapshot.provider(slot) for slot in taken]
    inventories, usages = [], []
    for slot, provider in zip(taken, providers, strict=True):
        for class_id in provider.classes:
            _, used, min_unit, max_unit, step, total, reserved, ratio = snapshot.columns[class_id].amounts(slot)
            inventories.append((provider.id, class_id, total, reserved, min_unit, max_unit, step, ratio))
            usages.append((provider.id, class_id, used))
    rows = Rows(
        providers=[_row(snapshot, provider) for provider in providers],
        inventories=inventories,
        usages=usages,
        traits=[(provider.id, trait) for provider in providers for trait in provider.traits],
        aggregates=[(provider.id, name) for provider in providers for name in provider.aggregates],
        trait_ids=snapshot.trait_ids,
    )
    return build(rows, snapshot.class_names)


def _row(snapshot: Snapshot, provider: Provider) -> tuple[int, str, str | None, int, int | None, int]:
    parent = None if provider.parent < 0 else snapshot.provider(provider.parent).id
    return provider.id, provider.uuid, provider.name, 0, parent, snapshot.provider(provider.root).id
