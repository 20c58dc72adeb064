"""Faults of claims: capacity, generations, owners, consumer rows and retries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from jepsen.planted.faults import PAUSE, fault
from placement import errors
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import consumers
from placement.db.writes import retry
from placement.objects import capacity
from placement.objects import consumer as consumer_module
from placement.objects.claims import joint_claims, release
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.claimed_inventory import ClaimedInventory
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Consumer


@fault
def usage_read_before_lock() -> None:
    """The capacity check uses amounts that were read before the provider was locked."""
    write_consumers, read_inventories = ClaimSet._write_consumers, ClaimSet._read_inventories
    early: dict[int, Any] = {}

    def write_first(self: ClaimSet) -> None:
        write_consumers(self)
        early[id(self)] = read_inventories(self)
        time.sleep(PAUSE)

    def read_early(self: ClaimSet) -> Any:
        return {**read_inventories(self), **early.pop(id(self))}

    ClaimSet._write_consumers, ClaimSet._read_inventories = write_first, read_early


@fault
def capacity_not_compared() -> None:
    """A claim is not compared with the capacity."""
    ClaimedInventory.check = lambda self, amount, total, used_by_others, released: None


@fault
def last_unit_refused() -> None:
    """A claim of the last unit of an inventory is refused."""
    capacity.within_capacity = lambda amount, used, capacity: used + amount < capacity


@fault
def consumer_generation_not_compared() -> None:
    """The consumer generation in a request is ignored."""
    Consumer.check_generation = lambda self, stated: None


@fault
def consumer_generation_not_raised() -> None:
    """A claim does not raise the generation of an existing consumer."""
    _change_advance({"generation": consumers.c.generation})


@fault
def owner_not_written() -> None:
    """A claim does not change the project and the user of an existing consumer."""
    _change_advance({"project_id": consumers.c.project_id, "user_id": consumers.c.user_id})


def _change_advance(values: Mapping[str, Any]) -> None:
    consumer_module._ADVANCE = CompiledStatement(consumer_module._ADVANCEMENT.values(values))


@fault
def consumer_row_not_deleted() -> None:
    """A claim that removes all allocations of a consumer leaves its row."""
    Consumer.delete = lambda self, db: None


@fault
def allocations_not_deleted() -> None:
    """DELETE of a consumer's allocations deletes only the consumer row, and leaves allocations without a consumer."""

    def end_row(db: Any, uuid: str) -> None:
        holders = [consumer for consumer in Holding.lock(db, [uuid]) if consumer.held_on]
        if not holders:
            raise errors.NoAllocations(uuid=uuid)
        Consumer(uuid, holders[0].id, holders[0].generation).delete(db)

    release.end_consumer = end_row


@fault
def orphan_deleted_during_claim() -> None:
    """Allocations without a consumer row are deleted without a lock, including the allocations of a concurrent claim.

    Only other implementations leave such allocations: ``allocations_not_deleted`` creates them.
    """
    allocations_not_deleted()
    delete = Consumer.delete

    def delete_row_only(self: Consumer, db: Any) -> None:
        if self.id is not None:
            delete(self, db)
        else:
            time.sleep(PAUSE)

    Consumer.delete = delete_row_only


@fault
def post_in_several_transactions() -> None:
    """POST /allocations writes each consumer in its own transaction."""
    place = joint_claims.place

    def one_by_one(database: Any, claims: Any, **options: Any) -> None:
        for claim in claims:
            place(database, [claim], **options)

    joint_claims.place = one_by_one


@fault
def single_attempt() -> None:
    """A write that collides with others is refused instead of retried."""
    until_done = retry.until_done
    retry.until_done = lambda attempt, attempts, *options: until_done(attempt, 1, *options)


@fault
def refused_reported_as_done() -> None:
    """All claims written together by several threads are reported as done, even those that did not fit."""
    place_together = joint_claims._place_together
    joint_claims._place_together = lambda database, claims: [True for _ in place_together(database, claims)]
