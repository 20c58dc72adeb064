"""The engine of claims, by which consumers take, move and give back what providers have.

One transaction places the claims of several consumers: all of them or none (``place``), or each that fits
(``place_each``).  The order of the steps is what makes it correct (docs/claims.rst):

1. read the consumers with what they hold, and find the providers;
2. lock the consumers' rows in the order of their uuids, each only if it still is as it was read: from here on no other
   transaction can change what these consumers hold;
3. lock the providers' rows in the order of their ids: from here on no other transaction can add usage to them;
4. only then read inventories and usage, and decide by the one fit rule what fits beside the usage of others;
5. replace what the consumers hold.

Usage of others can still shrink, since giving back locks no provider; that only makes room.  A transaction that waits
does so at step 2 or 3, and holds no lock that those before it need.  Steps 1 and 2 come before the lock of step 3, so
a busy provider is locked for as few round trips as possible (docs/adr/0007).

The two methods differ in what locks a row.  In ``place``, where a refusal rolls everything back, it is the statement
that inserts, advances or deletes the row.  In ``place_each``, where a refused claim must leave nothing while the rest
is committed, steps 2 and 3 only lock rows (those of new consumers are inserted for that), and generations advance after
the decision.
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
    row: int
    #: Whether the consumer had a row before, and whether it held something.
    existed: bool
    moved: bool
    #: The generations of the providers it is on, by uuid.
    provider_generations: Mapping[str, int]


#: What became of a claim: it was placed, or the failure says why not.
ClaimOutcome = PlacedClaim | errors.Failure


class ClaimSet:
    """Claims of different consumers that one transaction places."""

    def __init__(self, db: Transaction, claims: Sequence[Claim]) -> None:
        self._db = db
        self._claims = claims
        #: The uuids of the providers that the claims name, in order.
        self._named: Collection[str] = dict.fromkeys(uuid for claim in claims for uuid in _providers_of(claim))
        #: The claims that have not been refused so far.
        self._open = claims
        #: Why claims are refused, by consumer; None if the first refusal is raised instead.
        self._refused: dict[str, errors.Failure] | None = None
        self._provider_ids: Mapping[str, int] = {}
        #: Rows and holdings by consumer, as they were before the claims; the holding is empty if nothing is held.
        self._consumers: dict[str, Consumer] = {}
        self._held: dict[str, Holding] = {claim.consumer: Holding(claim.consumer) for claim in claims}

    def place(
        self,
        provider_ids: Mapping[str, int] | None = None,
        prepare: Callable[[set[int]], object] | None = None,
        *,
        created: Collection[str] = (),
    ) -> None:
        """Make the consumers hold exactly what is claimed: all of them or none, judged together.

        Args:
            provider_ids: Ids by uuid, if the caller has already looked the providers up.
            prepare: Called between steps 2 and 3, with the ids of the providers that step 3 locks.  It may lock them,
                and the claims are judged by the inventories that it leaves.
            created: The uuids of providers that ``prepare`` creates if they do not exist.

        Raises:
            ConsumerGenerationConflict: A client is mistaken about a consumer's generation.
            UnknownAllocationProvider, UnknownResourceClass: A claim names what does not exist.
            NoInventoryToAllocate, AmountAgainstConstraints, CapacityExceeded: A claim does not fit.
            Prerequisite: Expired leases hold something where a claim does not fit.
        """
        self._read(provider_ids, created)
        self._write_consumers()
        if prepare is not None:
            prepare({*self._claimed.values(), *self._ended_provider_ids})
        if created:
            self._provider_ids = ResourceProvider.ids(self._db, self._named)
            self._check_providers()
        provider_rows.advance_for_usage(self._db, self._claimed.values(), self._ended_provider_ids)
        inventories = self._read_inventories()
        try:
            self._judge([self._claims], inventories)
        except errors.CapacityExceeded:
            # A transaction of its own ends them: this one has locked providers, which come after consumers.
            leases.require_none_expired_on(self._db, self._claimed.values())
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
        """Place the claims that fit beside what others use, one after another.

        Each claim states a consumer generation, asks for something, and is about all providers.

        Args:
            provider_ids: As for ``place``.
            relied_on: By the uuids of consumers, the ids of the providers on which they hold something.  Claims are
                placed only if that is still so.  These consumers may be those of the claims.
            generations: By provider uuid; claims are placed only on providers that still have these.  None: any.
            skip_locked: Whether to refuse claims on providers that other transactions have locked, instead of waiting
                for the locks, if the server can do so.

        Returns:
            What became of each claim, in order.  The failures are those of ``place``, with two differences: an
            unknown class is NoInventoryToAllocate; and AllocationsChanged refuses every claim if a consumer no longer
            holds what is relied on, and a single claim if its provider is locked or has another generation.

        Raises:
            Prerequisite: The lease of a consumer has expired.
            Collision: A consumer has changed since it was read.
        """
        refused: dict[str, errors.Failure] = {}
        self._refused = refused
        self._read(provider_ids)
        tried = self._open
        self._lock_consumers(relied_on or {})
        self._lock_providers(generations, skip_locked)
        inventories = self._read_inventories()
        self._judge([[claim] for claim in self._open], inventories)
        Consumer.delete_new(
            self._db, [claim.consumer for claim in tried if claim.consumer in refused and self._is_new(claim)]
        )
        for claim in self._open:
            if not self._is_new(claim):
                self._consumers[claim.consumer].advance(self._db)
        provider_rows.advance_locked(self._db, self._claimed.values())
        after = self._generations(inventories)
        self._replace(inventories, after)
        return [refused.get(claim.consumer) or self._placed(claim, after) for claim in self._claims]

    # --- step 1 ---

    def _read(self, provider_ids: Mapping[str, int] | None, created: Collection[str] = ()) -> None:
        """Read the consumers with what they hold, and find the ids of the providers.

        If they hold something, a separate statement reads what.  That may be newer, but then step 2 collides, because
        it requires that the rows still have the generations that were read first.

        Raises:
            ConsumerGenerationConflict: A client is mistaken about a generation.
            UnknownAllocationProvider: A provider does not exist; the first one is named.
            Prerequisite: The lease of a consumer has expired.
        """
        unchecked = [claim.consumer for claim in self._claims if isinstance(claim.generation, AnyGeneration)]
        if unchecked:
            # Any generation will do, so a change by another writer is no reason to run again: the rows are locked
            # before they are read.
            Consumer.create_and_lock(self._db, unchecked)
        # A claim for nothing ends its consumer, unless the consumer may keep what it holds on other providers.
        owners = {
            claim.consumer: claim.owner if claim.resources or claim.only_on is not None else None
            for claim in self._claims
        }
        # The ids of providers are only queried if the caller has not passed them.
        providers_to_query = () if provider_ids is not None else self._named
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
        holding = [claim.consumer for claim in self._open if self._consumers[claim.consumer].holds]
        if holding:
            self._held |= Holding.read_all(self._db, holding)

    def _check_providers(self, created: Collection[str] = ()) -> None:
        for claim in self._open:
            for uuid in _providers_of(claim):
                if uuid not in self._provider_ids and uuid not in created:
                    self._refuse(claim, errors.UnknownAllocationProvider(uuid=uuid))

    # --- step 2 ---

    def _write_consumers(self) -> None:
        """Insert, advance or delete the consumers' rows.

        Raises:
            Collision: A row is no longer as it was read.
        """
        # In one order for inserts, updates and deletes alike, so that transactions about the same consumers wait for
        # each other and do not deadlock.
        in_order = sorted(self._claims, key=lambda claim: claim.consumer)
        for new, several in itertools.groupby(in_order, self._is_new):
            if new:
                Consumer.insert_all(self._db, [self._consumers[claim.consumer] for claim in several])
                continue
            for claim in several:
                consumer = self._consumers[claim.consumer]
                if claim.resources or self._kept_on(claim):
                    consumer.advance(self._db)
                else:
                    if self._db.has_history and consumer.holds:
                        self._held[claim.consumer].lock_lease(self._db)
                    consumer.delete(self._db)

    def _lock_consumers(self, relied_on: Mapping[str, Collection[int]]) -> None:
        """Insert the rows of new consumers, lock the others, and refuse all claims if ``relied_on`` is no longer true.

        Raises:
            Collision: A row is no longer as it was read.
        """
        own = {claim.consumer for claim in self._open}
        new = {uuid for uuid in own if self._consumers[uuid].is_new}
        for (is_own, is_new), several in itertools.groupby(
            sorted(own | relied_on.keys()), lambda uuid: (uuid in own, uuid in new)
        ):
            if not is_own:
                Consumer.lock_named(self._db, [*several])
            elif is_new:
                Consumer.insert_all(self._db, [self._consumers[uuid] for uuid in several])
            else:
                for uuid in several:
                    self._consumers[uuid].lock_as_read(self._db)
        Consumer.delete_created(self._db, relied_on.keys() - own)
        if relied_on:
            held_on = providers_of(self._db, relied_on)
            if any(held_on[uuid] != {*ids} for uuid, ids in relied_on.items()):
                for claim in self._open:
                    self._refuse(claim, errors.AllocationsChanged())

    # --- step 3 ---

    def _lock_providers(self, generations: Mapping[str, int] | None, skip_locked: bool) -> None:
        """Lock the providers, and refuse claims on those that are gone, skipped, or of another generation."""
        locked = provider_rows.lock_for_usage(self._db, self._claimed, skip_locked=skip_locked)
        for claim in self._open:
            for uuid in claim.resources:
                if uuid not in locked and not skip_locked:
                    self._refuse(claim, errors.UnknownAllocationProvider(uuid=uuid))
                elif uuid not in locked or (generations is not None and locked[uuid] != generations[uuid]):
                    self._refuse(claim, errors.AllocationsChanged())

    # --- step 4 ---

    def _read_inventories(self) -> _Inventories:
        """Return the inventories that are asked for; in ``place``, raises UnknownResourceClass."""
        classes = dict.fromkeys(name for (_, name), _ in _amounts(self._open))
        if not classes:
            return {}
        providers = {id_: uuid for uuid, id_ in self._claimed.items()}
        inventories = ClaimedInventory.read(self._db, providers, classes)
        if self._refused is None:
            # In ``place``, a class that none of the providers has inventory of is looked up: it may not exist.
            with_inventory = {name for _, name in inventories}
            ResourceClass.ids(self._db, [name for name in classes if name not in with_inventory])
        return inventories

    def _judge(self, groups: Iterable[Sequence[Claim]], inventories: _Inventories) -> None:
        """Refuse claims that do not fit.  Claims of a group are judged together, and the groups one after another."""
        used = {key: inventory.used for key, inventory in inventories.items()}
        for group in groups:
            totals, given_up = _totals(group), self._given_up(group)
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
                    inventories[key].check(amount, totals[key], used[key] - given_up[key], given_up[key])
            except errors.Conflict as failure:
                self._refuse(group[0], failure)
            else:
                for key in (totals.keys() | given_up.keys()) & used.keys():
                    used[key] += totals[key] - given_up[key]

    def _given_up(self, claims: Sequence[Claim]) -> Mapping[tuple[str, str], int]:
        """Return what their consumers hold that the claims replace or take away, by provider uuid and class name."""
        given_up = Counter[tuple[str, str]]()
        for claim in claims:
            for (uuid, name), amount in self._held[claim.consumer].amounts.items():
                if claim.only_on in (None, uuid):
                    given_up[uuid, name] += amount
        return given_up

    # --- step 5 ---

    def _replace(self, inventories: _Inventories, after: Mapping[str, int]) -> None:
        """Replace what the consumers hold; ``after`` are the new generations of providers, by uuid."""
        placed = self._open
        # A claim that is refused leaves no names behind.
        names.require(self._db, [name for claim in placed for name in self._consumers[claim.consumer].missing_names])
        allocation_rows.delete_all(self._db, [self._held[claim.consumer] for claim in placed if claim.only_on is None])
        for claim in placed:
            if claim.only_on is not None:
                allocation_rows.delete_on(self._db, claim.consumer, self._replaced_on(claim))
        allocation_rows.insert(self._db, placed, self._provider_ids, inventories)
        if self._db.has_history:
            self._note(after)

    def _note(self, after: Mapping[str, int]) -> None:
        """Note for the history what the claims change."""
        moved = {uuid: (self._provider_ids[uuid], generation) for uuid, generation in after.items()}
        if ended := self._ended_provider_ids:
            moved |= {one.uuid: (one.id, one.generation) for one in ResourceProvider.of_ids(self._db, ended)}
        advanced = {uuid: Advance(id_, new - 1, new) for uuid, (id_, new) in moved.items()}
        for claim in self._open:
            consumer, held = self._consumers[claim.consumer], self._held[claim.consumer]
            note_claim(self._db, claim, held, consumer.next_generation, consumer.id, advanced)

    def _generations(self, inventories: _Inventories) -> dict[str, int]:
        """Return the generations that the providers have after the placed claims, by uuid."""
        # In ``place``, the lock had already advanced them when the inventories were read.
        later = self._refused is not None
        claimed = self._claimed
        return {
            uuid: inventory.provider_generation + later
            for (uuid, _), inventory in inventories.items()
            if uuid in claimed
        }

    def _placed(self, claim: Claim, generations: Mapping[str, int]) -> PlacedClaim:
        consumer = self._consumers[claim.consumer]
        assert consumer.id is not None  # the row was there, or has been inserted
        return PlacedClaim(
            consumer_generation=consumer.next_generation,
            row=consumer.id,
            existed=not self._is_new(claim),
            moved=consumer.holds,
            provider_generations={uuid: generations[uuid] for uuid in claim.resources},
        )

    # --- what the steps need ---

    def _refuse(self, claim: Claim, failure: errors.Failure) -> None:
        """Mark the claim as refused, for the first reason if there are several; in ``place``, raise the failure."""
        if self._refused is None:
            raise failure
        self._open = [other for other in self._open if other is not claim]
        self._refused.setdefault(claim.consumer, failure)

    def _is_new(self, claim: Claim) -> bool:
        return bool(claim.resources) and self._consumers[claim.consumer].is_new

    @property
    def _claimed(self) -> dict[str, int]:
        """The ids of the providers that claims ask something of, by uuid; those yet to be created are left out."""
        ids = self._provider_ids
        return {uuid: ids[uuid] for claim in self._open for uuid in claim.resources if uuid in ids}

    @property
    def _ended_provider_ids(self) -> set[int]:
        """The providers of consumers that end, or that leave the one provider that the claim is about.

        A provider that a consumer only moves away from is not advanced.
        """
        return set().union(*(self._replaced_on(claim) for claim in self._open if not claim.resources))

    def _replaced_on(self, claim: Claim) -> set[int]:
        """Return the providers on which the consumer holds something that the claim takes away or replaces."""
        return self._held[claim.consumer].held_on - self._kept_on(claim)

    def _kept_on(self, claim: Claim) -> set[int]:
        """Return the providers on which the consumer holds something that the claim is not about."""
        if claim.only_on is None:
            return set()
        return self._held[claim.consumer].held_on - {self._provider_ids.get(claim.only_on)}


def _providers_of(claim: Claim) -> Collection[str]:
    """Return the providers that the claim names."""
    return claim.resources if claim.only_on is None else {claim.only_on, *claim.resources}


def _amounts(claims: Iterable[Claim]) -> list[tuple[tuple[str, str], int]]:
    """Return what is asked for, in order, by provider uuid and class name."""
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
