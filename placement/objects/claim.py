"""Claims: consumers take, move and give back what providers have.  The heart of the service.

The order of the steps is the correctness (docs/architecture.rst):

1. read the consumers, with what they hold, and find the providers;
2. write the consumers' rows, each only if it is still the one that was read: from here on nobody else can change what
   our consumers hold.  Where the client states no generation, writers of one consumer wait here for each other, and
   what it holds is read once more;
3. move the providers' generations, which locks their rows, in the order of their ids: from here on nobody else can add
   usage to them;
4. only then read inventories and usage, and decide by the one fit rule, against what others use;
5. replace what the consumers hold.

Usage of others can still vanish, since giving back locks no provider; that only makes room.  Whoever waits does so at
step 2 or 3, and holds then nothing that those before it need.  What nobody waits for, stands before the lock: a busy
provider is locked for as few round trips as possible.
"""

from __future__ import annotations

import enum
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.transaction import Transaction
from placement.objects import capacity
from placement.objects.consumer import Consumer, Owner
from placement.objects.provider import ResourceProvider
from placement.objects.resource_class import ResourceClass


class Unchecked(enum.Enum):
    """Stands for the consumer generation where the client states none; None says that there is no such consumer."""

    UNCHECKED = "any generation will do"


UNCHECKED = Unchecked.UNCHECKED

#: Ids by uuid.
ProviderIds = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Claim:
    """All that one consumer is to hold from now on: provider uuid -> class -> amount; nothing at all ends it."""

    consumer: str
    resources: Mapping[str, Mapping[str, int]]
    owner: Owner
    #: What the client believes: a generation, None for "no such consumer", or UNCHECKED.
    generation: int | Unchecked | None = UNCHECKED


def place(db: Transaction, claims: Sequence[Claim]) -> None:
    """Make the consumers hold exactly what is claimed, all of them or none."""
    consumers = read_consumers(db, claims)
    providers = ResourceProvider.ids(db, {uuid for claim in claims for uuid in claim.resources})
    check_named(claims, providers)
    write_consumers(db, claims, consumers)
    settle(db, claims, consumers, providers)


def read_consumers(db: Transaction, claims: Sequence[Claim]) -> dict[str, Consumer]:
    """The consumers as they are, by uuid; raises if a client is mistaken about one's generation."""
    unchecked = [claim.consumer for claim in claims if claim.generation is UNCHECKED]
    if unchecked and db.attempt > 1:
        # Of many consumers that others make and end all the time, one would be another than was read, each time.
        Consumer.lock_all(db, unchecked)
    consumers = Consumer.read_for(db, {claim.consumer: claim.owner if claim.resources else None for claim in claims})
    for claim in claims:
        if claim.generation is not UNCHECKED:
            consumers[claim.consumer].expect(claim.generation)
    return consumers


def check_named(claims: Sequence[Claim], providers: Collection[str]) -> None:
    """Nothing, if these are all the providers that claims name; raises UnknownAllocationProvider."""
    for claim in claims:
        for uuid in claim.resources:
            if uuid not in providers:
                raise errors.UnknownAllocationProvider(uuid=uuid)


def write_consumers(db: Transaction, claims: Sequence[Claim], consumers: Mapping[str, Consumer]) -> None:
    """Insert, advance or end the consumers' rows; raises Again if one is no longer as it was read, and that matters."""
    # In one order, whatever is done to each: others may do something else to it, and must not wait for us while we do
    # for them.
    in_order = sorted(claims, key=lambda claim: claim.consumer)
    for new, several in itertools.groupby(in_order, lambda claim: _is_new(claim, consumers)):
        if new:
            Consumer.insert_all(db, [consumers[claim.consumer] for claim in several])
            continue
        for claim in several:
            consumer, checked = consumers[claim.consumer], claim.generation is not UNCHECKED
            if claim.resources:
                consumer.advance(db, as_read=checked)
            else:
                consumer.remove(db, as_read=checked)
    unchecked = [consumers[claim.consumer] for claim in claims if claim.generation is UNCHECKED]
    Consumer.read_again(db, [consumer for consumer in unchecked if consumer.id is not None])


def _is_new(claim: Claim, consumers: Mapping[str, Consumer]) -> bool:
    return bool(claim.resources) and consumers[claim.consumer].id is None


def named(claims: Iterable[Claim], providers: ProviderIds) -> set[int]:
    """The providers that the claims name."""
    return {providers[uuid] for claim in claims for uuid in claim.resources}


def left(claims: Iterable[Claim], consumers: Mapping[str, Consumer]) -> set[int]:
    """The providers on which a consumer holds something that is to hold nothing: their generation moves, too."""
    return set().union(*(consumers[claim.consumer].held_on for claim in claims if not claim.resources))


def settle(db: Transaction, claims: Sequence[Claim], consumers: Mapping[str, Consumer], providers: ProviderIds) -> None:
    """``place`` from where the consumers are written: take the room, or raise why there is none."""
    ResourceProvider.advance_all(db, named(claims, providers), left(claims, consumers))
    room = _read_room(db, claims, providers)
    _check(claims, room)
    _replace(db, claims, consumers, providers, room)


def release(db: Transaction, uuid: str) -> None:
    """End the consumer and all it holds; raises NoAllocations."""
    held_on = Consumer.end(db, uuid)
    if not held_on:
        raise errors.NoAllocations(uuid=uuid)
    db.execute(_DELETE, {"consumers": [uuid]})
    for provider_id in held_on:
        db.changed(provider_id, feed.USAGE)


@dataclass(frozen=True, slots=True)
class _Room:
    """What a provider has of a class, and who uses how much of it."""

    class_id: int
    capacity: float
    min_unit: int
    max_unit: int
    step_size: int
    used: int
    #: The part of ``used`` that the consumers of this very request hold, and give up for it.
    held: int


def _read_room(db: Transaction, claims: Sequence[Claim], providers: ProviderIds) -> dict[tuple[str, str], _Room]:
    """Room by provider uuid and class name, for the classes named; raises UnknownResourceClass."""
    names = list(dict.fromkeys(n for claim in claims for amounts in claim.resources.values() for n in amounts))
    if not names:
        return {}
    rows = db.execute(
        _ROOM,
        {
            "providers": [*named(claims, providers)],
            "names": names,
            "consumers": [claim.consumer for claim in claims],
        },
    )
    room = {
        (row.uuid, row.name): _Room(
            class_id=row.class_id,
            capacity=capacity.capacity(row.total, row.reserved, row.allocation_ratio),
            min_unit=row.min_unit,
            max_unit=row.max_unit,
            step_size=row.step_size or 1,  # others may have written 0, by which nothing can be divided
            used=int(row.used or 0),
            held=int(row.held or 0),
        )
        for row in rows
    }
    ResourceClass.check(db, [name for name in names if all(name != found for _, found in room)])
    return room


def _check(claims: Sequence[Claim], room: Mapping[tuple[str, str], _Room]) -> None:
    """Nothing, if everything fits beside what others use; raises the first reason why not."""
    wanted: dict[tuple[str, str], int] = defaultdict(int)
    for claim in claims:
        for uuid, amounts in claim.resources.items():
            for name, amount in amounts.items():
                wanted[uuid, name] += amount
    if wanted and not room:
        raise errors.NoInventoryToAllocate(
            resource_classes=", ".join(dict.fromkeys(name for _, name in wanted)),
            uuids=", ".join(dict.fromkeys(uuid for uuid, _ in wanted)),
        )
    for claim in claims:
        for uuid, amounts in claim.resources.items():
            for name, amount in amounts.items():
                _check_one(uuid, name, amount, wanted[uuid, name], room.get((uuid, name)))


def _check_one(uuid: str, name: str, amount: int, total: int, room: _Room | None) -> None:
    if room is None:
        raise errors.NoInventoryToAllocate(resource_classes=name, uuids=uuid)
    if not capacity.within_units(amount, room.min_unit, room.max_unit, room.step_size):
        raise errors.AmountAgainstConstraints(resource_class=name, uuid=uuid)
    # Where inventory was cut below what is used, its consumers may still keep or lower what they hold.
    if not capacity.has_room(total, room.used - room.held, room.capacity) and total > room.held:
        raise errors.CapacityExceeded(resource_class=name, uuid=uuid)


def _replace(
    db: Transaction,
    claims: Sequence[Claim],
    consumers: Mapping[str, Consumer],
    providers: ProviderIds,
    room: Mapping[tuple[str, str], _Room],
) -> None:
    """Delete what the consumers held, and insert what they hold from now on."""
    holding = [consumer for consumer in consumers.values() if consumer.held_on]
    if holding:
        db.execute(_DELETE, {"consumers": [consumer.uuid for consumer in holding]})
    for consumer in holding:
        for provider_id in consumer.held_on:
            db.changed(provider_id, feed.USAGE)
    rows = [
        {
            "resource_provider_id": providers[uuid],
            "resource_class_id": room[uuid, name].class_id,
            "consumer_id": claim.consumer,
            "used": amount,
        }
        for claim in claims
        for uuid, amounts in claim.resources.items()
        for name, amount in amounts.items()
    ]
    if rows:
        db.execute(sa.insert(allocations), rows)


def _in(name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, expanding=True)


_A, _I, _C, _P = allocations.c, inventories.c, resource_classes.c, resource_providers.c


def _sum_used(*conditions: Any) -> sa.ScalarSelect[int]:
    """The usage of one inventory; without further conditions it is answered from an index alone."""
    return (
        sa.select(sa.func.sum(_A.used))
        .where(_A.resource_provider_id == _I.resource_provider_id, _A.resource_class_id == _I.resource_class_id)
        .where(*conditions)
        .correlate(inventories)
        .scalar_subquery()
    )


_ROOM = (
    sa.select(
        _P.uuid,
        _C.name,
        _C.id.label("class_id"),
        _I.total,
        _I.reserved,
        _I.min_unit,
        _I.max_unit,
        _I.step_size,
        _I.allocation_ratio,
        _sum_used().label("used"),
        _sum_used(_A.consumer_id.in_(_in("consumers"))).label("held"),
    )
    .select_from(inventories)
    .join(resource_providers, _P.id == _I.resource_provider_id)
    .join(resource_classes, _C.id == _I.resource_class_id)
    .where(_I.resource_provider_id.in_(_in("providers")), _C.name.in_(_in("names")))
)
_DELETE = sa.delete(allocations).where(_A.consumer_id.in_(_in("consumers")))
