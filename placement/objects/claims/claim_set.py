"""Claims: consumers take, move and give back what providers have.

The order of the steps makes it correct (docs/architecture.rst, "A claim"):

1. read the consumers with what they hold, and find the providers;
2. write the consumers' rows, each only if it is still the one that was read: from here on no other transaction can
   change what these consumers hold.  Where the client states no generation, transactions about the same consumer wait
   here for each other, and what it holds is read once more;
3. advance the providers' generations, which locks their rows in the order of their ids: from here on no other
   transaction can add usage to them;
4. only then read inventories and usage, and decide by the one fit rule, against what others use;
5. replace what the consumers hold.

Claims of new consumers on the same providers may be added between the steps 3 and 4.  Their consumers are written while
the providers are locked, against the order above: a transaction that claims for the same new consumer at this moment
deadlocks with this one, and the database ends one of the two.

Usage of others can still shrink, since giving back locks no provider; that only makes room.  A transaction that waits
does so at step 2 or 3, and has locked nothing by then that those before it need.  Steps 1 and 2 come before the lock of
step 3, so a busy provider is locked for as few round trips as possible (docs/adr/0007).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from placement import errors
from placement.db.writes.transaction import Collision, Transaction
from placement.objects import provider_rows
from placement.objects.claims import allocation_rows, leases
from placement.objects.claims.claim import AnyGeneration, Claim
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.claims.consumer_state import ConsumerState, note_claim, note_end
from placement.objects.consumer import Consumer
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass


class ClaimSet:
    """Claims of different consumers that are placed by one transaction, all of them or none.

    Each claim is judged beside all others of the set: together they never take more than there is.
    """

    def __init__(self, db: Transaction, claims: Sequence[Claim]) -> None:
        self._db = db
        self._claims = claims
        #: By uuid, as ``_read`` found them.
        self._consumers: dict[str, Consumer] = {}
        #: By uuid, as ``_read`` found them.
        self._provider_ids: Mapping[str, int] = {}
        #: For the history, what the consumers held, by uuid.
        self._before: Mapping[str, ConsumerState] = {}

    def place(
        self,
        provider_ids: Mapping[str, int] | None = None,
        prepare: Callable[[set[int]], object] | None = None,
        *,
        created: Collection[str] = (),
        late: Callable[[], Sequence[Claim]] = list,
    ) -> None:
        """Make the consumers hold exactly what is claimed.

        Args:
            provider_ids: Ids by uuid, where the caller has looked the providers up.
            prepare: Called between the steps 2 and 3, with the ids of the providers that step 3 advances.  It may lock
                them, and what it does to their inventories counts for the claims.
            created: The uuids of providers that ``prepare`` creates, unless they exist.
            late: Called between the steps 3 and 4.  It returns more claims to place together with the others: of new
                consumers, on providers that step 3 has advanced.

        Raises:
            ConsumerGenerationConflict: A client is mistaken about a consumer's generation.
            UnknownAllocationProvider, UnknownResourceClass: A claim names what does not exist.
            NoInventoryToAllocate, AmountAgainstConstraints, CapacityExceeded: A claim does not fit.
            Prerequisite: Expired leases hold something where a claim does not fit.
        """
        self._read(provider_ids, created)
        if self._db.has_history:
            self._read_before()
        self._write_consumers()
        if prepare is not None:
            prepare(self._named_provider_ids | self._ended_provider_ids)
        if created:
            self._provider_ids = ResourceProvider.ids(self._db, self._named_providers)
            self._check_providers()
        provider_rows.advance_for_usage(self._db, self._named_provider_ids, self._ended_provider_ids)
        self._add(late())
        self._allocate()

    @classmethod
    def release(cls, db: Transaction, consumer_uuid: str) -> None:
        """End a consumer of any generation, without advancing its providers.

        Raises:
            NoAllocations: It has none.
            Collision: For the history it has to be read once more.
        """
        before = ConsumerState.lock(db, consumer_uuid) if db.has_history else None
        consumer = Consumer.delete_row(db, consumer_uuid, None if before is None else before.held_on)
        if not consumer.held_on:
            raise errors.NoAllocations(uuid=consumer_uuid)
        if before is None and db.has_history:
            raise Collision  # the consumer was created after it was looked for
        allocation_rows.delete_all(db, [consumer])
        if before is not None:
            note_end(db, before)

    # --- the steps, in their order ---

    def _read(self, provider_ids: Mapping[str, int] | None, created: Collection[str]) -> None:
        """Read the consumers, and find the ids of the providers.

        Raises:
            ConsumerGenerationConflict: A client is mistaken about a generation.
            UnknownAllocationProvider: A provider does not exist; the first one is named.
        """
        unchecked = [claim.consumer for claim in self._claims if not claim.checks_generation]
        if unchecked and self._db.attempt > 1:
            # Where others create and end many consumers all the time, one of ours would change during each attempt.
            Consumer.lock_all(self._db, unchecked)
        owners = {claim.consumer: claim.owner if _may_stay(claim) else None for claim in self._claims}
        unknown = self._named_providers if provider_ids is None else ()
        self._consumers, found = Consumer.read_for_claims(self._db, owners, unknown)
        if self._db.has_history and self._db.attempt == 1 and any(map(self._is_present, unchecked)):
            # The history has what they held, which must not change once it is read.
            Consumer.lock_all(self._db, unchecked)
            self._consumers, found = Consumer.read_for_claims(self._db, owners, unknown)
        self._provider_ids = found if provider_ids is None else provider_ids
        leases.require_none_expired(self._consumers.values())
        for claim in self._claims:
            if not isinstance(claim.generation, AnyGeneration):
                self._consumers[claim.consumer].check_generation(claim.generation)
        self._check_providers(created)

    def _is_present(self, uuid: str) -> bool:
        """Return whether a consumer has a row, or holds something."""
        return self._consumers[uuid].id is not None or bool(self._consumers[uuid].held_on)

    def _read_before(self) -> None:
        """Read for the history what the consumers hold.

        No row is locked for it, since rows are only locked in the order in which they are written.  Where the client
        states a generation, the write fails if that has moved.

        Raises:
            Collision: A consumer has changed since ``_read``.
        """
        self._before = ConsumerState.read_all(self._db, [*filter(self._is_present, self._consumers)])
        for uuid, state in self._before.items():
            if state.generation != self._consumers[uuid].generation:
                raise Collision

    @property
    def _named_providers(self) -> Collection[str]:
        return dict.fromkeys(uuid for claim in self._claims for uuid in _providers_of(claim))

    def _check_providers(self, created: Collection[str] = ()) -> None:
        for uuid in self._named_providers:
            if uuid not in self._provider_ids and uuid not in created:
                raise errors.UnknownAllocationProvider(uuid=uuid)

    def _write_consumers(self) -> None:
        """Insert, advance or delete the consumers' rows.

        Raises:
            Collision: A row is no longer as it was read, and the client has stated a generation, or the row has gone.
        """
        # In one order for inserts, updates and deletes together: transactions about the same consumers wait for each
        # other without a deadlock.
        in_order = sorted(self._claims, key=lambda claim: claim.consumer)
        for new, several in itertools.groupby(in_order, self._is_new):
            if new:
                Consumer.insert_all(self._db, [self._consumers[claim.consumer] for claim in several])
                continue
            for claim in several:
                consumer = self._consumers[claim.consumer]
                if claim.resources or self._kept_on(claim):
                    consumer.advance(self._db, as_read=claim.checks_generation)
                else:
                    if claim.consumer in self._before:
                        self._before[claim.consumer].lock_lease(self._db)
                    consumer.delete(self._db, as_read=claim.checks_generation)
        unchecked = [self._consumers[claim.consumer] for claim in self._claims if not claim.checks_generation]
        Consumer.read_again(self._db, [consumer for consumer in unchecked if consumer.id is not None])

    def _add(self, claims: Sequence[Claim]) -> None:
        """Add claims of new consumers, and write the consumers' rows."""
        if claims:
            late = ClaimSet(self._db, claims)
            late._read(self._provider_ids, ())
            late._write_consumers()
            self._claims = [*self._claims, *claims]
            self._consumers |= late._consumers

    def _allocate(self) -> None:
        """Decide whether the claims fit, and replace what the consumers hold.

        Raises:
            UnknownResourceClass: A claim names a class that does not exist.
            NoInventoryToAllocate, AmountAgainstConstraints, CapacityExceeded: A claim does not fit.
            Collision: It may fit: one of the consumers began to hold something meanwhile.
        """
        inventories = self._read_inventories()
        try:
            self._check(inventories)
        except errors.CapacityExceeded:
            self._check_absent()
            # In a transaction of its own, because this one has locked providers before the consumers that would end.
            leases.require_none_expired_on(self._db, self._named_provider_ids)
            raise
        self._replace_allocations(inventories)

    def _check_absent(self) -> None:
        """Raise Collision if a consumer that the claims end had no row to lock, and holds something by now.

        What it holds counted as used by others.
        """
        absent = [
            claim.consumer
            for claim in self._claims
            if not claim.resources and self._consumers[claim.consumer].id is None
        ]
        if absent and any(consumer.held_on for consumer in Consumer.read_all(self._db, absent).values()):
            raise Collision

    # --- providers ---

    @property
    def _named_provider_ids(self) -> set[int]:
        named = {uuid for claim in self._claims for uuid in claim.resources}
        return {self._provider_ids[uuid] for uuid in named & self._provider_ids.keys()}

    @property
    def _ended_provider_ids(self) -> set[int]:
        """The providers of consumers that end, or leave the one provider that the claim is about.

        A provider that a consumer only moves away from is not advanced.
        """
        return set().union(*(self._replaced_on(claim) for claim in self._claims if not claim.resources))

    def _replaced_on(self, claim: Claim) -> set[int]:
        """Return the providers on which the consumer holds something that the claim takes away or replaces."""
        return self._consumers[claim.consumer].held_on - self._kept_on(claim)

    def _kept_on(self, claim: Claim) -> set[int]:
        """Return the providers on which the consumer holds something that the claim is not about."""
        if claim.only_on is None:
            return set()
        return self._consumers[claim.consumer].held_on - {self._provider_ids.get(claim.only_on)}

    # --- parts of steps ---

    def _is_new(self, claim: Claim) -> bool:
        return bool(claim.resources) and self._consumers[claim.consumer].id is None

    def _read_inventories(self) -> dict[tuple[str, str], ClaimedInventory]:
        """Return the inventories that are asked for, by provider uuid and class name; raises UnknownResourceClass."""
        classes = dict.fromkeys(
            name for claim in self._claims for amounts in claim.resources.values() for name in amounts
        )
        if not classes:
            return {}
        uuids = {uuid for claim in self._claims for uuid in claim.resources}
        providers = {self._provider_ids[uuid]: uuid for uuid in uuids}
        holders = [claim.consumer for claim in self._claims if self._consumers[claim.consumer].held_on]
        inventories = ClaimedInventory.read(self._db, providers, classes, holders, generations=self._db.has_history)
        # Of a class of which none of the providers has inventory it is not known yet whether it exists.
        found = {name for _, name in inventories}
        ResourceClass.ids(self._db, [name for name in classes if name not in found])
        return inventories

    def _check(self, inventories: Mapping[tuple[str, str], ClaimedInventory]) -> None:
        """Raise the failure of the first amount that does not fit beside what others use."""
        amounts = [
            (uuid, name, amount)
            for claim in self._claims
            for uuid, amounts in claim.resources.items()
            for name, amount in amounts.items()
        ]
        totals: dict[tuple[str, str], int] = defaultdict(int)
        for uuid, name, amount in amounts:
            totals[uuid, name] += amount
        if totals and not inventories:
            raise errors.NoInventoryToAllocate(
                resource_classes=", ".join(dict.fromkeys(name for _, name in totals)),
                uuids=", ".join(dict.fromkeys(uuid for uuid, _ in totals)),
            )
        for uuid, name, amount in amounts:
            if (uuid, name) not in inventories:
                raise errors.NoInventoryToAllocate(resource_classes=name, uuids=uuid)
            inventories[uuid, name].check(amount, totals[uuid, name])

    def _replace_allocations(self, inventories: Mapping[tuple[str, str], ClaimedInventory]) -> None:
        about_all = [self._consumers[claim.consumer] for claim in self._claims if claim.only_on is None]
        allocation_rows.delete_all(self._db, about_all)
        for claim in self._claims:
            if claim.only_on is not None:
                allocation_rows.delete_on(self._db, claim.consumer, self._replaced_on(claim))
        allocation_rows.insert(self._db, self._claims, self._provider_ids, inventories)
        if self._db.has_history:
            self._note(inventories)

    def _note(self, inventories: Mapping[tuple[str, str], ClaimedInventory]) -> None:
        """Note for the history what the claims change."""
        advanced = {uuid: inventory.provider_generation or 0 for (uuid, _), inventory in inventories.items()}
        ended = ResourceProvider.of_ids(self._db, self._ended_provider_ids)
        advanced |= {provider.uuid: provider.generation for provider in ended}
        moved = {uuid: (generation - 1, generation) for uuid, generation in advanced.items()}
        for claim in self._claims:
            before = self._before.get(claim.consumer)
            # Where the client states no generation, the one under the lock may be newer than the one that was read.
            generation = self._consumers[claim.consumer].generation if before is None else before.generation
            note_claim(self._db, claim, before, 1 if generation is None else generation + 1, moved)


def _may_stay(claim: Claim) -> bool:
    """Return whether the consumer may hold something with this claim."""
    return bool(claim.resources) or claim.only_on is not None


def _providers_of(claim: Claim) -> Collection[str]:
    """Return the providers that the claim names."""
    return claim.resources if claim.only_on is None else {claim.only_on, *claim.resources}
