"""Lookup of the object whose history a request names.

It is a provider or node, by uuid or name, or a consumer, by uuid.  It may no longer exist.
"""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import consumers, resource_providers
from placement.db.writes.notes import PROVIDER
from placement.db.writes.transaction import Reading
from placement.extensions.v1 import lookup, nodes
from placement.extensions.v1.history import recorder
from placement.extensions.v1.history.event import NODE, OF_ORDER, POSITION
from placement.extensions.v1.history.tables import event_order, events
from placement.index.snapshot import Snapshot
from placement.uuids import is_uuid, spellings


def find(database: Database, snapshot: Snapshot, ident: str) -> str | None:
    """Resolve a uuid or a name to a uuid.

    Existing providers take precedence over nodes, and both over the provider or node that last had the name.

    Returns:
        The uuid in the stored spelling.  A uuid is returned even if no object has it.  None if no object has or
        had the name.
    """
    slot = lookup.find(snapshot, ident)
    if slot is not None:
        return snapshot.provider(slot).uuid

    def work(db: Reading) -> str | None:
        return nodes.uuids_by_name(db, [ident]).get(ident) or find_by_name(db, ident) or _stored_spelling(db, ident)

    return recorder.history_of(database).read(work)


def is_present(db: Reading, uuid: str) -> bool:
    """Whether a provider, node or consumer with this uuid exists."""
    tables = (resource_providers, *nodes.tables(), consumers)
    exists = sa.or_(*(sa.exists().where(table.c.uuid == uuid) for table in tables))
    return bool(db.execute(sa.select(exists)).scalar_one())


def find_by_name(db: Reading, name: str) -> str | None:
    """Return the uuid of the provider or node that last had a name; None if the history contains none."""
    uuid: str | None = db.execute(_NAMED.where(events.c.name == name)).scalar()
    return uuid


def _stored_spelling(db: Reading, ident: str) -> str | None:
    """Return a uuid in the stored spelling, or else with dashes; None if the text is not a uuid.

    Clients also store consumer uuids with capitals or without dashes, and some collations ignore case.
    """
    if not is_uuid(ident):
        return None
    candidates = spellings(ident)
    for spelling in candidates:
        for table in (resource_providers, *nodes.tables(), consumers, events):
            stored: str | None = db.execute(sa.select(table.c.uuid).where(table.c.uuid == spelling).limit(1)).scalar()
            if stored is not None:
                return stored
    return candidates[-1]


_NAMED = (
    sa.select(events.c.uuid)
    .join(event_order, OF_ORDER)
    .where(events.c.kind.in_((PROVIDER, NODE)))
    .order_by(POSITION.desc())
    .limit(1)
)
