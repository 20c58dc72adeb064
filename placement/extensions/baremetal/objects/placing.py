"""The start and end of allocations: a request for any node that fits, a record of a node in use, a record deleted.

A node is chosen in the index, outside of the transaction, so the choice may be out of date.  The transaction places a
claim, which locks the node, and then verifies that the node still fits the request.  If it does not, another node is
chosen in a newer snapshot.  So a request ends in error only if at some moment no node fitted it, and no record stays
between the two states.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from placement.extensions.baremetal.objects.candidates import CandidateNode, Choice, NodeRequirements
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRequest:
    """A request for a node, validated."""

    uuid: str
    name: str | None
    resource_class: str
    traits: Sequence[str]
    #: Uuids.
    candidate_nodes: Sequence[str]
    extra: Mapping[str, Any]
    owner: str | None
    #: The owner of the consumer that will hold the node.
    consumer_owner: Owner
    created_at: datetime.datetime

    @property
    def requirements(self) -> NodeRequirements:
        """The conditions that the node has to meet."""
        return NodeRequirements(
            resource_class=self.resource_class,
            traits=self.traits,
            candidate_nodes=frozenset(self.candidate_nodes),
            owner=self.owner,
            preferred_name=self.name,
        )

    def record(self, **columns: Any) -> Record:
        """Return the record of the request, as it is before anything is written; ``columns`` replace those of it."""
        return Record(
            **{"id": 0, "node_uuid": None, "last_error": None, "updated_at": None, **self._columns, **columns}
        )

    def insert(self, db: Transaction, **columns: Any) -> None:
        """Insert the record, with these columns in place of its own; raises as ``Record.insert``."""
        Record.insert(db, **{"node_uuid": None, "last_error": None, "updated_at": utcnow(), **self._columns, **columns})

    @property
    def _columns(self) -> dict[str, Any]:
        return {
            "uuid": self.uuid,
            "name": self.name,
            "resource_class": self.resource_class,
            "owner": self.owner,
            "traits": list(self.traits),
            "candidate_nodes": list(self.candidate_nodes),
            "extra": self.extra,
            "created_at": self.created_at,
        }


# --- any node that fits ----------------------------------------------------------------------------------------------


def place(database: Database, index: LiveIndex, request: AllocationRequest, *, attempts: int) -> None:
    """Give the request a node that fits it, and record that; record an error if no node fits.

    Args:
        attempts: The largest number of attempts at one claim.

    Raises:
        RecordUuidTaken, RecordNameTaken: Another record has it.
        AllocationsChanged: A claim collided too often, or other claims took each chosen node until the deadline.
    """
    refused: set[CandidateNode] = set()
    try:
        _place(database, index, request, attempts, refused)
    except errors.AllocationsChanged:
        signals.node_requested("contended", len(refused))
        raise


def _place(
    database: Database, index: LiveIndex, request: AllocationRequest, attempts: int, refused: set[CandidateNode]
) -> None:
    deadline = retry.new_deadline()
    candidate = _guess(database, index, request)
    for number in itertools.count(1):
        if candidate is None:
            choice = Choice(index.current(), request.requirements, refused)
            candidate = database.read(choice.candidate)
            if candidate is None and not choice.is_stale(index.current):
                _record_error(database, request, *_reason(database, request, choice), len(refused))
                return
        if candidate is not None and _is_decided(database, request, candidate, attempts, refused):
            return
        if retry.is_over(deadline):
            raise errors.AllocationsChanged()
        if number >= _ROUNDS_WITHOUT_PAUSE:
            retry.pause(number)
        candidate = None


def _guess(database: Database, index: LiveIndex, request: AllocationRequest) -> CandidateNode | None:
    """Return a candidate without a refresh of the index, which takes more statements than the rest of the choice.

    Most nodes that were free a moment ago still are, and the rows are read in any case.  A request with a name has no
    guess: the node of that name may be free, and not in this snapshot yet.
    """
    return database.read(Choice(index.recent(GUESS_AGE), request.requirements).guess) if request.name is None else None


def _is_decided(
    database: Database, request: AllocationRequest, candidate: CandidateNode, attempts: int, refused: set[CandidateNode]
) -> bool:
    """Claim the node, and return whether that decides the request; if the node does not fit any more, refuse it."""
    try:
        _claim(database, request, candidate, attempts)
    except _Lost:
        refused.add(candidate)
        return False
    except errors.ConsumerGenerationConflict:
        reason = str(ConsumerHoldsElsewhere(instance=request.uuid, node=candidate.uuid))
        _record_error(database, request, "uuid_in_use", _UNEXPECTED % {"reason": reason}, len(refused))
    else:
        signals.node_requested("active", len(refused))
    return True


def _claim(database: Database, request: AllocationRequest, candidate: CandidateNode, attempts: int) -> None:
    """Claim the node and insert the record, in one transaction; raises _Lost if the node does not fit any more."""
    try:
        database.write(
            lambda db: _claim_once(db, request, candidate), attempts=attempts, exhausted=errors.AllocationsChanged
        )
    except _GONE as failure:
        raise _Lost from failure


def _claim_once(db: Transaction, request: AllocationRequest, candidate: CandidateNode) -> None:
    unit = {candidate.uuid: {inventory_class(request.resource_class): 1}}
    # After a collision the id is read: a provider that was deleted and made again has another one.
    ids = {candidate.uuid: candidate.provider_id} if db.attempt == 1 else None
    ClaimSet(db, [Claim(request.uuid, unit, request.consumer_owner, generation=None)]).place(ids)
    # The claim has locked the provider: what is read now does not change any more.
    locked = LockedNode.of_claim(db, candidate.uuid)
    fits = locked.node.instance_uuid == request.uuid and request.requirements.met_by(locked.node)
    if not fits or (request.traits and not _has_traits(db, locked.node, request)):
        raise _Lost
    _note_traits(locked, request)
    try:
        request.insert(db, node_uuid=candidate.uuid)
    except RecordUuidTaken:
        # The consumer is new, so a record of it with a node has ended.  If kept, it would count as active now.
        Record.delete_of_consumer(db, request.uuid)
        request.insert(db, node_uuid=candidate.uuid)


def _has_traits(db: Transaction, node: Node, request: AllocationRequest) -> bool:
    return set(request.traits) <= set(traits_of(db, [node.uuid])[node.uuid])


def _note_traits(locked: LockedNode, request: AllocationRequest) -> None:
    """Write the requested traits to ``instance_info`` of the node, where deployment tools read them."""
    information = locked.node.details.get("instance_info") or {}
    locked.update(details={"instance_info": {**information, "traits": list(request.traits)}})


def _record_error(
    database: Database, request: AllocationRequest, outcome: signals.NodeOutcome, error: str, refused: int
) -> None:
    database.write(lambda db: request.insert(db, last_error=error))
    signals.node_requested(outcome, refused)


def _reason(database: Database, request: AllocationRequest, choice: Choice) -> tuple[signals.NodeOutcome, str]:
    """Return why no node fits the request: the outcome, and the text of the record."""
    outcome: signals.NodeOutcome = "no_nodes"
    template = _NO_REQUESTED_NODES if request.candidate_nodes else _NO_NODES
    if request.traits and database.read(choice.without_traits().candidate) is not None:
        outcome, template = "no_traits", _NO_TRAITS
    facts = {"resource_class": request.resource_class, "traits": ", ".join(sorted(set(request.traits)))}
    return outcome, _FAILED % {"uuid": request.uuid, "reason": template % facts}


# --- a node in use ---------------------------------------------------------------------------------------------------


def backfill(
    db: Transaction, node: Node, request: AllocationRequest, *, keep_holder: bool, any_project: bool = False
) -> Record:
    """Record that a node in use is allocated, and return the record.

    A node without holder is given to a new consumer.  One that has a holder keeps it.

    Args:
        node: As this attempt has read it.
        request: An empty class means that of the node.
        keep_holder: Whether the record gets the uuid of the node's holder, if it has one, and not that of the request.
        any_project: Whether an existing consumer of the request's uuid may be of another project than the request's.

    Raises:
        BackfillRefused: The node is not in use, or does not match the request.
        NodeTaken: Another consumer holds the node.
        ConsumerHoldsElsewhere: The consumer holds another node, or is of another project.
        RecordUuidTaken, RecordNameTaken: Another record has it.
    """
    if keep_holder and node.instance_uuid is not None:
        request = replace(request, uuid=node.instance_uuid)

    def insert(locked: LockedNode) -> None:
        if (locked.node.owner, locked.node.lessee) != (node.owner, node.lessee):
            raise Collision  # the caller may have no right to it any more
        resource_class = request.resource_class or locked.node.resource_class
        request.insert(db, node_uuid=node.uuid, resource_class=resource_class)
        _check_backfill(locked.node, traits_of(db, [node.uuid])[node.uuid], request)
        _note_traits(locked, request)

    if node.instance_uuid == request.uuid:
        locked = LockedNode.lock(db, node.uuid)
        if locked.node.instance_uuid != request.uuid:
            raise Collision
        insert(locked)
    else:
        owner = request.consumer_owner
        holding.assign(db, node, request.uuid, owner, any_project=any_project, unavailable=True, check=insert)
    record = Record.find(db, request.uuid)
    if record is None:
        # The kept holder has ended since it was read: that takes no lock of the node.
        raise Collision
    return record


def _check_backfill(node: Node, traits: Sequence[str], request: AllocationRequest) -> None:
    reasons = []
    if node.provision_state != states.ACTIVE:
        reasons.append(f"Node must be in the 'active' state, but the current state is '{node.provision_state}'")
    if request.resource_class and node.resource_class != request.resource_class:
        wanted = request.resource_class
        reasons.append(f"Resource class {node.resource_class} does not match the requested resource class {wanted}")
    if not set(request.traits) <= set(traits):
        reasons.append(f"List of traits {traits} does not match the requested traits {list(request.traits)}")
    if request.candidate_nodes and node.uuid not in request.candidate_nodes:
        given = list(request.candidate_nodes)
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
