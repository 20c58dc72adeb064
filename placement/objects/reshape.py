"""The reshaper: a change of inventories and allocations in one transaction.

It serves a change of the provider tree, for example from a host with GPUs to a host with a child provider for each GPU.
Neither the inventories nor the allocations could be moved first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement import errors
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass


@dataclass(frozen=True, slots=True)
class NewInventories:
    """The new inventories of one provider, and the generation that the client states."""

    generation: int
    records: Sequence[Inventory]


def reshape(db: Transaction, inventories: Mapping[str, NewInventories], claims: Sequence[Claim]) -> None:
    """Replace the inventories of the providers (by uuid) and place the claims, all or nothing.

    Claims are judged while every provider has both its old and its new inventories; where a class is in both, the new
    inventory applies.  The generation of a provider advances with each step that changes it, up to three times
    (docs: api-reshaper-steps).

    Raises:
        ReshapedProviderNotFound: A provider does not exist.
        ReshapedGenerationConflict: A provider has another generation than the client states.
        UnknownResourceClass: A new inventory or a claim is of a class that does not exist.
        InventoryInUse: An inventory to be removed has allocations.
        Failure: As for ``ClaimSet.place``.
    """
    ids = ResourceProvider.ids(db, set(inventories).union(*(claim.resources for claim in claims)))
    # Also compared before the locks, so that this failure precedes failures about consumers.
    providers_read = ResourceProvider.of_ids(db, ids.values())
    _check_generations(inventories, {provider.uuid: provider for provider in providers_read})
    reshaped_ids = {ids[uuid] for uuid in inventories}

    def add_inventories(claimed_ids: set[int]) -> None:
        """Add the new inventories, and keep the old inventories."""
        providers = LockedProvider.lock_all(db, reshaped_ids | claimed_ids)
        _check_generations(inventories, {uuid: provider.record for uuid, provider in providers.items()})
        classes = dict.fromkeys(record.resource_class for new in inventories.values() for record in new.records)
        # For all providers together, in the order of the ids, so that two reshapes do not deadlock.
        ResourceClass.pin(db, ResourceClass.ids(db, classes))
        for uuid, new in inventories.items():
            if new.records:
                providers[uuid].replace_inventories(new.records, keep_others=True)

    with errors.prefix_failures("malformed reshaper data: ", errors.UnknownResourceClass):
        ClaimSet(db, claims).place(ids, add_inventories)
    # Read again, because the claims have advanced some of them; the rows are still locked.
    providers = LockedProvider.lock_all(db, reshaped_ids)
    with errors.prefix_failures("update conflict: ", errors.InventoryInUse):
        for uuid, new in inventories.items():
            providers[uuid].replace_inventories(new.records)


def _check_generations(inventories: Mapping[str, NewInventories], providers: Mapping[str, ResourceProvider]) -> None:
    for uuid, new in inventories.items():
        if uuid not in providers:
            raise errors.ReshapedProviderNotFound(uuid=uuid)
        actual = providers[uuid].generation
        if new.generation != actual:
            raise errors.ReshapedGenerationConflict(uuid=uuid, actual=actual, given=new.generation)
