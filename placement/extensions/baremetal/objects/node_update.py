"""Changes of nodes requested by clients: creation, PATCH, provision verbs and deletion, with their rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from placement.db.writes.transaction import Collision, Reading, Transaction
from placement.extensions.baremetal import failures
from placement.extensions.baremetal.objects import holding, states
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node, inventory_class, traits_of
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.objects.consumer import Owner

#: New values by field; None resets a field in ``details`` to its default.
Values = Mapping[str, Any]
Check = Callable[[Node], None]


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of a caller, and the owner of the consumers that it creates."""

    #: A function that returns whether the caller may see a node.
    may_see: Callable[[Node], bool]
    #: A function that returns the owner of a consumer created by the caller for a node with this owner.
    consumer_owner: Callable[[str | None], Owner]
    #: Whether the caller may use an existing consumer of any project.
    any_consumer: bool = False


_COLUMNS = {column.name for column in baremetal_nodes.columns} - {"details"}
#: Fields that affect the holder's allocation: the consumer must be locked before the node.
_HOLDER_FIELDS = {"instance_uuid", "resource_class"}


def create(db: Transaction, uuid: str, values: Values, caller: Caller) -> LockedNode:
    """Insert a node, allocated to the consumer ``instance_uuid``, if any.

    Raises:
        NodeUuidTaken, NodeNameTaken: Another node has the uuid or name.
        NodeTaken, ConsumerHoldsElsewhere: The node cannot be allocated to the consumer.
        UnknownParent: The parent does not exist, or the caller may not see it.
    """
    values = _with_parent(db, values, uuid, caller)
    columns, details = _split(values)
    set_details = {name: value for name, value in details.items() if value is not None}

    def insert() -> LockedNode:
        return LockedNode.create(db, uuid, details=set_details, **columns)

    instance = values.get("instance_uuid")
    if instance is None:
        return insert()

    return holding.assign(
        db,
        uuid,
        inventory_class(values.get("resource_class")),
        instance,
        caller.consumer_owner(values.get("owner")),
        any_project=caller.any_consumer,
        unavailable=True,
        insert=insert,
        check=lambda locked: _delete_ended(db, locked.node, instance),
    )


def change(db: Transaction, node: Node, changes_of: Callable[[Node], Values], caller: Caller) -> LockedNode:
    """Change fields of a node, and return it locked.

    Args:
        node: The node read by this attempt without a lock.
        changes_of: A function of a node that returns its new values; called again under the lock if the node has
            changed since it was read.

    Raises:
        Failure: The state of the node does not allow the change, or a name or a consumer is taken.
    """
    values = _with_parent(db, changes_of(node), node.uuid, caller)
    if _HOLDER_FIELDS.isdisjoint(values):
        locked = LockedNode.lock(db, node.uuid)
        if locked.node != node:
            values = _with_parent(db, changes_of(locked.node), node.uuid, caller)
        if not _HOLDER_FIELDS.isdisjoint(values):
            raise Collision
        _write(locked, values)
        return locked
    locked = _change_holding(db, node, values, caller)
    _write(locked, {name: value for name, value in values.items() if name not in _HOLDER_FIELDS})
    return locked


def set_provision_state(db: Transaction, node: Node, verb: str, permit: Check) -> LockedNode:
    """Move the node to the target state of the verb; undeployment releases the holder's allocation.

    Args:
        node: The node read by this attempt without a lock.
        permit: A function of the locked node that raises a Failure unless the caller may change it.

    Raises:
        VerbNotPossible: The verb is not allowed in the state of the node.
        NodeInMaintenance, NodeRetired, NodeProtected, InstanceTraitsMissing: The node does not allow it.
    """
    verb = states.ALIASES.get(verb, verb)

    def move(locked: LockedNode) -> None:
        current = locked.node
        permit(current)
        state = states.target(verb, current.provision_state)
        if state is None:
            raise failures.VerbNotPossible(verb=verb, node=current.uuid, state=current.provision_state)
        _check_verb(db, current, verb)
        # Clear the traces of a failed action as well.
        details: dict[str, Any] = {"last_error": None}
        if verb == "deleted":
            details["instance_info"] = None
        locked.update(details=details, provision_state=state, target_provision_state=None)

    if verb == "deleted" and node.instance_uuid is not None:
        return holding.release(db, node, move)
    locked = LockedNode.lock(db, node.uuid)
    if verb == "deleted" and locked.node.instance_uuid is not None:
        raise Collision
    move(locked)
    return locked


def delete(db: Transaction, node: Node, permit: Check) -> None:
    """Delete the node with its provider, and release the holder's allocation.

    Args:
        node: The node read by this attempt without a lock.
        permit: As for ``set_provision_state``.

    Raises:
        NodeProtected, NodeTaken, NodeNotDeletable: The node does not allow it.
        ProviderHasChildren, ProviderHasAllocations: A Placement client uses the provider.
    """

    def check(locked: LockedNode) -> None:
        current = locked.node
        permit(current)
        _check_unprotected(current)
        if current.instance_uuid is not None and not current.maintenance:
            raise failures.NodeTaken(node=current.uuid, instance=current.instance_uuid)
        if not states.may_be_deleted(current.provision_state, current.maintenance):
            raise failures.NodeNotDeletable(node=current.uuid, state=current.provision_state)

    holding.release(db, node, check).delete()


def missing_traits(db: Reading, node: Node) -> list[str]:
    """Return the sorted traits that the instance requires and the node lacks."""
    required = node.details.get("instance_info", {}).get("traits")
    if not isinstance(required, list) or not required:
        return []
    traits = traits_of(db, [node.uuid])[node.uuid]
    return sorted({str(trait) for trait in required}.difference(traits))


def _check_verb(db: Transaction, node: Node, verb: str) -> None:
    if verb in ("active", "rebuild"):
        if node.maintenance:
            raise failures.NodeInMaintenance(node=node.uuid)
        if missing := missing_traits(db, node):
            raise failures.InstanceTraitsMissing(node=node.uuid, traits=", ".join(missing))
    if verb in ("deleted", "rebuild"):
        _check_unprotected(node)
    if verb == "provide" and node.details.get("retired"):
        raise failures.NodeRetired(node=node.uuid)


def _check_unprotected(node: Node) -> None:
    if node.details.get("protected"):
        raise failures.NodeProtected(node=node.uuid)


def _change_holding(db: Transaction, node: Node, values: Values, caller: Caller) -> LockedNode:
    """Change the class and the holder of the node, locking the consumer before the node."""
    instance = values.get("instance_uuid", node.instance_uuid)

    def check(locked: LockedNode) -> None:
        # The values were computed for the node as read.
        if locked.node != node:
            raise Collision
        _check(node, values)

    def change(locked: LockedNode) -> None:
        check(locked)
        if "resource_class" in values:
            locked.reclassify(values["resource_class"])
        _delete_ended(db, node, instance)

    if instance == node.instance_uuid and "resource_class" in values:
        return holding.reclassify(db, node, values["resource_class"], check)
    if instance is None:
        locked = holding.release(db, node, check)
        if "resource_class" in values:
            locked.reclassify(values["resource_class"])
        return locked
    return holding.assign(
        db,
        node.uuid,
        inventory_class(values.get("resource_class", node.resource_class)),
        instance,
        caller.consumer_owner(values.get("owner", node.owner)),
        any_project=caller.any_consumer,
        unavailable=True,
        check=change,
    )


def _delete_ended(db: Transaction, node: Node, consumer: str) -> None:
    """Delete the ended record of a new holder: its row would otherwise become active."""
    if node.instance_uuid != consumer:
        Record.delete_of_consumer(db, consumer)


def _write(locked: LockedNode, values: Values) -> None:
    _check(locked.node, values)
    values = dict(values)
    if values.get("maintenance") is False:
        values |= {"maintenance_reason": None, "fault": None}
    if values.get("protected", False) is None:
        values["protected_reason"] = None
    if not values.get("retired", True):
        values["retired_reason"] = None
    columns, details = _split(values)
    locked.update(details=details, **columns)


def _check(node: Node, values: Values) -> None:
    """Check that the state of the node allows the new values.

    Raises:
        Failure: The state does not allow one of the values.
    """
    state = node.provision_state
    if "resource_class" in values and state not in states.CHANGEABLE:
        raise failures.ClassNotChangeable(node=node.uuid, state=state)
    removes_holder = values.get("instance_uuid", node) is None and node.allocation_uuid is not None
    if removes_holder and not states.may_lose_instance(state, node.maintenance):
        raise failures.InstanceNotRemovable(node=node.uuid, state=state)
    if values.get("protected") and state not in ("active", "rescue"):
        raise failures.NotProtectable(node=node.uuid, state=state)
    if values.get("protected_reason") and not values.get("protected", node.details.get("protected")):
        raise failures.ReasonWithoutProtection()
    if values.get("retired") and state == states.AVAILABLE:
        raise failures.NotRetirable(node=node.uuid)


def _with_parent(db: Transaction, values: Values, uuid: str, caller: Caller) -> Values:
    """Return the values with the parent's uuid instead of its name, or raise UnknownParent."""
    parent = values.get("parent_node")
    if parent is None:
        return values
    node = Node.find(db, parent)
    if node is None or node.uuid == uuid or not caller.may_see(node):
        raise failures.UnknownParent(parent=parent)
    return {**values, "parent_node": node.uuid}


def _split(values: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values for columns and for ``details``; ``instance_uuid`` is neither."""
    columns = {name: value for name, value in values.items() if name in _COLUMNS - {"uuid"}}
    details = {name: value for name, value in values.items() if name not in _COLUMNS and name != "instance_uuid"}
    return columns, details
