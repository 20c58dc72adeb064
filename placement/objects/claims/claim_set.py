"""The claim engine: consumers claim, move and release allocations.

One transaction places the claims of several consumers: all of them or none (``place``), or each that fits
(``place_each``).  Correctness depends on the order of the steps (docs/claims.rst):

1. read the consumers with their allocations, and look the providers up;
2. lock the consumers' rows in the order of their uuids, and collide if one has changed since: from this point on, other
   transactions cannot change the allocations of these consumers;
3. lock the providers' rows in the order of their ids: from this point on, other transactions cannot add usage to them;
4. read inventories and usage, and judge by the capacity rule which claims fit in addition to other consumers' usage;
5. replace the allocations of the consumers.

The usage of other consumers can still decrease, because a release does not lock providers; that only frees capacity.  A
transaction waits at step 2 or 3, without a lock that the transactions ahead of it need.  Steps 1 and 2 precede the lock
of step 3, so a busy provider is locked for as few round trips as possible (docs/adr/0007).

The two methods lock rows by different statements.  In ``place``, a failure rolls everything back, so the statement that
inserts, advances or deletes a row also locks it.  In ``place_each``, a refused claim must not change anything while
other claims are committed.  So steps 2 and 3 only lock rows (and insert the rows of new consumers), and generations
advance after the decision.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement import errors
from placement.db.writes import names
from placement.db.writes.notes import Advance
from placement.db.writes.transaction import Transaction
from placement.objects import provider_rows
from placement.objects.claims import allocation_rows, leases
from placement.objects.claims.claim import AnyGeneration, Claim
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.claims.consumer_notes import note_claim
from placement.objects.claims.holding import Holding, providers_of
from placement.objects.consumer import Consumer
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass

#: Inventories by provider uuid and class name.
_Inventories = Mapping[tuple[str, str], ClaimedInventory]


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim that was placed."""

    consumer_generation: int
    #: The id of the consumer's row.
    row_id: int
    #: Whether the consumer had a row before.
    existed: bool
    #: Whether the consumer had allocations before.
    moved: bool
    #: Generations of its providers, by uuid.
    provider_generations: Mapping[str, int]


#: The outcome of a claim: the placed claim, or the reason for its refusal.
ClaimOutcome = PlacedClaim | errors.Failure


class ClaimSet:
    """Claims of different consumers, placed by one transaction."""

    def __init__(self, db: Transaction, claims: Sequence[Claim]) -> None:
        self._db = db
        self._claims = claims
        #: Uuids of the providers that the claims name, in order.
        self._provider_uuids: Collection[str] = dict.fromkeys(uuid for claim in claims for uuid in _providers_of(claim))
        #: The claims not refused so far.
        self._open_claims = claims
        #: Failures of the refused claims, by consumer; None in ``place``, where the first failure is raised.
        self._failures: dict[str, errors.Failure] | None = None
        self._provider_ids: Mapping[str, int] = {}
        #: Rows and holdings by consumer, before the claims; an empty holding for a consumer without allocations.
        self._consumers: dict[str, Consumer] = {}
        self._holdings: dict[str, Holding] = {claim.consumer: Holding(claim.consumer) for claim in claims}

    def place(
        self,
        provider_ids: Mapping[str, int] | None = None,
        prepare: Callable[[set[int]], object] | None = None,
        *,
        created: Collection[str] = (),
    ) -> None:
        """Place all claims or none, judged together.

        Args:
            provider_ids: Ids by uuid, if the caller has looked the providers up.
            prepare: A callback between steps 2 and 3 with the ids of the providers that step 3 locks.  It may lock them
                and change their inventories before the claims are judged.
            created: Uuids of providers that ``prepare`` creates if they do not exist.

        Raises:
            ConsumerGenerationConflict: A consumer has another generation than its client states.
            UnknownAllocationProvider, UnknownResourceClass: A claim names a provider or a class that does not exist.
            NoInventoryToAllocate, AmountAgainstConstraints, CapacityExceeded: A claim does not fit.
            Prerequisite: A claim does not fit, but expired leases have allocations on its providers.
        """
        self._read(provider_ids, created)
        self._write_consumers()
        if prepare is not None:
            prepare({*self._claimed_ids.values(), *self._ended_provider_ids})
        if created:
            self._provider_ids = ResourceProvider.ids(self._db, self._provider_uuids)
            self._check_providers()
        provider_rows.advance_for_usage(self._db, self._claimed_ids.values(), self._ended_provider_ids)
        inventories = self._read_inventories()
        try:
            self._judge([self._claims], inventories)
        except errors.CapacityExceeded:
            # Another transaction releases them: this one has locked providers, and consumers must be locked first.
            leases.require_none_expired_on(self._db, self._claimed_ids.values())
            raise
        self._replace(inventories, self._generations(inventories))

    def place_each(
        self,
        provider_ids: Mapping[str, int] | None = None,
        *,
        relied_on: Mapping[str, Collection[int]] | None = None,
        generations: Mapping[str, int] | None = None,
        skip_locked: bool = False,
    ) -> list[ClaimOutcome]:
        """Place the claims that fit, judged one after another.

        Each claim states a consumer generation, claims resources, and concerns all providers.

        Args:
            provider_ids: As for ``place``.
            relied_on: Ids of the providers on which consumers must still have their allocations, by consumer uuid;
                otherwise every claim is refused.  They may include the consumers of the claims.
            generations: Required provider generations, by uuid; None for any.
            skip_locked: Whether to refuse claims on providers that other transactions have locked, instead of waiting,
                if the server supports it.

        Returns:
            The outcome of each claim, in order.  Claims fail as in ``place``, with two differences.  An unknown class
            is NoInventoryToAllocate.  AllocationsChanged refuses all claims if ``relied_on`` does not hold, and a
            single claim if its provider is locked or has another generation.

        Raises:
            Prerequisite: The lease of a consumer has expired.
            Collision: A consumer has changed since it was read.
        """
        failures: dict[str, errors.Failure] = {}
        self._failures = failures
        self._read(provider_ids)
        attempted = self._open_claims
        self._lock_consumers(relied_on or {})
        self._lock_providers(generations, skip_locked)
        inventories = self._read_inventories()
        self._judge([[claim] for claim in self._open_claims], inventories)
        Consumer.delete_new(
            self._db, [claim.consumer for claim in attempted if claim.consumer in failures and self._is_new(claim)]
        )
        for claim in self._open_claims:
            if not self._is_new(claim):
                self._consumers[claim.consumer].advance(self._db)
        provider_rows.advance_locked(self._db, self._claimed_ids.values())
        generations_after = self._generations(inventories)
        self._replace(inventories, generations_after)
        return [failures.get(claim.consumer) or self._placed_claim(claim, generations_after) for claim in self._claims]

    # --- step 1 ---

    def _read(self, provider_ids: Mapping[str, int] | None, created: Collection[str] = ()) -> None:
        """Read the consumers with their allocations, and look up the ids of the providers.

        A separate statement reads the allocations, which may be newer than the rows.  Then step 2 collides, because it
        requires the generations that were read first.

        Raises:
            ConsumerGenerationConflict: A consumer has another generation than its client states.
            UnknownAllocationProvider: A provider does not exist; the failure names the first one.
            Prerequisite: The lease of a consumer has expired.
        """
        unchecked = [claim.consumer for claim in self._claims if isinstance(claim.generation, AnyGeneration)]
        if unchecked:
            # Any generation is accepted, so a change by another transaction need not cause a retry: the rows are locked
            # before they are read.
            Consumer.create_and_lock(self._db, unchecked)
        # A claim without resources ends its consumer, unless it may keep allocations on other providers.
        owners = {
            claim.consumer: claim.owner if claim.resources or claim.only_on is not None else None
            for claim in self._claims
        }
        providers_to_query = () if provider_ids is not None else self._provider_uuids
        self._consumers, ids = Consumer.read_for_claims(self._db, owners, providers_to_query)
        self._provider_ids = ids if provider_ids is None else provider_ids
        if expired := [consumer.uuid for consumer in self._consumers.values() if consumer.is_expired]:
            leases.require_ended(expired)
        for claim in self._claims:
            if not isinstance(claim.generation, AnyGeneration):
                try:
                    self._consumers[claim.consumer].check_generation(claim.generation)
                except errors.ConsumerGenerationConflict as failure:
                    self._refuse(claim, failure)
        self._check_providers(created)
        holding = [claim.consumer for claim in self._open_claims if self._consumers[claim.consumer].holds]
        if holding:
            self._holdings |= Holding.read_all(self._db, holding)

    def _check_providers(self, created: Collection[str] = ()) -> None:
        for claim in self._open_claims:
            for uuid in _providers_of(claim):
                if uuid not in self._provider_ids and uuid not in created:
                    self._refuse(claim, errors.UnknownAllocationProvider(uuid=uuid))

    # --- step 2 ---

    def _write_consumers(self) -> None:
        """Insert, advance or delete the consumers' rows.

        Raises:
            Collision: A row has changed since it was read.
        """
        # Inserts, updates and deletes have one common order, so that transactions about the same consumers wait for
        # each other and do not deadlock.
        in_order = sorted(self._claims, key=lambda claim: claim.consumer)
        for is_new, group in itertools.groupby(in_order, self._is_new):
            if is_new:
                Consumer.insert_all(self._db, [self._consumers[claim.consumer] for claim in group])
                continue
            for claim in group:
                consumer = self._consumers[claim.consumer]
                if claim.resources or self._kept_on(claim):
                    consumer.advance(self._db)
                else:
                    if self._db.has_history and consumer.holds:
                        self._holdings[claim.consumer].lock_lease(self._db)
                    consumer.delete(self._db)

    def _lock_consumers(self, relied_on: Mapping[str, Collection[int]]) -> None:
        """Insert the rows of new consumers, lock existing rows, and refuse all claims unless ``relied_on`` still holds.

        Raises:
            Collision: A row has changed since it was read.
        """
        claimants = {claim.consumer for claim in self._open_claims}
        new = {uuid for uuid in claimants if self._consumers[uuid].is_new}
        for (is_claimant, is_new), group in itertools.groupby(
            sorted(claimants | relied_on.keys()), lambda uuid: (uuid in claimants, uuid in new)
        ):
            if not is_claimant:
                Consumer.lock_named(self._db, [*group])
            elif is_new:
                Consumer.insert_all(self._db, [self._consumers[uuid] for uuid in group])
            else:
                for uuid in group:
                    self._consumers[uuid].lock_as_read(self._db)
        Consumer.delete_created(self._db, relied_on.keys() - claimants)
        if relied_on:
            held_on = providers_of(self._db, relied_on)
            if any(held_on[uuid] != {*ids} for uuid, ids in relied_on.items()):
                for claim in self._open_claims:
                    self._refuse(claim, errors.AllocationsChanged())

    # --- step 3 ---

    def _lock_providers(self, generations: Mapping[str, int] | None, skip_locked: bool) -> None:
        """Lock the providers, and refuse claims on providers that are deleted, skipped, or of another generation."""
        locked = provider_rows.lock_for_usage(self._db, self._claimed_ids, skip_locked=skip_locked)
        for claim in self._open_claims:
            for uuid in claim.resources:
                if uuid not in locked and not skip_locked:
                    self._refuse(claim, errors.UnknownAllocationProvider(uuid=uuid))
                elif uuid not in locked or (generations is not None and locked[uuid] != generations[uuid]):
                    self._refuse(claim, errors.AllocationsChanged())

    # --- step 4 ---

    def _read_inventories(self) -> _Inventories:
        """Return the claimed inventories; in ``place``, raise UnknownResourceClass for a class that does not exist."""
        classes = dict.fromkeys(name for (_, name), _ in _amounts(self._open_claims))
        if not classes:
            return {}
        providers = {id_: uuid for uuid, id_ in self._claimed_ids.items()}
        inventories = ClaimedInventory.read(self._db, providers, classes)
        if self._failures is None:
            # In ``place``, a class without inventories on any of the providers is looked up: it may not exist.
            with_inventory = {name for _, name in inventories}
            ResourceClass.ids(self._db, [name for name in classes if name not in with_inventory])
        return inventories

    def _judge(self, groups: Iterable[Sequence[Claim]], inventories: _Inventories) -> None:
        """Refuse claims that do not fit.  The claims of a group are judged together, the groups one after another."""
        used = {key: inventory.used for key, inventory in inventories.items()}
        for group in groups:
            totals, released = _totals(group), self._released_amounts(group)
            try:
                if totals and not inventories:
                    raise errors.NoInventoryToAllocate(
                        resource_classes=", ".join(dict.fromkeys(name for _, name in totals)),
                        uuids=", ".join(dict.fromkeys(uuid for uuid, _ in totals)),
                    )
                for (uuid, name), amount in _amounts(group):
                    if (uuid, name) not in inventories:
                        raise errors.NoInventoryToAllocate(resource_classes=name, uuids=uuid)
                    key = uuid, name
                    inventories[key].check(amount, totals[key], used[key] - released[key], released[key])
            except errors.Conflict as failure:
                self._refuse(group[0], failure)
            else:
                for key in (totals.keys() | released.keys()) & used.keys():
                    used[key] += totals[key] - released[key]

    def _released_amounts(self, claims: Sequence[Claim]) -> Mapping[tuple[str, str], int]:
        """Return the amounts that the claims replace or release, by provider uuid and class name."""
        released = Counter[tuple[str, str]]()
        for claim in claims:
            for (uuid, name), amount in self._holdings[claim.consumer].amounts.items():
                if claim.only_on in (None, uuid):
                    released[uuid, name] += amount
        return released

    # --- step 5 ---

    def _replace(self, inventories: _Inventories, generations: Mapping[str, int]) -> None:
        """Replace the allocations of the consumers.

        Args:
            generations: New generations of the providers, by uuid.
        """
        placed = self._open_claims
        # Not earlier: a refused claim must not leave names behind.
        names.require(self._db, [name for claim in placed for name in self._consumers[claim.consumer].missing_names])
        allocation_rows.delete_all(
            self._db, [self._holdings[claim.consumer] for claim in placed if claim.only_on is None]
        )
        for claim in placed:
            if claim.only_on is not None:
                allocation_rows.delete_on(self._db, claim.consumer, self._replaced_on(claim))
        allocation_rows.insert(self._db, placed, self._provider_ids, inventories)
        if self._db.has_history:
            self._note(generations)

    def _note(self, generations: Mapping[str, int]) -> None:
        """Record the changes in the history."""
        moved = {uuid: (self._provider_ids[uuid], generation) for uuid, generation in generations.items()}
        if ended := self._ended_provider_ids:
            providers = ResourceProvider.of_ids(self._db, ended)
            moved |= {provider.uuid: (provider.id, provider.generation) for provider in providers}
        advanced = {uuid: Advance(id_, new - 1, new) for uuid, (id_, new) in moved.items()}
        for claim in self._open_claims:
            consumer, before = self._consumers[claim.consumer], self._holdings[claim.consumer]
            note_claim(self._db, claim, before, consumer.next_generation, consumer.id, advanced)

    def _generations(self, inventories: _Inventories) -> dict[str, int]:
        """Return the generations of the providers after the placed claims, by uuid."""
        # In ``place``, they were advanced before the inventories were read.
        increment = self._failures is not None
        claimed = self._claimed_ids
        return {
            uuid: inventory.provider_generation + increment
            for (uuid, _), inventory in inventories.items()
            if uuid in claimed
        }

    def _placed_claim(self, claim: Claim, generations: Mapping[str, int]) -> PlacedClaim:
        consumer = self._consumers[claim.consumer]
        assert consumer.id is not None  # the row existed, or has been inserted
        return PlacedClaim(
            consumer_generation=consumer.next_generation,
            row_id=consumer.id,
            existed=not self._is_new(claim),
            moved=consumer.holds,
            provider_generations={uuid: generations[uuid] for uuid in claim.resources},
        )

    # --- helpers of the steps ---

    def _refuse(self, claim: Claim, failure: errors.Failure) -> None:
        """Mark the claim as refused for this reason, unless it is refused already; in ``place``, raise the failure."""
        if self._failures is None:
            raise failure
        self._open_claims = [open_claim for open_claim in self._open_claims if open_claim is not claim]
        self._failures.setdefault(claim.consumer, failure)

    def _is_new(self, claim: Claim) -> bool:
        return bool(claim.resources) and self._consumers[claim.consumer].is_new

    @property
    def _claimed_ids(self) -> dict[str, int]:
        """Ids of the providers with claimed resources, by uuid; providers that do not exist yet are left out."""
        ids = self._provider_ids
        return {uuid: ids[uuid] for claim in self._open_claims for uuid in claim.resources if uuid in ids}

    @property
    def _ended_provider_ids(self) -> set[int]:
        """Ids of the providers of consumers that end, or that leave the only provider that their claim concerns.

        A provider that a consumer leaves for another one is not advanced.
        """
        return set().union(*(self._replaced_on(claim) for claim in self._open_claims if not claim.resources))

    def _replaced_on(self, claim: Claim) -> set[int]:
        """Return the ids of the providers whose allocations the claim replaces or releases."""
        return self._holdings[claim.consumer].held_on - self._kept_on(claim)

    def _kept_on(self, claim: Claim) -> set[int]:
        """Return the ids of the providers whose allocations the claim does not concern."""
        if claim.only_on is None:
            return set()
        return self._holdings[claim.consumer].held_on - {self._provider_ids.get(claim.only_on)}


def _providers_of(claim: Claim) -> Collection[str]:
    """Return the uuids of the providers that the claim names."""
    return claim.resources if claim.only_on is None else {claim.only_on, *claim.resources}


def _amounts(claims: Iterable[Claim]) -> list[tuple[tuple[str, str], int]]:
    """Return the claimed amounts, in order, with their provider uuid and class name."""
    return [
        ((uuid, name), amount)
        for claim in claims
        for uuid, amounts in claim.resources.items()
        for name, amount in amounts.items()
    ]


def _totals(claims: Iterable[Claim]) -> Mapping[tuple[str, str], int]:
    totals = Counter[tuple[str, str]]()
    for key, amount in _amounts(claims):
        totals[key] += amount
    return totals
