"""The reshaper: inventories and allocations moved together, so that nothing is ever counted twice or not at all.

Used when what a host reports changes its form, a GPU moving from the host to a provider of its own, say: neither
inventory nor allocations could go first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from placement import errors
from placement.db.transaction import Transaction
from placement.objects.claim import Claim, check_named, left, named, read_consumers, settle, write_consumers
from placement.objects.inventory import Inventory
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass


@dataclass(frozen=True, slots=True)
class NewInventory:
    """All that one provider is to have from now on, guarded by its generation."""

    generation: int
    records: Sequence[Inventory]


def reshape(db: Transaction, inventories: Mapping[str, NewInventory], claims: Sequence[Claim]) -> None:
    """Give the providers these inventories and the consumers these allocations, all of it or nothing.

    Claims are judged while every provider has both what it had and what it gets, the new definitions winning.  The
    generation of a provider moves with each step that changes it, up to three times (contract 3.8).
    """
    ids = ResourceProvider.ids(db, set(inventories).union(*(claim.resources for claim in claims)))
    # Looked at before the locks, only so that this refusal comes before those about consumers.
    _check_generations(inventories, _of_ids(db, ids.values()))
    consumers = read_consumers(db, claims)
    check_named(claims, ids)
    write_consumers(db, claims, consumers)
    providers = ResourceProvider.lock_all(db, inventories, named(claims, ids) | left(claims, consumers))
    _check_generations(inventories, providers)
    classes = dict.fromkeys(record.resource_class for new in inventories.values() for record in new.records)
    with errors.saying("malformed reshaper data: ", errors.UnknownResourceClass):
        # In one order for all providers, so that two reshapes do not wait for each other.
        ResourceClass.hold(db, ResourceClass.ids(db, classes))
        for uuid, new in inventories.items():
            if new.records:
                Inventory.replace(db, providers[uuid], new.records, keeping=True)
        settle(db, claims, consumers, ids)
    with errors.saying("update conflict: ", errors.InventoryInUse):
        for uuid, new in inventories.items():
            Inventory.replace(db, providers[uuid], new.records)
    for uuid, provider in _of_ids(db, [providers[uuid].id for uuid in inventories]).items():
        provider.advance(db, by=2 if inventories[uuid].records else 1)


def _check_generations(inventories: Mapping[str, NewInventory], providers: Mapping[str, ResourceProvider]) -> None:
    for uuid, new in inventories.items():
        if uuid not in providers:
            raise errors.ReshapedProviderNotFound(uuid=uuid)
        actual = providers[uuid].generation
        if new.generation != actual:
            raise errors.ReshapedGenerationConflict(uuid=uuid, actual=actual, given=new.generation)


def _of_ids(db: Transaction, ids: Collection[int]) -> dict[str, ResourceProvider]:
    """The providers by uuid; of locked ones, with the generations that this transaction has moved."""
    return {provider.uuid: provider for provider in ResourceProvider.of_ids(db, ids)}
