"""A model of nodes and allocation records beside claims: the response to each write, and the state after it.

Written from the reference alone (docs: baremetal), in the simplest way.  A consumer is its allocations; the holder of a
node is the consumer with allocations on the provider of the same uuid.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from os_resource_classes import normalize_name

from tests.model.records import Refused

Allocations = dict[str, dict[str, int]]

UNCLASSIFIED = "CUSTOM_BAREMETAL_UNCLASSIFIED"
ENROLL, MANAGEABLE, AVAILABLE, ACTIVE = "enroll", "manageable", "available", "active"
VERBS = {
    "manage": {ENROLL: MANAGEABLE, AVAILABLE: MANAGEABLE},
    "provide": {MANAGEABLE: AVAILABLE},
    "active": {AVAILABLE: ACTIVE},
    "deleted": {ACTIVE: AVAILABLE},
}


@dataclass
class Node:
    """The row of a node."""

    name: str | None
    resource_class: str | None
    owner: str | None = None
    lessee: str | None = None
    provision_state: str = ENROLL
    power_state: str | None = None
    maintenance: bool = False

    @property
    def available(self) -> bool:
        return self.provision_state == AVAILABLE and self.power_state is not None and not self.maintenance

    @property
    def unit(self) -> str:
        """The class of the node's unit in the inventory."""
        return normalize_name(self.resource_class) if self.resource_class else UNCLASSIFIED


@dataclass
class Provider:
    """The provider of a node in Placement."""

    traits: set[str] = field(default_factory=set)
    #: The reserved amount, of a total of one, by class.
    inventories: dict[str, int] = field(default_factory=dict)
    #: Whether a Placement client has changed the node's inventory; a change of the node writes it again.
    changed: bool = False


@dataclass
class Record:
    """An allocation, active if it has a node, otherwise in error."""

    name: str | None
    resource_class: str | None
    owner: str | None
    traits: list[str]
    candidates: list[str]
    node: str | None = None
    last_error: str | None = None
    #: Whether a Placement client has ended the allocation; its row may still exist.
    ended: bool = False


def atomic(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method atomic: a refused write changes nothing."""

    @functools.wraps(method)
    def wrapper(self: Model, *args: Any, **kwargs: Any) -> Any:
        before = copy.deepcopy(vars(self))
        try:
            result = method(self, *args, **kwargs)
        except Refused:
            vars(self).update(before)
            raise
        self._end_records()
        return result

    return wrapper


class Model:
    """Nodes and allocations by uuid, with their providers and claims in Placement."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.providers: dict[str, Provider] = {}
        self.records: dict[str, Record] = {}
        self.consumers: dict[str, Allocations] = {}
        #: The traits that the last allocation of a node requested; a deployment requires them.
        self.instance_traits: dict[str, set[str]] = {}

    # --- state ---

    def holder(self, node: str) -> str | None:
        """Return the consumer with allocations on the node; the clients of the test never create two."""
        holders = [consumer for consumer, allocations in self.consumers.items() if node in allocations]
        assert len(holders) <= 1
        return holders[0] if holders else None

    def live(self) -> dict[str, Record]:
        """Return the records that are shown."""
        return {uuid: record for uuid, record in self.records.items() if not record.ended}

    def record_of(self, node: str) -> str | None:
        """Return the uuid of the active record of the node."""
        return next((uuid for uuid, record in self.live().items() if record.node == node), None)

    def fitting(self, record: Record, traits: Collection[str]) -> set[str]:
        """Return the nodes that a request may get."""
        return {uuid for uuid in self.nodes if self._fits(uuid, record, traits)}

    def _fits(self, uuid: str, record: Record, traits: Collection[str]) -> bool:
        node, provider = self.nodes[uuid], self.providers.get(uuid)
        return (
            node.available
            and node.resource_class == record.resource_class
            and (not record.candidates or uuid in record.candidates)
            and (record.owner is None or record.owner in (node.owner, node.lessee))
            and self.holder(uuid) is None
            and provider is not None
            and provider.inventories.get(node.unit) == 0
            and set(traits) <= provider.traits
        )

    # --- nodes ---

    @atomic
    def create_node(self, uuid: str, **columns: Any) -> None:
        if uuid in self.nodes:
            raise Refused(409, "UUID")
        self._check_node_name(uuid, columns["name"])
        self.nodes[uuid] = Node(**columns)
        self._align(uuid)

    @atomic
    def provision(self, uuid: str, target: str) -> None:
        node = self._node(uuid)
        if node.provision_state not in VERBS[target]:
            raise Refused(400, "")
        if target == "active" and node.maintenance:
            raise Refused(400, "maintenance")
        if target == "active" and not self.instance_traits.get(uuid, set()) <= self._traits(uuid):
            raise Refused(400, "instance traits")
        if target == "deleted":
            self._release(uuid)
            self.instance_traits.pop(uuid, None)
        node.provision_state = VERBS[target][node.provision_state]
        self._align(uuid)

    @atomic
    def set(self, uuid: str, **columns: Any) -> None:
        """Set power, maintenance, owner or lessee."""
        node = self._node(uuid)
        for name, value in columns.items():
            setattr(node, name, value)
        self._align(uuid)

    @atomic
    def rename_node(self, uuid: str, name: str | None) -> None:
        node = self._node(uuid)
        self._check_node_name(uuid, name)
        node.name = name
        self._may_align(uuid)

    @atomic
    def set_class(self, uuid: str, resource_class: str | None) -> None:
        node, holder = self._node(uuid), self.holder(uuid)
        if node.provision_state == ACTIVE and resource_class != node.resource_class:
            raise Refused(409, "active")
        old = node.unit
        node.resource_class = resource_class
        if node.unit != old and uuid in self.providers:
            self.providers[uuid].inventories.pop(old, None)
            if holder is not None and old in self.consumers[holder][uuid]:
                self.consumers[holder][uuid] = {node.unit: 1}
        self._align(uuid)

    @atomic
    def set_instance(self, uuid: str, instance: str | None) -> None:
        node, holder = self._node(uuid), self.holder(uuid)
        if instance is None:
            if self.record_of(uuid) and node.provision_state == ACTIVE and not node.maintenance:
                raise Refused(409, "active")
            self._release(uuid)
        elif holder != instance:
            if any(other in self.nodes for other in self.consumers.get(instance, {}).keys() - {uuid}):
                raise Refused(409, "already associated")
            if holder is not None:
                raise Refused(409, "associated with instance")
            if node.available and uuid in self.providers and self.providers[uuid].inventories.get(node.unit) == 1:
                raise Refused(409, "not available")  # a Placement client has reserved the unit
            self.consumers.setdefault(instance, {})[uuid] = {node.unit: 1}
            self._align(uuid)
        self._may_align(uuid)

    @atomic
    def set_traits(self, uuid: str, traits: Collection[str]) -> None:
        self._node(uuid)
        self._may_align(uuid)
        self.providers.setdefault(uuid, Provider(changed=True)).traits = {*traits}

    @atomic
    def delete_node(self, uuid: str) -> None:
        node = self._node(uuid)
        if not node.maintenance and (self.holder(uuid) or node.provision_state == ACTIVE):
            raise Refused(409, "")
        self._release(uuid)
        self.instance_traits.pop(uuid, None)
        del self.nodes[uuid]
        self.providers.pop(uuid, None)

    def _node(self, uuid: str, status: int = 404) -> Node:
        if uuid not in self.nodes:
            raise Refused(status, "not be found")
        return self.nodes[uuid]

    def _traits(self, uuid: str) -> set[str]:
        return self.providers[uuid].traits if uuid in self.providers else set()

    def _check_node_name(self, uuid: str, name: str | None) -> None:
        if name is not None and any(name == node.name and uuid != other for other, node in self.nodes.items()):
            raise Refused(409, "name")

    def _release(self, uuid: str) -> None:
        holder = self.holder(uuid)
        if holder is not None:
            if self.records.get(holder) and self.records[holder].node is not None:
                del self.records[holder]
            self._end(holder, uuid)

    def _end(self, consumer: str, provider: str) -> None:
        del self.consumers[consumer][provider]
        if not self.consumers[consumer]:
            del self.consumers[consumer]

    def _align(self, uuid: str) -> None:
        """Write the inventory after a relevant change; Placement clients may have changed it before."""
        node, provider = self.nodes[uuid], self.providers.setdefault(uuid, Provider())
        if not provider.changed:
            provider.inventories[node.unit] = int(not node.available)

    def make_provider_again(self, uuid: str) -> None:
        """Create the missing provider of a node again; raise KeyError if there is no such node."""
        self._align(uuid)

    def _may_align(self, uuid: str) -> None:
        if uuid in self.providers:
            self._align(uuid)

    # --- allocations ---

    @atomic
    def create_allocation(self, uuid: str, record: Record) -> set[str]:
        """Add the record, and return the nodes that it may have got."""
        for candidate in record.candidates:
            self._node(candidate, 400)
        self._check_record(uuid, record.name)
        self._vacate(uuid, record.name)
        fitting = self.fitting(record, record.traits)
        same_name = {node for node in fitting if record.name and self.nodes[node].name == record.name}
        self.records[uuid] = record
        if fitting and uuid in self.consumers:
            fitting = set()
            record.last_error = "Unexpected exception during allocation: "
        elif not fitting:
            record.last_error = f"Failed to process allocation {uuid}: {self._reason(record)}."
        return same_name or fitting

    def _reason(self, record: Record) -> str:
        if record.traits and self.fitting(record, ()):
            return f"no suitable nodes have the requested traits {', '.join(sorted(set(record.traits)))}"
        if record.candidates:
            return f"none of the requested nodes are available and match the resource class {record.resource_class}"
        return f"no available nodes match the resource class {record.resource_class}"

    def assign_node(self, uuid: str, node: str) -> None:
        """Record that the request has got this node."""
        self.records[uuid].node = node
        self.instance_traits[node] = {*self.records[uuid].traits}
        self._vacate(uuid, None, node)
        self.consumers[uuid] = {node: {self.nodes[node].unit: 1}}

    @atomic
    def backfill(self, uuid: str | None, node_uuid: str, record: Record) -> str:
        """Return the uuid of the new record: the given one, the holder's, or "new" if the service generates one."""
        node = self._node(node_uuid, 400)
        holder = self.holder(node_uuid)
        chosen = uuid or holder or "new"
        does_not_match = node.provision_state != ACTIVE or not {*record.traits} <= self._traits(node_uuid)
        does_not_match = does_not_match or (record.resource_class or node.resource_class) != node.resource_class
        held_by_another = holder not in (None, chosen)
        holds_another_node = holder is None and any(other in self.nodes for other in self.consumers.get(chosen, {}))
        if not (does_not_match or held_by_another or holds_another_node):
            self._check_record(chosen, record.name)
        elif does_not_match or held_by_another or holds_another_node or chosen in self.live():
            raise Refused(409, "")
        self._vacate(chosen, record.name, node_uuid)
        record.node, record.resource_class = node_uuid, node.resource_class
        self.records[chosen] = record
        self.instance_traits[node_uuid] = {*record.traits}
        if holder is None:
            self.consumers.setdefault(chosen, {})[node_uuid] = {node.unit: 1}
        self._may_align(node_uuid)
        return chosen

    @atomic
    def rename_allocation(self, uuid: str, name: str | None) -> None:
        record = self._record(uuid)
        if name != record.name:
            self._check_record(None, name)
            self._vacate(None, name)
        record.name = name

    @atomic
    def delete_allocation(self, uuid: str) -> None:
        record = self._record(uuid)
        if record.node is not None:
            node = self.nodes[record.node]
            if node.provision_state == ACTIVE and not node.maintenance:
                raise Refused(409, "active")
            self._end(uuid, record.node)
        del self.records[uuid]

    @atomic
    def delete_allocation_of_node(self, node: str) -> None:
        self._node(node)
        uuid = self.record_of(node)
        if uuid is None:
            raise Refused(404, "not found")
        self.delete_allocation(uuid)

    def _record(self, uuid: str) -> Record:
        if uuid not in self.live():
            raise Refused(404, "not be found")
        return self.records[uuid]

    def _check_record(self, uuid: str | None, name: str | None) -> None:
        if uuid in self.live():
            raise Refused(409, str(uuid))
        if name is not None and any(name == record.name for record in self.live().values()):
            raise Refused(409, name)

    def _vacate(self, uuid: str | None, name: str | None, node: str | None = None) -> None:
        """Remove ended records in the way of a new one."""
        for other, record in [*self.records.items()]:
            same = other == uuid or (name is not None and record.name == name) or (node and record.node == node)
            if record.ended and same:
                del self.records[other]

    def _end_records(self) -> None:
        for uuid, record in self.records.items():
            if record.node is not None and record.node not in self.consumers.get(uuid, {}):
                record.ended = True

    def may_return(self) -> Iterator[str]:
        """Yield the ended records whose consumers hold their nodes again: they are shown if their rows still exist."""
        for uuid, record in self.records.items():
            if record.ended and record.node in self.consumers.get(uuid, {}):
                yield uuid

    # --- writes of Placement clients ---

    @atomic
    def claim(self, consumer: str, allocations: Allocations) -> None:
        for provider, amounts in allocations.items():
            for unit in amounts:
                if unit in self.consumers.get(consumer, {}).get(provider, {}):
                    continue  # a consumer may keep its amounts, even of a reserved unit
                inventories = self.providers[provider].inventories if provider in self.providers else {}
                other_consumers = [
                    other
                    for other, other_allocations in self.consumers.items()
                    if unit in other_allocations.get(provider, {})
                ]
                if inventories.get(unit, 1) != 0 or [other for other in other_consumers if other != consumer]:
                    raise Refused(409, "")
        self.consumers[consumer] = copy.deepcopy(allocations)

    @atomic
    def release(self, consumer: str) -> None:
        if consumer not in self.consumers:
            raise Refused(404, "")
        del self.consumers[consumer]

    @atomic
    def change_inventory(self, provider: str, unit: str, reserved: int | None) -> None:
        """Set whether the unit is reserved; None removes it."""
        state = self.providers[provider]
        if reserved is None:
            if any(unit in allocations.get(provider, {}) for allocations in self.consumers.values()):
                raise Refused(409, "")
            del state.inventories[unit]
        else:
            state.inventories[unit] = reserved
        state.changed = True

    @atomic
    def delete_provider(self, provider: str) -> None:
        if self.holder(provider) is not None:
            raise Refused(409, "")
        del self.providers[provider]

    @atomic
    def create_provider(self, provider: str, traits: Collection[str]) -> None:
        """Create a provider like nova, before its node exists here."""
        if provider in self.providers:
            raise Refused(409, "")
        self.providers[provider] = Provider({*traits})
