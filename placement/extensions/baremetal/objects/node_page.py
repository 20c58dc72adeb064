"""A page of the list of nodes: conditions, an order, and the columns that are shown, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa

from placement.db.schema.tables import allocations, resource_providers
from placement.db.writes.transaction import Reading
from placement.extensions.baremetal.failures import NodeNotFound
from placement.extensions.baremetal.objects import keyset
from placement.extensions.baremetal.objects.keyset import Paging
from placement.extensions.baremetal.objects.node import ALLOCATION_UUID, INSTANCE_UUID
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.uuids import canonical

_N = baremetal_nodes.c
#: What a page can show and be sorted by; the rest of a node is in ``details``.
COLUMNS: dict[str, sa.ColumnElement[Any]] = {
    **{column.name: column for column in baremetal_nodes.columns},
    "instance_uuid": INSTANCE_UUID,
    "allocation_uuid": ALLOCATION_UUID,
    # As text, which orjson decodes in a quarter of the time.
    "details": sa.type_coerce(baremetal_nodes.c.details, sa.Text),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """Which nodes a client asks for; None is no condition, and the empty text matches nothing that is not set."""

    #: Values by column.
    columns: dict[str, Any] = field(default_factory=dict)
    #: Values by name in ``details``; several are alternatives, and None among them stands for a name that is not set.
    details: dict[str, Sequence[str | None]] = field(default_factory=dict)
    #: By name in ``details``, whether it is set to something else than false.
    set: dict[str, bool] = field(default_factory=dict)
    instance_uuid: str | None = None
    associated: bool | None = None
    description_contains: str | None = None
    #: A project that owns or leases them.
    projects: Sequence[str] = ()
    #: Whether nodes with a parent are there.
    children: bool = False

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return what to give to WHERE."""
        found = [_N[name] == value for name, value in self.columns.items()]
        found += [_any_of(detail(name), values) for name, values in self.details.items()]
        for name, is_set in self.set.items():
            value = detail(name)
            found.append(_is_set(value) if is_set else ~_is_set(value))
        if self.instance_uuid is not None:
            # The first condition finds the few nodes of which the second looks at the holder.
            found += [_N.uuid.in_(_held_by(self.instance_uuid)), self.instance_uuid == INSTANCE_UUID]
        if self.associated is not None:
            # No EXISTS, which PostgreSQL joins for all nodes before it counts those of the page.
            found.append(INSTANCE_UUID.is_not(None) if self.associated else INSTANCE_UUID.is_(None))
        if self.description_contains is not None:
            found.append(detail("description").icontains(self.description_contains, autoescape=True))
        found += self.of_projects()
        if not self.children:
            found.append(_N.parent_node.is_(None))
        return found

    def of_projects(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions about who owns or leases a node."""
        # Measured with 50,000 nodes: databases merge both indexes for a project with few, and read in the order of the
        # page for one with many, where a UNION in a subquery is up to 100 times slower.
        return [sa.or_(_N.owner == project, _N.lessee == project) for project in self.projects]


def detail(name: str) -> sa.ColumnElement[Any]:
    """Return an entry of ``details`` as text; null if it is not there.  See ``node.instance_name`` for that name."""
    entry: sa.ColumnElement[Any] = _N.details[name].as_string()
    if name == "instance_name":
        return sa.func.coalesce(entry, _N.details[("instance_info", "display_name")].as_string())
    return entry


def _decoded(details: Any) -> Any:
    """Return the value of a JSON text; PostgreSQL's driver returns the value."""
    return orjson.loads(details) if isinstance(details, str | bytes) else details


def _held_by(consumer: str) -> sa.Select[tuple[str]]:
    """Return the query for the uuids of the providers on which a consumer holds something."""
    provider, held = resource_providers.alias(), allocations.alias()
    found = sa.select(provider.c.uuid).join(held, held.c.resource_provider_id == provider.c.id)
    return found.where(held.c.consumer_id == consumer)


def _is_set(value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    # SQLite has 1 and 0 where others have the texts of JSON.
    return sa.func.coalesce(value, "").not_in(["", "false", "0"])


def _any_of(value: sa.ColumnElement[Any], wanted: Sequence[str | None]) -> sa.ColumnElement[bool]:
    texts = [text for text in wanted if text is not None]
    among = value.in_(texts)
    return among if len(texts) == len(wanted) else sa.or_(among, value.is_(None))


def read(db: Reading, paging: Paging, names: Sequence[str], wanted: NodeFilter) -> list[dict[str, Any]]:
    """Return columns of the nodes that a client asks for, by name.

    Args:
        paging: Its sort key is a column, or a name in ``details``.
        names: Those of the columns.

    Raises:
        NodeNotFound: The projects have no node with the uuid of the marker.
    """
    key = COLUMNS.get(paging.sort_key, detail(paging.sort_key))
    after = None
    if paging.marker is not None:
        # Of the filter the projects alone: the node may have changed since its page was shown, but a comparison with a
        # node that the caller may not see would disclose its values.
        marker = canonical(paging.marker)
        row = db.execute(sa.select(_N.id, key).where(_N.uuid == marker, *wanted.of_projects())).first()
        if row is None:
            raise NodeNotFound(node=marker)
        after = (row[0], row[1])
    columns = [COLUMNS[name].label(name) for name in names]
    found = keyset.read(db, paging, columns, wanted.conditions(), _N.id, key, after)
    rows = [dict(zip(names, row, strict=True)) for row in found]
    if "details" in names:
        for shown in rows:
            shown["details"] = _decoded(shown["details"])
    return rows
