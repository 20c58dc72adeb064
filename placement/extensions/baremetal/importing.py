"""Import of nodes from an Ironic service: comparison of its documents with the database, and updates of nodes.

``compare`` only reads; ``write`` updates one node to match its document.  A holder is added to a node but never
removed: a document does not show whether a claim has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import errors
from placement.db import batches
from placement.db.database import Database
from placement.db.schema.tables import allocations, resource_providers, utcnow
from placement.db.upkeep.standard import CUSTOM_PREFIX
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal.objects import holding, states
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node, traits_of
from placement.extensions.baremetal.objects.record import ACTIVE, Record
from placement.extensions.baremetal.schemas import free_form
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.objects.consumer import Owner
from placement.objects.trait import Trait
from placement.uuids import canonical

Document = Mapping[str, Any]

_STATES = ("provision_state", "target_provision_state", "power_state", "target_power_state", "maintenance")
_COLUMNS = ("name", "driver", "resource_class", "owner", "lessee", "parent_node", *_STATES)
#: Imported details.  Data for drivers is left out: it has no use here, and its passwords are masked.
_DETAILS = (
    *("description", "properties", "extra", "maintenance_reason", "fault", "last_error"),
    *("protected", "protected_reason", "retired", "retired_reason", "conductor_group", "shard", "instance_name"),
)
#: Prefix of the traits that nova adds to providers; the nodes of Ironic do not have them.
_NOVA_PREFIX = "COMPUTE_"
#: Consumer types of imported claims.
_INSTANCE, _BAREMETAL = "INSTANCE", "BAREMETAL"


@dataclass(frozen=True, slots=True)
class NodeImport:
    """The changes to import for one node."""

    document: Document
    #: Whether the node is already recorded here.
    exists: bool
    #: Descriptions of the differences.
    differences: tuple[str, ...]
    #: The consumer that holds the node in Ironic, if the node is free here.
    unclaimed: str | None
    #: The holder's allocation in Ironic, if it has no record here.
    allocation: Document | None
    #: Descriptions of the differences that the import cannot resolve.
    findings: tuple[str, ...]
    #: Whether a finding prevents the import of the node.
    excluded: bool

    @property
    def uuid(self) -> str:
        """The uuid of the node."""
        return str(self.document["uuid"])

    @property
    def has_changes(self) -> bool:
        """Whether the import writes to the database."""
        if self.excluded:
            return False
        return not self.exists or bool(self.differences) or self.unclaimed is not None or self.allocation is not None

    @property
    def title(self) -> str:
        """The uuid of the node, and its name if it has one."""
        name = self.document.get("name")
        return f"{self.uuid} ({name})" if name else self.uuid


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes to import for all nodes."""

    nodes: Sequence[NodeImport]
    #: Nodes to be renamed whose old name is the name of another node in Ironic.
    renamed: Sequence[str]
    #: Number of nodes recorded only here.
    only_here: int


# --- reading ---------------------------------------------------------------------------------------------------------


def compare(db: Reading, nodes: Iterable[Document], ironic_allocations: Iterable[Document]) -> Comparison:
    """Return the changes to import for these nodes.

    Args:
        nodes: All nodes of the Ironic service, with details.
        ironic_allocations: Its allocations; inactive allocations are ignored.
    """
    documents = {node["uuid"]: node for node in map(_with_canonical_uuids, nodes)}
    local = _LocalState(db, documents)
    active = {
        record["uuid"]: record for record in map(_with_canonical_uuids, ironic_allocations) if record["state"] == ACTIVE
    }
    names = {node["name"] for node in documents.values() if node.get("name")}
    return Comparison(
        nodes=[_compare(local, uuid, node, active) for uuid, node in documents.items()],
        renamed=[uuid for name, uuid in local.names.items() if name in names and local.is_renamed(uuid)],
        only_here=len(set(local.names_of) - set(documents)),
    )


def _with_canonical_uuids(document: Document) -> Document:
    """Return the document with uuids in the stored form; values that are not uuids are kept."""
    uuids = {name: canonical(document[name]) for name in ("uuid", "instance_uuid") if document.get(name)}
    return {**document, **{name: uuid for name, uuid in uuids.items() if uuid is not None}}


class _LocalState:
    """The state of the nodes in the database, by uuid."""

    def __init__(self, db: Reading, documents: Mapping[str, Document]) -> None:
        self.documents = documents
        self.nodes = Node.of_uuids(db, documents)
        self.traits = traits_of(db, documents)
        self.names_of = {row.uuid: row.name for row in db.execute(_NAMES)}
        self.names = {name: uuid for uuid, name in self.names_of.items() if name is not None}
        self.holders = {row.uuid: row.consumer_id for row in batches.rows(db, _BY_PROVIDER, "values", documents)}
        instances = [node["instance_uuid"] for node in documents.values() if node.get("instance_uuid")]
        #: The providers that each instance holds.
        self.providers_of: dict[str, set[str]] = {}
        for row in batches.rows(db, _BY_CONSUMER, "values", instances):
            self.providers_of.setdefault(row.consumer_id, set()).add(row.uuid)
        traits = {trait for node in documents.values() for trait in node.get("traits") or ()}
        missing = Trait.unknown_names(db, traits) - set(os_traits.get_traits())
        self.unknown_traits = {name for name in missing if not name.startswith(CUSTOM_PREFIX)}

    def is_renamed(self, uuid: str) -> bool:
        """Whether the import changes the name of this node."""
        return uuid in self.documents and self.documents[uuid].get("name") != self.names_of[uuid]


def _compare(local: _LocalState, uuid: str, document: Document, active: Mapping[str, Document]) -> NodeImport:
    current = local.nodes.get(uuid)
    instance, holder = document.get("instance_uuid"), local.holders.get(uuid)
    finding = _holder_finding(local, uuid, instance)
    unclaimed = instance if instance and holder is None and finding is None else None
    recorded = current is not None and current.allocation_uuid is not None
    allocation = active.get(instance) if instance and instance in (unclaimed, holder) and not recorded else None
    obstacles = (*_obstacles(local, uuid, document), *_not_storable(document, allocation))
    return NodeImport(
        document=document,
        exists=current is not None,
        differences=tuple(_differences(current, document, local.traits[uuid])),
        unclaimed=unclaimed,
        allocation=allocation,
        findings=obstacles + ((finding,) if finding else ()),
        excluded=bool(obstacles),
    )


def _obstacles(local: _LocalState, uuid: str, document: Document) -> Iterator[str]:
    name = document.get("name")
    owner = None if name is None else local.names.get(name)
    if owner is not None and owner != uuid and not local.is_renamed(owner):
        yield f"the name is taken by another node here, {owner}"
    for trait in sorted(local.unknown_traits & set(document.get("traits") or ())):
        yield f"trait {trait} is unknown here: upgrade os-traits"


def _not_storable(document: Document, allocation: Document | None) -> Iterator[str]:
    """Yield the reason if details of a node or its allocation cannot be stored."""
    details = _details(document, set_only=True)
    subject = "the node"
    try:
        for name, value in details.items():
            free_form.check(name, value)
        free_form.check_details(details)
        if allocation is not None:
            subject = f"allocation {allocation['uuid']}"
            free_form.check("extra", allocation.get("extra"))
    except errors.BadRequest as failure:
        yield f"{subject}: {failure}"


def _holder_finding(local: _LocalState, uuid: str, instance: str | None) -> str | None:
    holder = local.holders.get(uuid)
    if holder is not None and holder != instance:
        return f"held here by {holder}, " + (f"in use in Ironic by {instance}" if instance else "free in Ironic")
    if instance is None or holder is not None:
        return None
    if canonical(instance) is None:
        return f"in use in Ironic by {instance}, which is not a uuid"
    nodes = sorted(
        uuid for uuid in local.providers_of.get(instance, ()) if uuid in local.names_of or uuid in local.documents
    )
    return f"in use in Ironic by {instance}, which holds {nodes[0]} here" if nodes else None


def _differences(current: Node | None, document: Document, traits: Iterable[str]) -> Iterator[str]:
    if current is None:
        return
    for name in _COLUMNS:
        old, new = getattr(current, name), _column(document, name)
        if old != new:
            yield f"{name}: {_text(old)} -> {_text(new)}"
    for name in _DETAILS:
        old, new = current.details.get(name) or None, document.get(name) or None
        if old != new:
            yield f"{name}: {_text(old)} -> {_text(new)}" if not isinstance(old or new, Mapping) else name
    old_traits, new_traits = set(traits), _traits(document, traits)
    if old_traits != new_traits:
        signs = [f"+{name}" for name in sorted(new_traits - old_traits)]
        signs += [f"-{name}" for name in sorted(old_traits - new_traits)]
        yield f"traits: {' '.join(signs)}"


def _text(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _column(document: Document, name: str) -> Any:
    # Before version 1.2 of the API, the state `available` is shown as null, and only that state.
    default = {"maintenance": False, "provision_state": states.AVAILABLE}.get(name)
    value = document.get(name)
    return default if value is None else value


def _traits(document: Document, old_traits: Iterable[str]) -> set[str]:
    """Return the traits of the provider after the import: the traits of the node, and old traits added by nova."""
    return {*(document.get("traits") or ()), *(name for name in old_traits if name.startswith(_NOVA_PREFIX))}


# --- writing ---------------------------------------------------------------------------------------------------------


def free_names(database: Database, comparison: Comparison) -> None:
    """Clear the names of the nodes in ``renamed``, so that nodes can swap names."""
    for uuid in comparison.renamed:
        database.write(lambda db, uuid=uuid: LockedNode.lock(db, uuid).update(name=None))  # type: ignore[misc]


def write(database: Database, node: NodeImport, default_owner: Owner) -> None:
    """Update the node to match its document, and claim it for the consumer that holds it in Ironic.

    A node to be claimed is updated in the transaction of the claim, so that no other consumer can claim it in between.

    Args:
        default_owner: The user of the claim, and its project if neither the allocation nor the node has an owner.

    Raises:
        Failure: The node, the claim or the record cannot be written.  The earlier writes are kept; they are consistent.
    """
    if not node.exists:
        database.write(lambda db: _create(db, node))
    else:
        database.write(lambda db: _update(db, node))
    if node.unclaimed is not None:
        database.write(lambda db: _claim(db, node, default_owner))
    elif node.allocation is not None:
        database.write(lambda db: _record(db, node))


def _create(db: Transaction, node: NodeImport) -> None:
    columns = {name: _column(node.document, name) for name in _COLUMNS}
    if node.unclaimed is not None:
        columns |= {"provision_state": states.ENROLL}
    locked = LockedNode.create(db, node.uuid, **columns, details=_details(node.document, set_only=True))
    _replace_traits(db, locked, node)


def _update(db: Transaction, node: NodeImport) -> None:
    current = Node.get(db, node.uuid)
    resource_class = _column(node.document, "resource_class")

    def apply(locked: LockedNode) -> None:
        if node.unclaimed is None:
            _apply(db, locked, node)

    if current.resource_class != resource_class:
        holding.reclassify(db, current, resource_class, apply)
    elif node.unclaimed is None:
        apply(LockedNode.lock(db, node.uuid))


def _claim(db: Transaction, node: NodeImport, default_owner: Owner) -> None:
    assert node.unclaimed is not None
    consumer, allocation = node.unclaimed, node.allocation
    project = (allocation or node.document).get("owner") or default_owner.project
    owner = Owner(project, default_owner.user, _INSTANCE if allocation is None else _BAREMETAL)

    def apply(locked: LockedNode) -> None:
        _apply(db, locked, node)
        # The row of an ended record would otherwise become active.
        Record.delete_of_consumer(db, consumer)
        if allocation is not None:
            _insert(db, node, allocation)

    unit = Node.get(db, node.uuid).inventory_class
    holding.assign(db, node.uuid, unit, consumer, owner, any_project=True, unavailable=True, check=apply)


def _record(db: Transaction, node: NodeImport) -> None:
    """Add the record of a consumer that already holds the node, unless it has released the node."""
    assert node.allocation is not None
    if LockedNode.lock(db, node.uuid).node.instance_uuid == node.allocation["uuid"]:
        _insert(db, node, node.allocation)


def _insert(db: Transaction, node: NodeImport, allocation: Document) -> None:
    Record(
        uuid=allocation["uuid"],
        name=allocation.get("name"),
        node_uuid=node.uuid,
        resource_class=allocation.get("resource_class"),
        owner=allocation.get("owner"),
        traits=list(allocation.get("traits") or ()),
        candidate_nodes=list(allocation.get("candidate_nodes") or ()),
        extra=dict(allocation.get("extra") or {}),
        created_at=utcnow(),
    ).insert(db)


def _apply(db: Transaction, locked: LockedNode, node: NodeImport) -> None:
    """Write the differences; the class has already been written."""
    columns = {name: _column(node.document, name) for name in _COLUMNS if name != "resource_class"}
    locked.update(**columns, details=_details(node.document, set_only=False))
    _replace_traits(db, locked, node)


def _replace_traits(db: Transaction, locked: LockedNode, node: NodeImport) -> None:
    old_traits = traits_of(db, [node.uuid])[node.uuid]
    traits = _traits(node.document, old_traits)
    if traits != set(old_traits):
        locked.replace_traits(traits)


def _details(document: Document, *, set_only: bool) -> dict[str, Any]:
    """Return the details, with None for an empty value; without empty values if ``set_only``."""
    details = {name: document.get(name) or None for name in _DETAILS}
    return {name: value for name, value in details.items() if value is not None} if set_only else details


# --- statements ------------------------------------------------------------------------------------------------------


_P, _A = resource_providers.c, allocations.c
_VALUES: sa.BindParameter[Any] = sa.bindparam("values", expanding=True)
_NAMES = sa.select(baremetal_nodes.c.uuid, baremetal_nodes.c.name)
_ON_PROVIDERS = sa.select(_P.uuid, _A.consumer_id).join_from(
    allocations, resource_providers, _P.id == _A.resource_provider_id
)
#: Consumers by provider, in descending order, so that the allocation of the holder is the last row of a provider.
_BY_PROVIDER = _ON_PROVIDERS.where(_P.uuid.in_(_VALUES)).order_by(_A.id.desc())
_BY_CONSUMER = _ON_PROVIDERS.where(_A.consumer_id.in_(_VALUES))
