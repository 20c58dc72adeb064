"""Nodes of an Ironic service recorded here: what differs between its documents and the database, and its removal.

``compare`` reads, ``write`` makes one node what its document says.  A holder is added to a node but never taken away:
whether a claim has ended is not known from a document.
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
#: What only describes a node.  Not what its driver works with: that is of no use here, and the passwords are masked.
_DETAILS = (
    *("description", "properties", "extra", "maintenance_reason", "fault", "last_error"),
    *("protected", "protected_reason", "retired", "retired_reason", "conductor_group", "shard", "instance_name"),
)
#: Traits of providers that nova adds itself, and that no node has.
_OF_NOVA = "COMPUTE_"
#: Consumer types of the claims that an import makes.
_INSTANCE, _BAREMETAL = "INSTANCE", "BAREMETAL"


@dataclass(frozen=True, slots=True)
class NodeImport:
    """What the import of one node changes."""

    document: Document
    #: Whether the node is recorded here already.
    exists: bool
    #: What differs, a text each.
    differences: tuple[str, ...]
    #: The consumer that has the node there, if the node is free here.
    unclaimed: str | None
    #: The allocation there of the consumer that has the node, if it has no record here.
    allocation: Document | None
    #: What the import cannot change: sentences.
    findings: tuple[str, ...]
    #: Whether a finding concerns the whole node, so that nothing of it is written.
    excluded: bool

    @property
    def uuid(self) -> str:
        """The uuid of the node."""
        return str(self.document["uuid"])

    @property
    def changes(self) -> bool:
        """Whether the import writes something."""
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
    """What an import changes."""

    nodes: Sequence[NodeImport]
    #: Nodes that have another name there, and whose name here is another node's there.
    renamed: Sequence[str]
    #: How many nodes are recorded here only.
    only_here: int


# --- reading ---------------------------------------------------------------------------------------------------------


def compare(db: Reading, nodes: Iterable[Document], allocations_there: Iterable[Document]) -> Comparison:
    """Return what the import of these nodes changes.

    Args:
        nodes: All nodes of the Ironic service, in full.
        allocations_there: Its allocations.  Those that are not active are left out.
    """
    documents = {node["uuid"]: node for node in map(_canonical, nodes)}
    here = _Here(db, documents)
    active = {one["uuid"]: one for one in map(_canonical, allocations_there) if one["state"] == ACTIVE}
    wanted = {node["name"] for node in documents.values() if node.get("name")}
    return Comparison(
        nodes=[_compared(here, uuid, node, active) for uuid, node in documents.items()],
        renamed=[uuid for name, uuid in here.names.items() if name in wanted and here.is_renamed(uuid)],
        only_here=len(set(here.names_of) - set(documents)),
    )


def _canonical(document: Document) -> Document:
    """Return the document with its uuids in the form in which they are stored; what is no uuid stays."""
    uuids = {name: canonical(document[name]) for name in ("uuid", "instance_uuid") if document.get(name)}
    return {**document, **{name: uuid for name, uuid in uuids.items() if uuid is not None}}


class _Here:
    """What the database has of the nodes, by uuid."""

    def __init__(self, db: Reading, documents: Mapping[str, Document]) -> None:
        self.documents = documents
        self.nodes = Node.of_uuids(db, documents)
        self.traits = traits_of(db, documents)
        self.names_of = {row.uuid: row.name for row in db.execute(_NAMES)}
        self.names = {name: uuid for uuid, name in self.names_of.items() if name is not None}
        self.holders = {row.uuid: row.consumer_id for row in batches.rows(db, _HOLDERS, "values", documents)}
        instances = [node["instance_uuid"] for node in documents.values() if node.get("instance_uuid")]
        #: The providers that each instance holds.
        self.providers_of: dict[str, set[str]] = {}
        for row in batches.rows(db, _HELD_BY, "values", instances):
            self.providers_of.setdefault(row.consumer_id, set()).add(row.uuid)
        named = {trait for node in documents.values() for trait in node.get("traits") or ()}
        missing = Trait.unknown(db, named) - set(os_traits.get_traits())
        self.unknown_traits = {name for name in missing if not name.startswith(CUSTOM_PREFIX)}

    def is_renamed(self, uuid: str) -> bool:
        """Whether a node of this uuid is imported under another name than it has."""
        return uuid in self.documents and self.documents[uuid].get("name") != self.names_of[uuid]


def _compared(here: _Here, uuid: str, document: Document, active: Mapping[str, Document]) -> NodeImport:
    present = here.nodes.get(uuid)
    instance, holder = document.get("instance_uuid"), here.holders.get(uuid)
    finding = _holder_finding(here, uuid, instance)
    unclaimed = instance if instance and holder is None and finding is None else None
    recorded = present is not None and present.allocation_uuid is not None
    allocation = active.get(instance) if instance and instance in (unclaimed, holder) and not recorded else None
    obstacles = (*_obstacles(here, uuid, document), *_not_storable(document, allocation))
    return NodeImport(
        document=document,
        exists=present is not None,
        differences=tuple(_differences(present, document, here.traits[uuid])),
        unclaimed=unclaimed,
        allocation=allocation,
        findings=obstacles + ((finding,) if finding else ()),
        excluded=bool(obstacles),
    )


def _obstacles(here: _Here, uuid: str, document: Document) -> Iterator[str]:
    name = document.get("name")
    other = None if name is None else here.names.get(name)
    if other is not None and other != uuid and not here.is_renamed(other):
        yield f"the name is that of another node here, {other}"
    for trait in sorted(here.unknown_traits & set(document.get("traits") or ())):
        yield f"there is no trait {trait} here: os-traits is older"


def _not_storable(document: Document, allocation: Document | None) -> Iterator[str]:
    """Yield what of a node and of its allocation is more than can be stored."""
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


def _holder_finding(here: _Here, uuid: str, instance: str | None) -> str | None:
    holder = here.holders.get(uuid)
    if holder is not None and holder != instance:
        return f"held here by {holder}, " + (f"in use there by {instance}" if instance else "free there")
    if instance is None or holder is not None:
        return None
    if canonical(instance) is None:
        return f"in use there by {instance}, which is no uuid"
    nodes = sorted(
        uuid for uuid in here.providers_of.get(instance, ()) if uuid in here.names_of or uuid in here.documents
    )
    return f"in use there by {instance}, which holds {nodes[0]} here" if nodes else None


def _differences(present: Node | None, document: Document, traits: Iterable[str]) -> Iterator[str]:
    if present is None:
        return
    for name in _COLUMNS:
        was, to = getattr(present, name), _column(document, name)
        if was != to:
            yield f"{name}: {_shown(was)} -> {_shown(to)}"
    for name in _DETAILS:
        was, to = present.details.get(name) or None, document.get(name) or None
        if was != to:
            yield f"{name}: {_shown(was)} -> {_shown(to)}" if not isinstance(was or to, Mapping) else name
    was_traits, to_traits = set(traits), _traits(document, traits)
    if was_traits != to_traits:
        signs = [f"+{name}" for name in sorted(to_traits - was_traits)]
        signs += [f"-{name}" for name in sorted(was_traits - to_traits)]
        yield f"traits: {' '.join(signs)}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _column(document: Document, name: str) -> Any:
    # Below version 1.2 of the API, and in no state since, `available` is shown as null.
    default = {"maintenance": False, "provision_state": states.AVAILABLE}.get(name)
    value = document.get(name)
    return default if value is None else value


def _traits(document: Document, present: Iterable[str]) -> set[str]:
    """Return the traits that the node's provider is to have, of which some are there already."""
    return {*(document.get("traits") or ()), *(name for name in present if name.startswith(_OF_NOVA))}


# --- writing ---------------------------------------------------------------------------------------------------------


def free_names(database: Database, comparison: Comparison) -> None:
    """Take the names from the nodes that get others, so that nodes can exchange them."""
    for uuid in comparison.renamed:
        database.write(lambda db, uuid=uuid: LockedNode.lock(db, uuid).update(name=None))  # type: ignore[misc]


def write(database: Database, node: NodeImport, default_owner: Owner) -> None:
    """Make the node what its document says, and give it to the consumer that has it there.

    A node that is to be claimed becomes what its document says in the transaction of the claim, so that no client can
    be given it in between.

    Args:
        default_owner: The project of the claim if neither the allocation nor the node has an owner, and the user.

    Raises:
        Failure: The node, the claim or the record cannot be written; what was written is consistent.
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
    present = Node.get(db, node.uuid)
    resource_class = _column(node.document, "resource_class")

    def check(locked: LockedNode) -> None:
        if node.unclaimed is None:
            _apply(db, locked, node)

    if present.resource_class != resource_class:
        holding.reclassify(db, present, resource_class, check)
    elif node.unclaimed is None:
        check(LockedNode.lock(db, node.uuid))


def _claim(db: Transaction, node: NodeImport, default_owner: Owner) -> None:
    assert node.unclaimed is not None
    consumer, allocation = node.unclaimed, node.allocation
    project = (allocation or node.document).get("owner") or default_owner.project
    owner = Owner(project, default_owner.user, _INSTANCE if allocation is None else _BAREMETAL)

    def check(locked: LockedNode) -> None:
        _apply(db, locked, node)
        # The row of a record that has ended would be shown again.
        Record.delete_of_consumer(db, consumer)
        if allocation is not None:
            _insert(db, node, allocation)

    unit = Node.get(db, node.uuid).inventory_class
    holding.assign(db, node.uuid, unit, consumer, owner, any_project=True, unavailable=True, check=check)


def _record(db: Transaction, node: NodeImport) -> None:
    """Add the record of a consumer that holds the node already; if it does not any more, there is nothing to record."""
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
    """Write what differs; the class has been written before."""
    columns = {name: _column(node.document, name) for name in _COLUMNS if name != "resource_class"}
    locked.update(**columns, details=_details(node.document, set_only=False))
    _replace_traits(db, locked, node)


def _replace_traits(db: Transaction, locked: LockedNode, node: NodeImport) -> None:
    present = traits_of(db, [node.uuid])[node.uuid]
    wanted = _traits(node.document, present)
    if wanted != set(present):
        locked.replace_traits(wanted)


def _details(document: Document, *, set_only: bool) -> dict[str, Any]:
    """Return the details, with None for those that are empty unless only those that are set are wanted."""
    found = {name: document.get(name) or None for name in _DETAILS}
    return {name: value for name, value in found.items() if value is not None} if set_only else found


# --- statements ------------------------------------------------------------------------------------------------------


_P, _A = resource_providers.c, allocations.c
_VALUES: sa.BindParameter[Any] = sa.bindparam("values", expanding=True)
_NAMES = sa.select(baremetal_nodes.c.uuid, baremetal_nodes.c.name)
_ON_PROVIDERS = sa.select(_P.uuid, _A.consumer_id).join_from(
    allocations, resource_providers, _P.id == _A.resource_provider_id
)
#: The last row of a provider names its holder.
_HOLDERS = _ON_PROVIDERS.where(_P.uuid.in_(_VALUES)).order_by(_A.id.desc())
_HELD_BY = _ON_PROVIDERS.where(_A.consumer_id.in_(_VALUES))
