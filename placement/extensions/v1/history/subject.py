"""What the history is asked about: a provider or a node, by uuid or name, or a consumer; also one that is gone."""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import consumers, metadata, resource_providers
from placement.db.writes.notes import PROVIDER
from placement.db.writes.transaction import Reading
from placement.extensions.v1 import lookup
from placement.extensions.v1.history import recorder
from placement.extensions.v1.history.event import NODE, OF_ORDER, POSITION
from placement.extensions.v1.history.tables import event_order, events
from placement.index.snapshot import Snapshot
from placement.uuids import is_uuid, spellings


def find(database: Database, snapshot: Snapshot, ident: str) -> str | None:
    """Return a uuid for a uuid or a name.

    That of a provider which is present goes first, then that of a node, and then that of the provider or node which had
    the name last.

    Returns:
        None if nothing has the name, or had it.  A uuid is returned whether something has it or not, as it is written
        there.
    """
    slot = lookup.find(snapshot, ident)
    if slot is not None:
        return snapshot.provider(slot).uuid
    return recorder.of(database).read(lambda db: _node(db, ident) or named(db, ident) or _as_written(db, ident))


def is_present(db: Reading, uuid: str) -> bool:
    """Return whether there is a provider, a node or a consumer of this uuid."""
    tables = (resource_providers, *_tables_of_extensions(), consumers)
    found = db.execute(sa.select(sa.or_(*(sa.exists().where(table.c.uuid == uuid) for table in tables))))
    return bool(found.scalar_one())


def named(db: Reading, name: str) -> str | None:
    """Return the uuid of the provider or node that had a name last; None if the history knows none."""
    found: str | None = db.execute(_NAMED.where(events.c.name == name)).scalar()
    return found


def _node(db: Reading, name: str) -> str | None:
    for table in _tables_of_extensions():
        uuid: str | None = db.execute(sa.select(table.c.uuid).where(table.c.name == name)).scalar()
        if uuid is not None:
            return uuid
    return None


def _as_written(db: Reading, ident: str) -> str | None:
    """Return a uuid as it is written in the database, else in the form with dashes; None if it is none.

    Clients write uuids of consumers with capitals or without dashes, too, and some collations find them in any case.
    """
    if not is_uuid(ident):
        return None
    forms = spellings(ident)
    for form in forms:
        for table in (resource_providers, *_tables_of_extensions(), consumers, events):
            found: str | None = db.execute(sa.select(table.c.uuid).where(table.c.uuid == form).limit(1)).scalar()
            if found is not None:
                return found
    return forms[-1]


def _tables_of_extensions() -> list[sa.Table]:
    """Return the tables of extensions that have objects of their own, such as nodes, with uuids and names."""
    return [table for table in metadata.sorted_tables if "objects" in table.info]


_NAMED = (
    sa.select(events.c.uuid)
    .join(event_order, OF_ORDER)
    .where(events.c.kind.in_((PROVIDER, NODE)))
    .order_by(POSITION.desc())
    .limit(1)
)
