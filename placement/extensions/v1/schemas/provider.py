"""Documents of providers, and of the holders and sharing relations of a tree (docs: v1-overview)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from placement.extensions.v1.schemas import paging
from placement.index.column import Inventories, to_integers
from placement.index.snapshot import Snapshot
from placement.objects.claims.holding import Holding
from placement.schemas.dates import date
from placement.schemas.declarations import Object
from placement.schemas.document import Query

SHOW = Query(Object(*paging.CONSUMER_PAGE))
#: Providers shown of a sharing relation; a pool may serve thousands of trees.
_MAX_NAMED = 100


def reference(snapshot: Snapshot, slot: int) -> dict[str, Any]:
    """Return a reference to a provider: its uuid and name."""
    provider = snapshot.provider(slot)
    return {"uuid": provider.uuid, "name": provider.name}


def references(snapshot: Snapshot, slots: Sequence[int]) -> list[dict[str, Any]]:
    """Return the uuids and names of several providers."""
    rows = np.array(slots, dtype=np.intp)
    names = snapshot.providers.names(rows)
    return [{"uuid": uuid, "name": name} for uuid, name in zip(snapshot.providers.uuids(rows), names, strict=True)]


def documents(snapshot: Snapshot, slots: Sequence[int], consumers: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return the documents of providers, in the order of the slots.

    Args:
        snapshot: The snapshot of the providers.
        slots: The slots of the providers.
        consumers: The number of consumers with resources on a provider, by its id; a missing entry is 0.
    """
    traits: dict[frozenset[str], list[str]] = {}
    by_slot: dict[int, dict[str, Any]] = {}
    for slot in slots:
        provider = snapshot.provider(slot)
        names = traits.get(provider.traits)
        if names is None:
            names = traits[provider.traits] = sorted(provider.traits)
        by_slot[slot] = {
            **reference(snapshot, slot),
            "parent": None if provider.parent < 0 else reference(snapshot, provider.parent),
            "root": reference(snapshot, provider.root),
            "generation": snapshot.generations.item(slot),
            "traits": names,
            "aggregates": sorted(provider.aggregates),
            "consumers": consumers.get(provider.id, 0),
            "inventories": {},
        }
    ascending = np.sort(np.array(slots, dtype=np.intp))
    for class_id, column in sorted(snapshot.columns.items()):
        # A class has no name if a client deleted it while another client added an inventory of it.
        name = snapshot.class_names.get(class_id)
        if name is not None:
            for slot, inventory in _inventories(column.inventories_of(ascending)):
                by_slot[slot]["inventories"][name] = inventory
    return [by_slot[slot] for slot in slots]


def _inventories(inventories: Inventories) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the slot and the document of each inventory."""
    columns = (
        *(
            inventories.slots,
            inventories.total,
            inventories.reserved,
            inventories.min_unit,
            inventories.max_unit,
            inventories.step_size,
            inventories.allocation_ratio,
        ),
        inventories.used.astype(np.int64),
    )
    for slot, total, reserved, min_unit, max_unit, step_size, ratio, used, capacity in zip(
        *(column.tolist() for column in columns), to_integers(inventories.capacity), strict=True
    ):
        yield (
            slot,
            {
                "total": total,
                "reserved": reserved,
                "min_unit": min_unit,
                "max_unit": max_unit,
                "step_size": step_size,
                "allocation_ratio": ratio,
                "capacity": capacity,
                "used": used,
                "free": max(capacity - used, 0),
            },
        )


def holders(holdings: Iterable[Holding], uuids: frozenset[str]) -> list[dict[str, Any]]:
    """Return the resources held on some providers, with an entry for each consumer and provider.

    Args:
        holdings: The consumers.
        uuids: The uuids of the providers.
    """
    return [
        {
            "consumer": holder.uuid,
            "type": holder.consumer_type,
            "project": holder.project,
            "user": holder.user,
            "since": date(holder.created_at),
            "provider": {"uuid": amounts.provider, "name": amounts.name},
            "resources": amounts.resources,
        }
        for holder in holdings
        for amounts in holder.held.values()
        if amounts.provider in uuids
    ]


def count_with_examples(snapshot: Snapshot, slots: Sequence[int]) -> dict[str, Any]:
    """Return the number of providers, and references to the first providers."""
    return {"count": len(slots), "providers": references(snapshot, slots[:_MAX_NAMED])}
