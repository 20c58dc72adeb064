"""Start and end of allocations: requests for any node that fits, records for nodes in use, deletion of records.

A node is chosen from the index outside the transaction, so the choice may be stale.  The transaction places a claim,
which locks the node, and then verifies that the node still fits the request.  If not, another node is chosen from a
newer snapshot.  A request therefore fails only if no node fitted it at some point in time, and a record is either
active or in error, never in between.
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

#: Maximum age of the snapshot for the first, optimistic choice, in seconds.
MAX_SNAPSHOT_AGE = 1.0

#: Rounds before the first pause.  Most requests that lose a node get another one within two rounds; pauses spread the
#: other requests.
_ROUNDS_WITHOUT_PAUSE = 3

#: Failures of a claim if the node was deleted, taken or made unavailable after the choice.
_NODE_CHANGED = (
    errors.NoInventoryToAllocate,
    errors.AmountAgainstConstraints,
    errors.CapacityExceeded,
    errors.UnknownAllocationProvider,
    errors.UnknownResourceClass,
    NodeTaken,
    NodeNotFound,
)


class _NoLongerFits(Exception):
    """The candidate no longer fits."""


# --- any node that fits ----------------------------------------------------------------------------------------------


class NodeRequest:
    """A request for any node that fits."""

    def __init__(self, database: Database, index: LiveIndex, request: Record, owner: Owner, *, attempts: int) -> None:
        """Prepare the request.

        Args:
            request: The validated record of the request.
            owner: The owner of the consumer that will hold the node.
            attempts: Maximum number of attempts at one claim.
        """
        self._database, self._index, self._request, self._owner = database, index, request, owner
        self._attempts = attempts
        self._refused: set[CandidateNode] = set()

    def place(self) -> None:
        """Allocate a node that fits and record it; record an error if no node fits.

        Raises:
            RecordUuidTaken, RecordNameTaken: Another record has the uuid or name.
            AllocationsChanged: A claim collided too often, or other claims took every chosen node until the deadline.
        """
        try:
            outcome = self._try_nodes()
        except errors.AllocationsChanged:
            signals.node_requested("contended", len(self._refused))
            raise
        signals.node_requested(outcome, len(self._refused))

    def _try_nodes(self) -> signals.NodeOutcome:
        """Choose nodes until one is allocated, none fits, or the deadline has passed."""
        deadline = retry.new_deadline()
        candidate = self._optimistic_candidate()
        rounds = 0
        while True:
            rounds += 1
            if candidate is None:
                choice = Choice(self._index.current(), self._request, self._refused)
                candidate = self._database.read(choice.candidate)
                if candidate is None and not choice.is_stale(self._index.current):
                    return self._record_no_node(choice)
            if candidate is not None and (outcome := self._try_claim(candidate)) is not None:
                return outcome
            if retry.has_passed(deadline):
                raise errors.AllocationsChanged()
            if rounds >= _ROUNDS_WITHOUT_PAUSE:
                retry.pause(rounds)
            candidate = None

    def _optimistic_candidate(self) -> CandidateNode | None:
        """Return a candidate from a snapshot that may be stale.

        This saves the refresh of the index, which takes more statements than all other steps of the choice.  Most nodes
        that are free in a recent snapshot still are, and their rows are read in any case.  A request with a name gets
        no such candidate: the node with that name may have become free since.
        """
        if self._request.name is not None:
            return None
        return self._database.read(Choice(self._index.recent(MAX_SNAPSHOT_AGE), self._request).sampled_candidate)

    def _try_claim(self, candidate: CandidateNode) -> signals.NodeOutcome | None:
        """Claim the node and record it; return None and refuse the node if it no longer fits."""
        try:
            self._database.write(
                lambda db: self._claim(db, candidate), attempts=self._attempts, exhausted=errors.AllocationsChanged
            )
        except (_NoLongerFits, *_NODE_CHANGED):
            self._refused.add(candidate)
            return None
        except errors.ConsumerGenerationConflict:
            reason = str(ConsumerHoldsElsewhere(instance=self._request.uuid, node=candidate.uuid))
            return self._record_failure("uuid_in_use", _UNEXPECTED % {"reason": reason})
        return "active"

    def _claim(self, db: Transaction, candidate: CandidateNode) -> None:
        request = self._request
        unit = {candidate.uuid: {inventory_class(request.resource_class): 1}}
        # Read the id after a collision: a recreated provider has a different one.
        ids = {candidate.uuid: candidate.provider_id} if db.attempt == 1 else None
        ClaimSet(db, [Claim(request.uuid, unit, self._owner, generation=None)]).place(ids)
        # The claim has locked the provider, so the node cannot change.
        locked = LockedNode.of_claim(db, candidate.uuid)
        still_fits = locked.node.instance_uuid == request.uuid and fits(request, locked.node)
        if not still_fits or (request.traits and not _has_traits(db, locked.node, request)):
            raise _NoLongerFits
        _write_traits(locked, request)
        record = replace(request, node_uuid=candidate.uuid, updated_at=utcnow())
        try:
            record.insert(db)
        except RecordUuidTaken:
            # The consumer is new, so its record with a node has ended; that row would otherwise become active.
            Record.delete_of_consumer(db, request.uuid)
            record.insert(db)

    def _record_no_node(self, choice: Choice) -> signals.NodeOutcome:
        """Record that no node fits the request, with the reason."""
        request = self._request
        outcome: signals.NodeOutcome = "no_nodes"
        template = _NO_REQUESTED_NODES if request.candidate_nodes else _NO_NODES
        if request.traits and self._database.read(choice.without_traits().candidate) is not None:
            outcome, template = "no_traits", _NO_TRAITS
        details = {"resource_class": request.resource_class, "traits": ", ".join(sorted(set(request.traits)))}
        return self._record_failure(outcome, _FAILED % {"uuid": request.uuid, "reason": template % details})

    def _record_failure(self, outcome: signals.NodeOutcome, error: str) -> signals.NodeOutcome:
        record = replace(self._request, last_error=error, updated_at=utcnow())
        self._database.write(record.insert)
        return outcome


def _has_traits(db: Transaction, node: Node, request: Record) -> bool:
    return set(request.traits) <= set(traits_of(db, [node.uuid])[node.uuid])


def _write_traits(locked: LockedNode, request: Record) -> None:
    """Write the requested traits to ``instance_info`` of the node for deployment tools."""
    instance_info = locked.node.details.get("instance_info") or {}
    locked.update(details={"instance_info": {**instance_info, "traits": list(request.traits)}})


# --- a node in use ---------------------------------------------------------------------------------------------------


def backfill(
    db: Transaction, node: Node, request: Record, owner: Owner, *, keep_holder: bool, any_project: bool = False
) -> Record:
    """Add the allocation record of a node in use, and return the record.

    A node without a holder is allocated to a new consumer.

    Args:
        node: The node read by this attempt.
        request: The request.  An empty class means the class of the node.
        owner: The owner of a new consumer.
        keep_holder: Whether the record gets the uuid of the node's holder, if any, instead of the requested uuid.
        any_project: Whether an existing consumer with the uuid of the request may belong to another project.

    Raises:
        BackfillRefused: The node is not in use or does not match the request.
        NodeTaken: Another consumer holds the node.
        ConsumerHoldsElsewhere: The consumer holds another node or belongs to another project.
        RecordUuidTaken, RecordNameTaken: Another record has the uuid or name.
    """
    if keep_holder and node.instance_uuid is not None:
        request = replace(request, uuid=node.instance_uuid)

    def insert(locked: LockedNode) -> None:
        if (locked.node.owner, locked.node.lessee) != (node.owner, node.lessee):
            raise Collision  # the caller may have lost access
        resource_class = request.resource_class or locked.node.resource_class
        replace(request, node_uuid=node.uuid, resource_class=resource_class, updated_at=utcnow()).insert(db)
        _check_backfill(locked.node, traits_of(db, [node.uuid])[node.uuid], request)
        _write_traits(locked, request)

    if node.instance_uuid == request.uuid:
        locked = LockedNode.lock(db, node.uuid)
        if locked.node.instance_uuid != request.uuid:
            raise Collision
        insert(locked)
    else:
        uuid, unit = node.uuid, node.inventory_class
        holding.assign(db, uuid, unit, request.uuid, owner, any_project=any_project, unavailable=True, check=insert)
    record = Record.find(db, request.uuid)
    if record is None:
        # The holder has released the node since it was read: a release does not lock the node.
        raise Collision
    return record


def _check_backfill(node: Node, traits: Sequence[str], request: Record) -> None:
    reasons = []
    if node.provision_state != states.ACTIVE:
        reasons.append(f"Node must be in the 'active' state, but the current state is '{node.provision_state}'")
    if request.resource_class and node.resource_class != request.resource_class:
        reasons.append(
            f"Resource class {node.resource_class} does not match the requested resource class {request.resource_class}"
        )
    if not set(request.traits) <= set(traits):
        reasons.append(f"List of traits {traits} does not match the requested traits {list(request.traits)}")
    if request.candidate_nodes and node.uuid not in request.candidate_nodes:
        candidates = list(request.candidate_nodes)
        reasons.append(f"Candidate nodes must be empty or contain the target node, but got {candidates}")
    if reasons:
        raise BackfillRefused(node=node.uuid, reasons="; ".join(reasons))


# --- deletion ------------------------------------------------------------------------------------------------------


def end(db: Transaction, record: Record) -> None:
    """Delete a record, and release the node of an active one.

    Args:
        record: The record read by this attempt.

    Raises:
        AllocationNeeded: The state of the node does not allow it.
    """
    if record.node_uuid is None:
        record.delete(db)
        return

    def check(locked: LockedNode) -> None:
        current = locked.node
        target = current.target_provision_state
        if not states.may_lose_allocation(current.provision_state, target, current.maintenance):
            raise AllocationNeeded(allocation=record.uuid, node=current.uuid, state=current.provision_state)
        if not record.delete(db):
            raise Collision  # the uuid may have been reused by another project

    holding.end(db, record.node_uuid, record.uuid, check)
