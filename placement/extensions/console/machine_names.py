"""The providers as pages name them: one that is a machine has the name of the machine, where its own is a uuid."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import sqlalchemy as sa

from placement.db.writes.transaction import Reading
from placement.extensions.v1.history import subject
from placement.http.request import Request
from placement.index.snapshot import Snapshot


def named_snapshot(req: Request) -> Snapshot:
    """Return the present snapshot, with the names of machines (docs: console)."""
    snapshot = req.index.current()
    return _with_names(snapshot, req.read(_names)) if subject.tables_of_extensions() else snapshot


def _names(db: Reading) -> Mapping[str, str]:
    """Return the names of objects of extensions that have the uuid of a provider, by that uuid."""
    tables = subject.tables_of_extensions()
    rows = (db.execute(sa.select(table.c.uuid, table.c.name).where(table.c.name.is_not(None))) for table in tables)
    return {row.uuid: row.name for found in rows for row in found}


def _with_names(snapshot: Snapshot, names: Mapping[str, str]) -> Snapshot:
    """Return the snapshot with these names of providers, by uuid, but for those that have a name of their own."""
    providers = [*snapshot.providers]
    changed = False
    for uuid, name in names.items():
        slot = snapshot.by_uuid.get(uuid)
        if slot is not None and snapshot.provider(slot).name in (uuid, None):
            providers[slot] = snapshot.provider(slot)._replace(name=name)
            changed = True
    if not changed:
        return snapshot
    made = copy.copy(snapshot)
    made.providers = providers
    made.forget_providers()
    return made
