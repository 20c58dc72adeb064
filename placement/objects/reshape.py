"""The reshaper: inventories and allocations move together, so that nothing is counted twice or not at all meanwhile.

Used when what a host reports changes its form, for instance when a GPU moves from the host to a provider of its own:
neither inventory nor allocations could go first.
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
    """All inventories that one provider is to have from now on, and the generation that the client states."""

    generation: int
    records: Sequence[Inventory]


def reshape(db: Transaction, inventories: Mapping[str, NewInventories], claims: Sequence[Claim]) -> None:
    """Give the providers (by uuid) these inventories and the consumers these allocations, all of it or nothing.

    Claims are judged while every provider has both what it had and what it gets, the new definitions winning.  The
    generation of a provider moves with each step that changes it, up to three times (docs: api-reshaper-steps).

    Raises:
        ReshapedProviderNotFound, ReshapedGenerationConflict: A provider is not as the client states.
        UnknownResourceClass: A new inventory or a claim is of a class that does not exist.
        InventoryInUse: A class that would go is allocated.
        Failure: As ``ClaimSet.place``.
    """
    ids = ResourceProvider.ids(db, set(inventories).union(*(claim.resources for claim in claims)))
    # Compared before the locks, too, only so that this refusal comes before those about consumers.
    _check_generations(inventories, {found.uuid: found for found in ResourceProvider.of_ids(db, ids.values())})
    reshaped_ids = {ids[uuid] for uuid in inventories}

    def add_inventories(claimed_ids: set[int]) -> None:
        """Give the providers their new inventories, and leave them those that they have."""
        providers = LockedProvider.lock_all(db, reshaped_ids | claimed_ids)
        _check_generations(inventories, {uuid: provider.record for uuid, provider in providers.items()})
        classes = dict.fromkeys(record.resource_class for new in inventories.values() for record in new.records)
        # In one order for all providers, so that two reshapes do not deadlock.
        ResourceClass.hold(db, ResourceClass.ids(db, classes))
        for uuid, new in inventories.items():
            if new.records:
                providers[uuid].replace_inventories(new.records, keep_others=True)

    with errors.prefixed("malformed reshaper data: ", errors.UnknownResourceClass):
        ClaimSet(db, claims).place(ids, add_inventories)
    # Locked again, which waits for nothing: the claims have advanced some of them.
    providers = LockedProvider.lock_all(db, reshaped_ids)
    with errors.prefixed("update conflict: ", errors.InventoryInUse):
        for uuid, new in inventories.items():
            providers[uuid].replace_inventories(new.records)


def _check_generations(inventories: Mapping[str, NewInventories], providers: Mapping[str, ResourceProvider]) -> None:
    for uuid, new in inventories.items():
        if uuid not in providers:
            raise errors.ReshapedProviderNotFound(uuid=uuid)
        actual = providers[uuid].generation
        if new.generation != actual:
            raise errors.ReshapedGenerationConflict(uuid=uuid, actual=actual, given=new.generation)
