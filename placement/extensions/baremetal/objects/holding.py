"""Allocation and release of nodes, by the same claims as for all consumers (placement/objects/claims/claim_set.py).

Consumers are locked before providers, so each function first writes the consumer and then locks the node.  Functions
take a node read by the same attempt; if it has changed when locked, the attempt is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placement import errors
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.baremetal import failures
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node, inventory_class
from placement.extensions.baremetal.objects.record import Record
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.provider import ResourceProvider

Change = Callable[[LockedNode], None]
#: Failures of a claim caused by an unavailable unit.
_UNIT_REFUSED = (
    *(errors.NoInventoryToAllocate, errors.UnknownResourceClass),
    *(errors.CapacityExceeded, errors.AmountAgainstConstraints),
)


def assign(
    db: Transaction,
    node_uuid: str,
    unit: str,
    consumer: str,
    owner: Owner,
    *,
    any_project: bool = False,
    unavailable: bool = False,
    insert: Callable[[], LockedNode] | None = None,
    check: Change = lambda _locked: None,
) -> LockedNode:
    """Allocate the unit of a node to a consumer, and return the locked node.

    Args:
        unit: The class of the node's unit after ``check`` has changed the node.
        consumer: A uuid.  An existing consumer keeps its owner and its other allocations.
        any_project: Whether an existing consumer may belong to a project other than ``owner``'s.
        unavailable: Whether the node may be unavailable; its unit is then reserved before and after.
        insert: A function that creates the node; None if it exists.  A provider with allocations may be adopted.
        check: A callback with the locked node before the write, which may raise a Failure or change the node.

    Raises:
        NodeTaken: Another consumer holds the node, or the node is unavailable but must not be.
        NodeNotFound: The node has been deleted.
        ConsumerHoldsElsewhere: The consumer holds another node or belongs to another project.
        Collision: The node's unit has another class; the transaction is retried.
    """

    def prepare() -> LockedNode:
        locked = LockedNode.lock(db, node_uuid) if insert is None else insert()
        _check_free(locked.node, consumer, unavailable=unavailable)
        check(locked)
        if locked.node.inventory_class != unit:
            raise Collision
        # A Placement client may have removed the inventory of an available node.
        if not locked.node.available or not locked.has_unit():
            locked.align(reserved=False)
        return locked

    claim = _assignment(db, node_uuid, unit, consumer, owner, any_project=any_project)
    try:
        locked = _place(db, claim, prepare)
    except _UNIT_REFUSED:
        # A Placement client has reserved the unit, lowered the total or raised min_unit; or the consumer holds
        # resources whose inventory was removed.
        raise failures.NodeUnavailable(node=node_uuid) from None
    locked.set_holder(consumer)
    if not locked.node.available:
        locked.align()
    return locked


def release(db: Transaction, node: Node, check: Change) -> LockedNode:
    """Release the holder's allocation of a node, delete its record, and return the locked node.

    Args:
        node: The node read by this attempt without a lock.  A node without a holder is only locked.
        check: A callback with the locked node, still held by ``node.instance_uuid``, which may raise a Failure or
            change the node.

    Raises:
        NodeNotFound: The node has been deleted.
        Collision: The holder has changed since the read; the transaction is retried.
    """
    if node.instance_uuid is None:
        return _lock(db, node, check)
    locked = end(db, node.uuid, node.instance_uuid, lambda locked: _check_holder(locked, node, check))
    locked.set_holder(None)
    return locked


def end(db: Transaction, node_uuid: str, consumer: str, check: Change) -> LockedNode:
    """Release a consumer's allocation of a node, delete its record, and return the locked node.

    The consumer need not be the holder: a node can have allocations of several consumers.

    Args:
        check: A callback with the locked node, which may raise a Failure or change the node.

    Raises:
        NodeNotFound: The node has been deleted.
        Collision: The consumer has no allocation of the node.
    """
    holding = _find_holding(db, node_uuid, consumer)

    def prepare() -> LockedNode:
        locked = LockedNode.lock(db, node_uuid)
        check(locked)
        return locked

    locked = _place(db, _claim(node_uuid, consumer, holding, {}), prepare)
    Record.delete_of_consumer(db, consumer)
    return locked


def reclassify(db: Transaction, node: Node, resource_class: str | None, check: Change) -> LockedNode:
    """Change the class of a node that may be held: the holder's unit moves to the new class.

    Args:
        node: The node read by this attempt without a lock.
        check: As for ``release``.

    Raises:
        NodeNotFound: The node has been deleted.
        Collision: The holder has changed since the read.
    """
    new_class, old_class = inventory_class(resource_class), node.inventory_class
    holding = None if node.instance_uuid is None else _find_holding(db, node.uuid, node.instance_uuid)
    must_move = holding is not None and new_class != old_class and old_class in holding.resources[node.uuid]
    if node.instance_uuid is None or holding is None or not must_move:
        locked = _lock(db, node, check)
        locked.reclassify(resource_class)
        return locked
    amounts = {name: amount for name, amount in holding.resources[node.uuid].items() if name != old_class}
    amounts[new_class] = holding.resources[node.uuid][old_class]

    def prepare() -> LockedNode:
        locked = _lock(db, node, check)
        locked.reclassify(resource_class, keep_old=True)
        locked.align(reserved=False)
        return locked

    locked = _place(db, _claim(node.uuid, node.instance_uuid, holding, amounts), prepare)
    locked.set_holder(node.instance_uuid)
    locked.align()
    locked.remove_unit(old_class)
    return locked


def _check_free(node: Node, consumer: str, *, unavailable: bool) -> None:
    if node.instance_uuid not in (None, consumer):
        raise failures.NodeTaken(node=node.uuid, instance=node.instance_uuid)
    if not node.available and not unavailable:
        raise failures.NodeUnavailable(node=node.uuid)


def _find_holding(db: Transaction, node_uuid: str, consumer: str) -> Holding:
    """Return the allocations of a consumer; raise Collision unless one of them is on the node."""
    holding = Holding.find(db, consumer)
    if holding is None or node_uuid not in holding.resources:
        raise Collision
    return holding


def _assignment(db: Transaction, node_uuid: str, unit: str, consumer: str, owner: Owner, *, any_project: bool) -> Claim:
    """Return the claim that allocates the unit of the node to the consumer.

    Raises:
        ConsumerHoldsElsewhere: The consumer holds another node, or belongs to another project and must not.
    """
    holding = Holding.find(db, consumer)
    if holding is None:
        return _claim(node_uuid, consumer, None, {unit: 1}, owner)
    elsewhere = node_uuid not in holding.resources and Node.of_uuids(db, holding.resources)
    if elsewhere or not (any_project or holding.project == owner.project):
        raise failures.ConsumerHoldsElsewhere(instance=consumer, node=node_uuid)
    return _claim(node_uuid, consumer, holding, holding.resources.get(node_uuid, {unit: 1}))


def _claim(
    node_uuid: str,
    consumer: str,
    holding: Holding | None,
    amounts: Mapping[str, int],
    owner: Owner | None = None,
) -> Claim:
    """Return the claim that sets the consumer's allocation of the node to these amounts.

    An existing consumer keeps its owner and its other allocations.  The claim fails if the consumer has changed since
    the read.
    """
    resources = {node_uuid: amounts} if amounts else {}
    if holding is None:
        assert owner is not None
        return Claim(consumer, resources, owner, generation=None, only_on=node_uuid)
    return Claim(consumer, resources, holding.owner, generation=holding.generation, only_on=node_uuid)


def _place(db: Transaction, claim: Claim, prepare: Callable[[], LockedNode]) -> LockedNode:
    """Place the claim after locking and preparing the node, and return the node.

    Raises:
        Collision: The consumer or the holder of the node has changed since the read.
    """
    assert claim.only_on is not None
    ids = ResourceProvider.ids(db, {claim.only_on})
    # The provider of a new node, or one deleted by a Placement client, is created when the node is locked.
    created = {claim.only_on} - ids.keys()
    locked: list[LockedNode] = []
    try:
        ClaimSet(db, [claim]).place(ids, lambda _ids: locked.append(prepare()), created=created)
    except errors.ConsumerGenerationConflict:
        raise Collision from None
    return locked[0]


def _lock(db: Transaction, node: Node, check: Change) -> LockedNode:
    """Return the locked node after checking it; raise Collision if its holder has changed."""
    locked = LockedNode.lock(db, node.uuid)
    _check_holder(locked, node, check)
    return locked


def _check_holder(locked: LockedNode, node: Node, check: Change) -> None:
    if locked.node.instance_uuid != node.instance_uuid:
        raise Collision
    check(locked)
