"""Claims of different consumers of which one transaction places those that fit, and says of the others why not.

The order of the steps is that of a claim set (claim_set.py), and so is what makes it correct: the rows of the consumers
are locked before those of the providers, and what fits is decided by the one fit rule once both are locked.  It differs
where a claim that is refused must leave nothing: a provider's generation advances only after the decision, and rows of
new consumers whose claims are refused are deleted before COMMIT.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import allocations
from placement.db.writes.transaction import Reading, Transaction
from placement.objects import provider_rows
from placement.objects.claims import allocation_rows, leases
from placement.objects.claims.claim import AnyGeneration, Claim
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.claims.consumer_state import ConsumerState, note_claim
from placement.objects.consumer import Consumer

#: The inventories of a batch by provider uuid and class name.
_Inventories = Mapping[tuple[str, str], ClaimedInventory]
_Amounts = dict[tuple[str, str], int]
#: What is done about the row of a consumer: insert it for a claim, lock that of a claim, or lock that of another.
_NEW, _PRESENT, _NAMED = range(3)


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim that was placed."""

    consumer_generation: int
    #: Whether the consumer had a row before, and whether it held something.
    existed: bool
    moved: bool
    #: The generations of the providers it is on, by uuid.
    provider_generations: Mapping[str, int]


#: What became of a claim: it was placed, or this is why not.
ClaimOutcome = PlacedClaim | errors.Failure


class ClaimBatch:
    """Claims that state a consumer generation, about all providers, in the order in which they get their places."""

    def __init__(
        self, db: Transaction, claims: Sequence[Claim], relied_on: Mapping[str, Collection[int]] | None = None
    ) -> None:
        """Prepare a batch.

        Args:
            relied_on: Ids of the providers on which certain consumers hold something, by their uuids.  Claims are only
                placed while that is so; these consumers may be those of the claims.
        """
        self._db = db
        self._claims = {claim.consumer: claim for claim in claims}
        self._relied_on = relied_on or {}
        self._refused: dict[str, errors.Failure] = {}
        self._consumers: dict[str, Consumer] = {}
        self._provider_ids: Mapping[str, int] = {}
        #: For the history, what the consumers held, by uuid.
        self._before: Mapping[str, ConsumerState] = {}
        #: By uuid, as they were when the providers were locked.
        self._generations: Mapping[str, int] = {}

    def place(
        self,
        provider_ids: Mapping[str, int] | None = None,
        *,
        generations: Mapping[str, int] | None = None,
        skip_locked: bool = False,
    ) -> list[ClaimOutcome]:
        """Place the claims that fit beside what others use, each after those before it.

        Args:
            provider_ids: Ids by uuid, where the caller knows them.
            generations: By uuid; claims are only placed on providers that still have these.  None: any.
            skip_locked: Whether claims on providers that other transactions have locked are refused, instead of waiting
                for these, where the server can do so.

        Returns:
            What became of each claim, in order.  Refusals are ConsumerGenerationConflict, UnknownAllocationProvider,
            NoInventoryToAllocate, AmountAgainstConstraints and CapacityExceeded; and AllocationsChanged: of all, if
            what other consumers hold is not what is relied on; of those on providers that are locked, or have
            other generations.
        """
        self._read(provider_ids)
        tried = self._open_claims()
        self._lock_consumers(tried)
        if self._db.has_history:
            present = [claim.consumer for claim in tried if self._consumers[claim.consumer].held_on]
            self._before = ConsumerState.read_all(self._db, present)
        self._check_relied_on()
        inventories = self._judge(self._lock_providers(self._open_claims(), generations, skip_locked))
        placed = self._open_claims()
        self._write_consumers(tried, placed)
        provider_rows.advance_locked(self._db, self._provider_ids_of(placed).values())
        self._replace_allocations(placed, inventories)
        self._note(placed)
        return [self._refused.get(consumer) or self._placed(claim) for consumer, claim in self._claims.items()]

    @staticmethod
    def providers_of(db: Reading, consumers: Collection[str]) -> dict[str, set[int]]:
        """Return the ids of the providers on which each of these consumers holds something."""
        return {uuid: consumer.held_on for uuid, consumer in Consumer.read_all(db, consumers).items()}

    # --- the steps, in their order ---

    def _read(self, provider_ids: Mapping[str, int] | None) -> None:
        owners = {consumer: claim.owner for consumer, claim in self._claims.items()}
        named = dict.fromkeys(uuid for claim in self._claims.values() for uuid in claim.resources)
        unknown = named if provider_ids is None else ()
        self._consumers, found = Consumer.read_for_claims(self._db, owners, unknown)
        self._provider_ids = found if provider_ids is None else provider_ids
        leases.require_none_expired(self._consumers.values())
        for consumer, claim in self._claims.items():
            assert not isinstance(claim.generation, AnyGeneration)
            try:
                self._consumers[consumer].check_generation(claim.generation)
            except errors.ConsumerGenerationConflict as failure:
                self._refused[consumer] = failure
        for claim in self._open_claims():
            for uuid in claim.resources:
                if uuid not in self._provider_ids:
                    self._refused[claim.consumer] = errors.UnknownAllocationProvider(uuid=uuid)

    def _lock_consumers(self, claims: Iterable[Claim]) -> None:
        """Insert the rows of new consumers and lock those of others, in one order; raises Collision if one changed."""
        own = {claim.consumer for claim in claims}

        def kind(uuid: str) -> int:
            return _NAMED if uuid not in own else _NEW if self._consumers[uuid].id is None else _PRESENT

        for wanted, several in itertools.groupby(sorted(own | self._relied_on.keys()), kind):
            uuids = [*several]
            if wanted == _NAMED:
                Consumer.lock_named(self._db, uuids)
            elif wanted == _NEW:
                Consumer.insert_all(self._db, [self._consumers[uuid] for uuid in uuids])
            else:
                for uuid in uuids:
                    self._consumers[uuid].lock_as_read(self._db)
        Consumer.delete_created(self._db, self._relied_on.keys() - own)

    def _check_relied_on(self) -> None:
        """Refuse all claims if other consumers do not hold what is relied on."""
        if self._relied_on:
            held_on = self.providers_of(self._db, self._relied_on)
            if any(held_on[uuid] != {*ids} for uuid, ids in self._relied_on.items()):
                self._refused |= {claim.consumer: errors.AllocationsChanged() for claim in self._open_claims()}

    def _lock_providers(
        self, claims: Sequence[Claim], generations: Mapping[str, int] | None, skip_locked: bool
    ) -> list[Claim]:
        """Lock the providers, and return the claims whose providers are all locked and have the generations."""
        ids = self._provider_ids_of(claims)
        self._generations = provider_rows.lock_for_usage(self._db, ids, skip_locked=skip_locked)
        for claim in claims:
            for uuid in claim.resources.keys() - self._generations.keys():
                missing = errors.AllocationsChanged() if skip_locked else errors.UnknownAllocationProvider(uuid=uuid)
                self._refused[claim.consumer] = missing
        for claim in self._open_claims():
            if generations and any(self._generations[uuid] != generations[uuid] for uuid in claim.resources):
                self._refused[claim.consumer] = errors.AllocationsChanged()
        return self._open_claims()

    def _judge(self, claims: Sequence[Claim]) -> _Inventories:
        """Decide which claims fit, and return the inventories that they ask for."""
        classes = {name for claim in claims for amounts in claim.resources.values() for name in amounts}
        if not classes:
            return {}
        providers = {id_: uuid for uuid, id_ in self._provider_ids_of(claims).items()}
        inventories = ClaimedInventory.read(self._db, providers, classes, ())
        used = {key: inventory.used for key, inventory in inventories.items()}
        own = self._own_amounts(claims, inventories)
        for claim in claims:
            try:
                _take(claim, inventories, used, own[claim.consumer])
            except errors.Conflict as failure:
                self._refused[claim.consumer] = failure
        return inventories

    def _write_consumers(self, tried: Iterable[Claim], placed: Iterable[Claim]) -> None:
        """Advance the consumers that existed, and delete the rows of new ones whose claims are refused."""
        refused = [claim.consumer for claim in tried if claim.consumer in self._refused]
        Consumer.delete_new(self._db, [uuid for uuid in refused if self._consumers[uuid].id is None])
        for claim in placed:
            consumer = self._consumers[claim.consumer]
            if consumer.id is not None:
                consumer.advance(self._db, as_read=True)

    def _replace_allocations(self, claims: Sequence[Claim], inventories: _Inventories) -> None:
        allocation_rows.delete_all(self._db, [self._consumers[claim.consumer] for claim in claims])
        allocation_rows.insert(self._db, claims, self._provider_ids, inventories)

    def _note(self, placed: Iterable[Claim]) -> None:
        """Note for the history what the claims change."""
        if not self._db.has_history:
            return
        for claim in placed:
            moved = {uuid: (self._generations[uuid], self._generations[uuid] + 1) for uuid in claim.resources}
            generation = self._placed(claim).consumer_generation
            note_claim(self._db, claim, self._before.get(claim.consumer), generation, moved)

    # --- what the steps need ---

    def _open_claims(self) -> list[Claim]:
        """Return the claims that are not refused so far."""
        return [claim for consumer, claim in self._claims.items() if consumer not in self._refused]

    def _provider_ids_of(self, claims: Iterable[Claim]) -> dict[str, int]:
        """Return the ids of the providers that the claims name, by uuid."""
        return {uuid: self._provider_ids[uuid] for claim in claims for uuid in claim.resources}

    def _own_amounts(self, claims: Iterable[Claim], inventories: _Inventories) -> Mapping[str, _Amounts]:
        """Return what each consumer holds of these inventories, and gives up if its claim is placed."""
        own: Mapping[str, _Amounts] = defaultdict(dict)
        holders = [claim.consumer for claim in claims if self._consumers[claim.consumer].held_on]
        if holders:
            keys = {(self._provider_ids[uuid], of.class_id): (uuid, name) for (uuid, name), of in inventories.items()}
            for consumer, provider_id, class_id, amount in self._db.execute(_HELD, {"consumers": holders}):
                if consumer in self._claims and (key := keys.get((provider_id, class_id))) is not None:
                    own[consumer][key] = own[consumer].get(key, 0) + int(amount)
        return own

    def _placed(self, claim: Claim) -> PlacedClaim:
        consumer = self._consumers[claim.consumer]
        return PlacedClaim(
            consumer_generation=1 if consumer.generation is None else consumer.generation + 1,
            existed=consumer.id is not None,
            moved=bool(consumer.held_on),
            provider_generations={uuid: self._generations[uuid] + 1 for uuid in claim.resources},
        )


def _take(
    claim: Claim,
    inventories: _Inventories,
    used: _Amounts,
    own: Mapping[tuple[str, str], int],
) -> None:
    """Change ``used`` as the claim does, which gives up ``own``; raises a Conflict, and changes nothing, if not fit."""
    wanted = {(uuid, name): amount for uuid, amounts in claim.resources.items() for name, amount in amounts.items()}
    for (uuid, name), amount in wanted.items():
        inventory = inventories.get((uuid, name))
        if inventory is None:
            raise errors.NoInventoryToAllocate(resource_classes=name, uuids=uuid)
        key = uuid, name
        replace(inventory, used=used[key], used_by_claimants=own.get(key, 0)).check(amount, amount)
    for key, amount in own.items():
        used[key] -= amount
    for key, amount in wanted.items():
        used[key] += amount


_A = allocations.c
_CONSUMERS: sa.BindParameter[str] = sa.bindparam("consumers", expanding=True)
_OF_CONSUMERS = _A.consumer_id.in_(_CONSUMERS)
_HELD = sa.select(_A.consumer_id, _A.resource_provider_id, _A.resource_class_id, _A.used).where(_OF_CONSUMERS)
