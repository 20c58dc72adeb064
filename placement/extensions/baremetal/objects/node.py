"""Nodes as read from the database: the row, and the data of the provider of the same uuid."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import os_resource_classes
import sqlalchemy as sa

from placement import errors
from placement.db import batches
from placement.db.schema.tables import allocations, resource_provider_traits, resource_providers, traits
from placement.db.writes.transaction import Reading
from placement.extensions.baremetal import failures
from placement.extensions.baremetal.objects import states
from placement.extensions.baremetal.tables import baremetal_allocations, baremetal_nodes
from placement.uuids import canonical

#: The class of the unit of a node without a resource class.
UNCLASSIFIED = "CUSTOM_BAREMETAL_UNCLASSIFIED"


def inventory_class(resource_class: str | None) -> str:
    """Return the Placement resource class for the class of a node (docs: baremetal-nodes)."""
    return os_resource_classes.normalize_name(resource_class) if resource_class else UNCLASSIFIED


def json_differs(left: Any, right: Any) -> bool:
    """Whether two values differ as JSON; in Python, 1 equals True."""
    return json.dumps(left, sort_keys=True) != json.dumps(right, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Node:
    """A node as read from the database.  Dates are naive, UTC."""

    id: int
    uuid: str
    name: str | None
    driver: str
    resource_class: str | None
    owner: str | None
    lessee: str | None
    parent_node: str | None
    provision_state: str
    target_provision_state: str | None
    provision_updated_at: datetime.datetime | None
    power_state: str | None
    target_power_state: str | None
    maintenance: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    #: Descriptive fields (properties, extra, driver_info, instance_info, ...), by name.
    details: Mapping[str, Any] = field(default_factory=dict)
    #: The consumer with allocations of the node's provider; None if the node is free.
    instance_uuid: str | None = None
    #: The uuid of the holder's allocation record, if any.
    allocation_uuid: str | None = None

    @property
    def available(self) -> bool:
        """Whether the node could be allocated if free; if not, its unit is reserved."""
        return states.is_available(self.provision_state, self.power_state, self.maintenance, self.parent_node)

    @property
    def inventory_class(self) -> str:
        """The resource class of the node's unit in its provider's inventory (docs: baremetal-nodes)."""
        return inventory_class(self.resource_class)

    @classmethod
    def find(cls, db: Reading, ident: str) -> Self | None:
        """Return the node with this uuid, or with this name if ``ident`` is not a uuid; None if not found."""
        uuid = canonical(ident)
        statement, key = (_BY_NAME, ident) if uuid is None else (_BY_UUID, uuid)
        for row in db.execute(statement, {"ident": key}):
            if key in (row.uuid, row.name):  # some collations ignore case
                return cls(*row)
        return None

    @classmethod
    def get(cls, db: Reading, ident: str, missing: type[errors.Failure] = failures.NodeNotFound) -> Self:
        """Return the node with this uuid or name.

        Raises:
            missing: No such node exists.
        """
        node = cls.find(db, ident)
        if node is None:
            raise missing(node=ident)
        return node

    @classmethod
    def of_uuids(cls, db: Reading, uuids: Collection[str]) -> dict[str, Self]:
        """Return the nodes with these uuids that exist, by uuid."""
        return {row.uuid: cls(*row) for row in batches.rows(db, _BY_UUIDS, "uuids", uuids)}


def traits_of(db: Reading, uuids: Collection[str]) -> dict[str, list[str]]:
    """Return the sorted traits of nodes, by uuid; an empty list for a node without traits."""
    names_of: dict[str, list[str]] = {uuid: [] for uuid in uuids}
    for uuid, name in batches.rows(db, _TRAITS, "uuids", uuids):
        names_of[uuid].append(name)
    return {uuid: sorted(names) for uuid, names in names_of.items()}


_N, _P, _A, _R = baremetal_nodes.c, resource_providers.c, allocations.c, baremetal_allocations.c
_ON_PROVIDER = allocations.join(resource_providers, _P.id == _A.resource_provider_id)
#: The holder of a node: the consumer with the lowest allocation id, since several consumers may hold units if a
#: Placement client has raised the total.  ``+ 0`` keeps databases from scanning all allocations by id.  A scalar
#: subquery runs only for the rows of a page, whereas PostgreSQL evaluates joins before LIMIT.
INSTANCE_UUID: sa.ColumnElement[str | None] = (
    sa.select(_A.consumer_id)
    .select_from(_ON_PROVIDER)
    .where(_P.uuid == _N.uuid)
    .order_by(_A.id + 0)
    .limit(1)
    .correlate(baremetal_nodes)
    .scalar_subquery()
)
#: The allocation record of the holder.
ALLOCATION_UUID: sa.ColumnElement[str | None] = (
    sa.select(_R.uuid)
    .where(_R.node_uuid == _N.uuid, _R.uuid == INSTANCE_UUID)
    .correlate(baremetal_nodes)
    .scalar_subquery()
)
#: The query for the columns of ``Node(*row)``.
SELECT = sa.select(
    *(_N.id, _N.uuid, _N.name, _N.driver, _N.resource_class, _N.owner, _N.lessee, _N.parent_node),
    *(_N.provision_state, _N.target_provision_state, _N.provision_updated_at),
    *(_N.power_state, _N.target_power_state, _N.maintenance, _N.created_at, _N.updated_at, _N.details),
    INSTANCE_UUID.label("instance_uuid"),
    ALLOCATION_UUID.label("allocation_uuid"),
).select_from(baremetal_nodes)
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_BY_UUID = SELECT.where(_N.uuid == sa.bindparam("ident"))
_BY_NAME = SELECT.where(_N.name == sa.bindparam("ident"))
_BY_UUIDS = SELECT.where(_N.uuid.in_(_UUIDS))
_TRAITS = (
    sa.select(_P.uuid, traits.c.name)
    .select_from(resource_providers)
    .join(resource_provider_traits, resource_provider_traits.c.resource_provider_id == _P.id)
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(_P.uuid.in_(_UUIDS))
)


def instance_name(details: Mapping[str, Any]) -> str | None:
    """Return the name of the instance: ``instance_name``, or else nova's display name; None if it is not a string."""
    name = details.get("instance_name")
    if name is None:
        name = details.get("instance_info", {}).get("display_name")
    return name if isinstance(name, str) else None
