"""How consumers get and lose nodes, on the same claims as every other consumer (placement/objects/claims/claim_set.py).

Consumers are locked before providers, so each of these functions first writes the consumer and then locks the node.
They take a node that the same attempt has read: if it is no longer so under the lock, the attempt is run again.
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
#: Failures of a claim on the unit of a node.
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
    """Give the unit of a node to a consumer, and return the locked node.

    Args:
        unit: The class of the node's unit, once ``check`` has changed the node.
        consumer: A uuid.  What it holds elsewhere it keeps, and an existing one keeps its owner.
        any_project: Whether an existing consumer may be of another project than ``owner``.
        unavailable: Whether the node may be one that is not available: its unit is reserved, before and afterwards.
        insert: Creates a node that does not exist; it may adopt a provider on which a consumer holds something.
        check: Called with the locked node before anything is written to it; may raise a Failure, and may change it.

    Raises:
        NodeTaken: Another consumer holds the node, or it is not available and need be.
        NodeNotFound: There is no such node any more.
        ConsumerHoldsElsewhere: The consumer holds another node, or is of another project.
        Collision: The unit is of another class; the transaction is run again.
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

    claim = _giving(db, node_uuid, unit, consumer, owner, any_project=any_project)
    try:
        locked = _place(db, claim, prepare)
    except _UNIT_REFUSED:
        # A Placement client has reserved the unit, cut the total, or requires larger amounts; or the consumer holds
        # resources whose inventory was removed.
        raise failures.NodeUnavailable(node=node_uuid) from None
    locked.claimed(consumer)
    if not locked.node.available:
        locked.align()
    return locked


def release(db: Transaction, node: Node, check: Change) -> LockedNode:
    """End what the node's holder has on it, with the holder's allocation record, and return the locked node.

    Args:
        node: As this attempt has read it without a lock.  If it has no holder, the node is only locked.
        check: Called with the locked node, whose holder still is ``node.instance_uuid``; may raise a Failure, and may
            change the node.

    Raises:
        NodeNotFound: There is no such node any more.
        Collision: The holder has changed since the read; the transaction is run again.
    """
    if node.instance_uuid is None:
        return _lock(db, node, check)
    locked = end(db, node.uuid, node.instance_uuid, lambda locked: _check_holder(locked, node, check))
    locked.claimed(None)
    return locked


def end(db: Transaction, node_uuid: str, consumer: str, check: Change) -> LockedNode:
    """End what a consumer has on a node, with the consumer's allocation record, and return the locked node.

    The consumer need not be the one that counts as the holder of the node.

    Args:
        check: Called with the locked node; may raise a Failure, and may change the node.

    Raises:
        NodeNotFound: There is no such node any more.
        Collision: The consumer holds nothing on the node.
    """
    held = _held(db, node_uuid, consumer)

    def prepare() -> LockedNode:
        locked = LockedNode.lock(db, node_uuid)
        check(locked)
        return locked

    locked = _place(db, _claim(node_uuid, consumer, held, {}), prepare)
    Record.delete_of_consumer(db, consumer)
    return locked


def reclassify(db: Transaction, node: Node, resource_class: str | None, check: Change) -> LockedNode:
    """Change the class of a node that may be held: the holder's unit moves to the new class.

    Args:
        node: As this attempt has read it without a lock.
        check: As for ``release``.

    Raises:
        NodeNotFound: There is no such node any more.
        Collision: The holder has changed since the read.
    """
    new, old = inventory_class(resource_class), node.inventory_class
    held = None if node.instance_uuid is None else _held(db, node.uuid, node.instance_uuid)
    moves = held is not None and new != old and old in held.resources[node.uuid]
    if node.instance_uuid is None or held is None or not moves:
        locked = _lock(db, node, check)
        locked.reclassify(resource_class)
        return locked
    amounts = {name: amount for name, amount in held.resources[node.uuid].items() if name != old}
    amounts[new] = held.resources[node.uuid][old]

    def prepare() -> LockedNode:
        locked = _lock(db, node, check)
        locked.reclassify(resource_class, keep_old=True)
        locked.align(reserved=False)
        return locked

    locked = _place(db, _claim(node.uuid, node.instance_uuid, held, amounts), prepare)
    locked.claimed(node.instance_uuid)
    locked.align()
    locked.remove_unit(old)
    return locked


def _check_free(node: Node, consumer: str, *, unavailable: bool) -> None:
    if node.instance_uuid not in (None, consumer):
        raise failures.NodeTaken(node=node.uuid, instance=node.instance_uuid)
    if not node.available and not unavailable:
        raise failures.NodeUnavailable(node=node.uuid)


def _held(db: Transaction, node_uuid: str, consumer: str) -> Holding:
    """Return what a consumer of the node has; raises Collision if it has nothing on the node any more."""
    held = Holding.find(db, consumer)
    if held is None or node_uuid not in held.resources:
        raise Collision
    return held


def _giving(db: Transaction, node_uuid: str, unit: str, consumer: str, owner: Owner, *, any_project: bool) -> Claim:
    """Return the claim by which the consumer gets the unit of the node.

    Raises:
        ConsumerHoldsElsewhere: The consumer holds another node, or is of another project and may not be.
    """
    held = Holding.find(db, consumer)
    if held is None:
        return _claim(node_uuid, consumer, None, {unit: 1}, owner)
    elsewhere = node_uuid not in held.resources and Node.of_uuids(db, held.resources)
    if elsewhere or not (any_project or held.project == owner.project):
        raise failures.ConsumerHoldsElsewhere(instance=consumer, node=node_uuid)
    return _claim(node_uuid, consumer, held, held.resources.get(node_uuid, {unit: 1}))


def _claim(
    node_uuid: str,
    consumer: str,
    held: Holding | None,
    amounts: Mapping[str, int],
    owner: Owner | None = None,
) -> Claim:
    """Return the claim to hold these amounts of the node, of a consumer that must still be as it was read.

    A consumer that exists keeps its owner, and what it holds elsewhere.
    """
    resources = {node_uuid: amounts} if amounts else {}
    if held is None:
        assert owner is not None
        return Claim(consumer, resources, owner, generation=None, only_on=node_uuid)
    return Claim(consumer, resources, held.owner, generation=held.generation, only_on=node_uuid)


def _place(db: Transaction, claim: Claim, prepare: Callable[[], LockedNode]) -> LockedNode:
    """Place the claim, with the node locked and prepared before the claim is judged; return the node.

    Raises:
        Collision: The consumer, or the holder of the node, has changed since it was read.
    """
    assert claim.only_on is not None
    ids = ResourceProvider.ids(db, {claim.only_on})
    # The provider of a new node, or one that a Placement client has deleted, is created with the lock.
    created = {claim.only_on} - ids.keys()
    locked: list[LockedNode] = []
    try:
        ClaimSet(db, [claim]).place(ids, lambda _ids: locked.append(prepare()), created=created)
    except errors.ConsumerGenerationConflict:
        raise Collision from None
    return locked[0]


def _lock(db: Transaction, node: Node, check: Change) -> LockedNode:
    """Lock a node without a change of its holder."""
    locked = LockedNode.lock(db, node.uuid)
    _check_holder(locked, node, check)
    return locked


def _check_holder(locked: LockedNode, node: Node, check: Change) -> None:
    if locked.node.instance_uuid != node.instance_uuid:
        raise Collision
    check(locked)
