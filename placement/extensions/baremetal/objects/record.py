"""Allocation records: requests for nodes, and the nodes allocated.

A record with a node is active as long as the consumer of its uuid has an allocation of the node's provider.  When a
Placement client deletes or moves that allocation, the record ends: it is no longer shown, and the next write that needs
its name, uuid or node deletes the row.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import sqlalchemy as sa

from placement.db.schema.tables import utcnow
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal.failures import (
    NodeHasNoRecord,
    NodeTaken,
    RecordNameTaken,
    RecordNotFound,
    RecordUuidTaken,
)
from placement.extensions.baremetal.tables import RECORD_IS_LIVE, baremetal_allocations
from placement.uuids import canonical

ALLOCATING, ACTIVE, ERROR = "allocating", "active", "error"


@dataclass(frozen=True, slots=True)
class Record:
    """An allocation record as read from the database, or a request not yet recorded.  Dates are naive, UTC."""

    uuid: str
    name: str | None
    resource_class: str | None
    owner: str | None
    traits: Sequence[str]
    #: Uuids of the nodes to choose from; empty for any node.
    candidate_nodes: Sequence[str]
    extra: Mapping[str, Any]
    created_at: datetime.datetime
    #: The uuid of the node; None for a record in error.
    node_uuid: str | None = None
    last_error: str | None = None
    updated_at: datetime.datetime | None = None
    #: The id of the row; 0 for a request not yet recorded.
    id: int = 0

    @property
    def state(self) -> str:
        """``active`` or ``error``."""
        return ERROR if self.node_uuid is None else ACTIVE

    # --- reading ---

    @classmethod
    def find(cls, db: Reading, ident: str) -> Self | None:
        """Return the record with this uuid, or with this name if ``ident`` is not a uuid; None if not found."""
        return cls._find(db, _SELECT, ident)

    @classmethod
    def get(cls, db: Reading, ident: str) -> Self:
        """Return the record with this uuid or name, or raise RecordNotFound."""
        record = cls.find(db, ident)
        if record is None:
            raise RecordNotFound(allocation=ident)
        return record

    @classmethod
    def lock(cls, db: Transaction, ident: str) -> Self:
        """Return the record with this uuid or name, locked until the transaction ends, or raise RecordNotFound."""
        record = cls._find(db, _LOCK, ident)
        if record is None:
            raise RecordNotFound(allocation=ident)
        return record

    @classmethod
    def of_node(cls, db: Reading, node_uuid: str) -> Self:
        """Return the active record of the node, or raise NodeHasNoRecord."""
        row = db.execute(_SELECT.where(_R.node_uuid == sa.bindparam("node")), {"node": node_uuid}).first()
        if row is None:
            raise NodeHasNoRecord(node=node_uuid)
        return cls(*row)

    @classmethod
    def _find(cls, db: Reading, select: sa.Select[Any], ident: str) -> Self | None:
        uuid = canonical(ident)
        column, key = (_R.name, ident) if uuid is None else (_R.uuid, uuid)
        row = db.execute(select.where(column == sa.bindparam("key")), {"key": key}).first()
        return None if row is None else cls(*row)

    # --- writing ---

    def insert(self, db: Transaction) -> None:
        """Insert the row of a request after deleting ended records with its name, uuid or node.

        Raises:
            RecordUuidTaken, RecordNameTaken: Another record has the uuid or name.
            NodeTaken: Another record is active on the node.
        """
        _vacate(db, uuid=self.uuid, name=self.name, node_uuid=self.node_uuid)
        columns = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "id"}
        db.execute(sa.insert(baremetal_allocations), columns)

    def update(self, db: Transaction, *, name: str | None, extra: Mapping[str, Any]) -> Self:
        """Write the row of a locked record, and return the updated record, or raise RecordNameTaken."""
        if name is not None and name != self.name:
            _vacate(db, name=name)
        now = utcnow()
        db.execute(_UPDATE, {"id_": self.id, "new_name": name, "new_extra": extra, "now": now})
        return replace(self, name=name, extra=extra, updated_at=now)

    def delete(self, db: Transaction) -> bool:
        """Delete the row, even of an ended record; return whether it existed."""
        return db.execute(_DELETE, {"ids": [self.id]}).rowcount == 1

    @classmethod
    def delete_of_consumer(cls, db: Transaction, consumer: str) -> None:
        """Delete the record of a consumer, unless the record is in error."""
        db.execute(_DELETE_OF_CONSUMER, {"uuid": consumer})


def _vacate(db: Transaction, **values: str | None) -> None:
    """Delete ended records that have one of these values in a unique column.

    Raises:
        RecordUuidTaken, RecordNameTaken, NodeTaken: A record that has not ended has one of the values.
    """
    unique_values = {column: value for column, value in values.items() if value is not None}
    # The row with the uuid comes first, so that all databases report the same one of several conflicts.
    rows = sorted(
        db.execute(_conflict_query(tuple(unique_values)), unique_values),
        key=lambda row: row.uuid != unique_values.get("uuid"),
    )
    for row in rows:
        if not row.ended:
            _refuse(row, unique_values)
    if rows:
        db.execute(_DELETE, {"ids": [row.id for row in rows]})


def _refuse(row: Any, unique_values: Mapping[str, str]) -> None:
    if row.uuid == unique_values.get("uuid"):
        raise RecordUuidTaken(uuid=row.uuid)
    if row.name is not None and row.name == unique_values.get("name"):
        raise RecordNameTaken(name=row.name)
    raise NodeTaken(node=row.node_uuid, instance=row.uuid)


_R = baremetal_allocations.c
#: The query for the columns of ``Record(*row)``.
_SELECT = sa.select(
    *(_R.uuid, _R.name, _R.resource_class, _R.owner, _R.traits, _R.candidate_nodes, _R.extra, _R.created_at),
    *(_R.node_uuid, _R.last_error, _R.updated_at, _R.id),
).where(RECORD_IS_LIVE)
_LOCK = _SELECT.with_for_update(of=baremetal_allocations)
_UPDATE = (
    sa.update(baremetal_allocations)
    .where(_R.id == sa.bindparam("id_"))
    .values(
        name=sa.bindparam("new_name"),
        extra=sa.bindparam("new_extra", type_=sa.JSON),
        updated_at=sa.bindparam("now"),
    )
)
_DELETE = sa.delete(baremetal_allocations).where(_R.id.in_(sa.bindparam("ids", expanding=True)))
_DELETE_OF_CONSUMER = sa.delete(baremetal_allocations).where(_R.uuid == sa.bindparam("uuid"), _R.node_uuid.is_not(None))


@functools.lru_cache
def _conflict_query(columns: tuple[str, ...]) -> sa.Select[Any]:
    """Return the query for records with one of these values in a unique column, and whether each has ended."""
    conditions = [_R[column] == sa.bindparam(column) for column in columns]
    return sa.select(_R.id, _R.uuid, _R.name, _R.node_uuid, sa.not_(RECORD_IS_LIVE).label("ended")).where(
        sa.or_(*conditions)
    )
