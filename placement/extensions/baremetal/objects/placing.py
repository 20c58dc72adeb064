"""The start and end of allocations: a request for any node that fits, a record of a node in use, a record deleted.

A node is chosen in the index, outside of the transaction, so the choice may be out of date.  The transaction places a
claim, which locks the node, and then verifies that the node still fits the request.  If it does not, another node is
chosen in a newer snapshot.  So a request ends in error only if at some moment no node fitted it, and no record stays
between the two states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placement import errors
from placement.db.database import Database
from placement.db.schema.tables import utcnow
from placement.db.writes import retry
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.baremetal import signals
from placement.extensions.baremetal.failures import (
    AllocationNeeded,
    BackfillRefused,
    ConsumerHoldsElsewhere,
    NodeNotFound,
    NodeTaken,
    RecordUuidTaken,
)
from placement.extensions.baremetal.objects import holding, states
from placement.extensions.baremetal.objects.candidates import CandidateNode, Choice, fits
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node, inventory_class, traits_of
from placement.extensions.baremetal.objects.record import Record
from placement.index.live import LiveIndex
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner

_NO_NODES = "no available nodes match the resource class %(resource_class)s"
_NO_REQUESTED_NODES = "none of the requested nodes are available and match the resource class %(resource_class)s"
_NO_TRAITS = "no suitable nodes have the requested traits %(traits)s"
_FAILED = "Failed to process allocation %(uuid)s: %(reason)s."
_UNEXPECTED = "Unexpected exception during allocation: %(reason)s"

#: Seconds: how old the snapshot of a first guess may be.
GUESS_AGE = 1.0

#: Most requests that lose a node get one in the next round, or the one after it; pauses spread out the others.
_ROUNDS_WITHOUT_PAUSE = 3

#: Failures of a claim on a node that was deleted, taken or made unavailable after the choice.
_GONE = (
    errors.NoInventoryToAllocate,
    errors.AmountAgainstConstraints,
    errors.CapacityExceeded,
    errors.UnknownAllocationProvider,
    errors.UnknownResourceClass,
    NodeTaken,
    NodeNotFound,
)


class _Lost(Exception):
    """The candidate does not fit any more."""


# --- any node that fits ----------------------------------------------------------------------------------------------


class Allocating:
    """A request on its way to a node."""

    def __init__(self, database: Database, index: LiveIndex, wanted: Record, owner: Owner, *, attempts: int) -> None:
        """Take what is needed.

        Args:
            wanted: The request, validated.
            owner: That of the consumer that will hold the node.
            attempts: The largest number of attempts at one claim.
        """
        self._database, self._index, self._wanted, self._owner = database, index, wanted, owner
        self._attempts = attempts
        self._refused: set[CandidateNode] = set()

    def place(self) -> None:
        """Give the request a node that fits it, and record that; record an error if no node fits.

        Raises:
            RecordUuidTaken, RecordNameTaken: Another record has it.
            AllocationsChanged: A claim collided too often, or other claims took each chosen node until the deadline.
        """
        try:
            outcome = self._outcome()
        except errors.AllocationsChanged:
            signals.node_requested("contended", len(self._refused))
            raise
        signals.node_requested(outcome, len(self._refused))

    def _outcome(self) -> signals.NodeOutcome:
        deadline = retry.new_deadline()
        candidate = self._guess()
        number = 0
        while True:
            number += 1
            if candidate is None:
                choice = Choice(self._index.current(), self._wanted, self._refused)
                candidate = self._database.read(choice.candidate)
                if candidate is None and not choice.is_stale(self._index.current):
                    return self._without_node(choice)
            if candidate is not None and (outcome := self._claimed(candidate)) is not None:
                return outcome
            if retry.has_passed(deadline):
                raise errors.AllocationsChanged()
            if number >= _ROUNDS_WITHOUT_PAUSE:
                retry.pause(number)
            candidate = None

    def _guess(self) -> CandidateNode | None:
        """Return a candidate without a refresh of the index, which takes more statements than the rest of the choice.

        Most nodes that were free a moment ago still are, and the rows are read in any case.  A request with a name has
        no guess: the node of that name may be free, and not in this snapshot yet.
        """
        if self._wanted.name is not None:
            return None
        return self._database.read(Choice(self._index.recent(GUESS_AGE), self._wanted).guess)

    def _claimed(self, candidate: CandidateNode) -> signals.NodeOutcome | None:
        """Claim the node and record it; if it does not fit any more, refuse it, and return None."""
        try:
            self._database.write(
                lambda db: self._claim(db, candidate), attempts=self._attempts, exhausted=errors.AllocationsChanged
            )
        except (_Lost, *_GONE):
            self._refused.add(candidate)
            return None
        except errors.ConsumerGenerationConflict:
            reason = str(ConsumerHoldsElsewhere(instance=self._wanted.uuid, node=candidate.uuid))
            return self._failed("uuid_in_use", _UNEXPECTED % {"reason": reason})
        return "active"

    def _claim(self, db: Transaction, candidate: CandidateNode) -> None:
        wanted = self._wanted
        unit = {candidate.uuid: {inventory_class(wanted.resource_class): 1}}
        # After a collision the id is read: a provider that was deleted and made again has another one.
        ids = {candidate.uuid: candidate.provider_id} if db.attempt == 1 else None
        ClaimSet(db, [Claim(wanted.uuid, unit, self._owner, generation=None)]).place(ids)
        # The claim has locked the provider: what is read now does not change any more.
        locked = LockedNode.of_claim(db, candidate.uuid)
        fitting = locked.node.instance_uuid == wanted.uuid and fits(wanted, locked.node)
        if not fitting or (wanted.traits and not _has_traits(db, locked.node, wanted)):
            raise _Lost
        _note_traits(locked, wanted)
        record = replace(wanted, node_uuid=candidate.uuid, updated_at=utcnow())
        try:
            record.insert(db)
        except RecordUuidTaken:
            # The consumer is new, so a record of it with a node has ended.  If kept, it would count as active now.
            Record.delete_of_consumer(db, wanted.uuid)
            record.insert(db)

    def _without_node(self, choice: Choice) -> signals.NodeOutcome:
        """Record that no node fits the request, and why."""
        wanted = self._wanted
        outcome: signals.NodeOutcome = "no_nodes"
        template = _NO_REQUESTED_NODES if wanted.candidate_nodes else _NO_NODES
        if wanted.traits and self._database.read(choice.without_traits().candidate) is not None:
            outcome, template = "no_traits", _NO_TRAITS
        facts = {"resource_class": wanted.resource_class, "traits": ", ".join(sorted(set(wanted.traits)))}
        return self._failed(outcome, _FAILED % {"uuid": wanted.uuid, "reason": template % facts})

    def _failed(self, outcome: signals.NodeOutcome, error: str) -> signals.NodeOutcome:
        record = replace(self._wanted, last_error=error, updated_at=utcnow())
        self._database.write(record.insert)
        return outcome


def _has_traits(db: Transaction, node: Node, wanted: Record) -> bool:
    return set(wanted.traits) <= set(traits_of(db, [node.uuid])[node.uuid])


def _note_traits(locked: LockedNode, wanted: Record) -> None:
    """Write the requested traits to ``instance_info`` of the node, where deployment tools read them."""
    information = locked.node.details.get("instance_info") or {}
    locked.update(details={"instance_info": {**information, "traits": list(wanted.traits)}})


# --- a node in use ---------------------------------------------------------------------------------------------------


def backfill(
    db: Transaction, node: Node, wanted: Record, owner: Owner, *, keep_holder: bool, any_project: bool = False
) -> Record:
    """Record that a node in use is allocated, and return the record.

    A node without holder is given to a new consumer.  One that has a holder keeps it.

    Args:
        node: As this attempt has read it.
        wanted: The request.  An empty class means that of the node.
        owner: That of a new consumer.
        keep_holder: Whether the record gets the uuid of the node's holder, if it has one, and not that of the request.
        any_project: Whether an existing consumer of the request's uuid may be of another project than the request's.

    Raises:
        BackfillRefused: The node is not in use, or does not match the request.
        NodeTaken: Another consumer holds the node.
        ConsumerHoldsElsewhere: The consumer holds another node, or is of another project.
        RecordUuidTaken, RecordNameTaken: Another record has it.
    """
    if keep_holder and node.instance_uuid is not None:
        wanted = replace(wanted, uuid=node.instance_uuid)

    def insert(locked: LockedNode) -> None:
        if (locked.node.owner, locked.node.lessee) != (node.owner, node.lessee):
            raise Collision  # the caller may have no right to it any more
        resource_class = wanted.resource_class or locked.node.resource_class
        replace(wanted, node_uuid=node.uuid, resource_class=resource_class, updated_at=utcnow()).insert(db)
        _check_backfill(locked.node, traits_of(db, [node.uuid])[node.uuid], wanted)
        _note_traits(locked, wanted)

    if node.instance_uuid == wanted.uuid:
        locked = LockedNode.lock(db, node.uuid)
        if locked.node.instance_uuid != wanted.uuid:
            raise Collision
        insert(locked)
    else:
        uuid, unit = node.uuid, node.inventory_class
        holding.assign(db, uuid, unit, wanted.uuid, owner, any_project=any_project, unavailable=True, check=insert)
    record = Record.find(db, wanted.uuid)
    if record is None:
        # The kept holder has ended since it was read: that takes no lock of the node.
        raise Collision
    return record


def _check_backfill(node: Node, traits: Sequence[str], wanted: Record) -> None:
    reasons = []
    if node.provision_state != states.ACTIVE:
        reasons.append(f"Node must be in the 'active' state, but the current state is '{node.provision_state}'")
    if wanted.resource_class and node.resource_class != wanted.resource_class:
        reasons.append(
            f"Resource class {node.resource_class} does not match the requested resource class {wanted.resource_class}"
        )
    if not set(wanted.traits) <= set(traits):
        reasons.append(f"List of traits {traits} does not match the requested traits {list(wanted.traits)}")
    if wanted.candidate_nodes and node.uuid not in wanted.candidate_nodes:
        given = list(wanted.candidate_nodes)
        reasons.append(f"Candidate nodes must be empty or contain the target node, but got {given}")
    if reasons:
        raise BackfillRefused(node=node.uuid, reasons="; ".join(reasons))


# --- the end ---------------------------------------------------------------------------------------------------------


def end(db: Transaction, record: Record) -> None:
    """Delete the record; the node of an active one is free from then on.

    Args:
        record: As this attempt has read it.

    Raises:
        AllocationNeeded: The state of the node does not allow it.
    """
    if record.node_uuid is None:
        record.delete(db)
        return

    def check(locked: LockedNode) -> None:
        present = locked.node
        target = present.target_provision_state
        if not states.may_lose_allocation(present.provision_state, target, present.maintenance):
            raise AllocationNeeded(allocation=record.uuid, node=present.uuid, state=present.provision_state)
        if not record.delete(db):
            raise Collision  # the uuid may be that of another project's allocation by now

    holding.end(db, record.node_uuid, record.uuid, check)
