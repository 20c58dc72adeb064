"""The providers as pages name them: one that is a machine has the name of the machine, where its own is a uuid."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from placement.extensions.v1.history import names, subject
from placement.http.request import Request
from placement.index.snapshot import Snapshot


def named_snapshot(req: Request) -> Snapshot:
    """Return the present snapshot, with the names of machines (docs: console)."""
    return with_machine_names(req, req.index.current())


def with_machine_names(req: Request, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which providers that are machines have the names of these."""
    return _with_names(snapshot, req.read(names.of_nodes)) if subject.tables_of_extensions() else snapshot


def _with_names(snapshot: Snapshot, known: Mapping[str, str]) -> Snapshot:
    """Return the snapshot with these names of providers, by uuid, but for those that have a name of their own."""
    providers = [*snapshot.providers]
    changed = False
    for uuid, name in known.items():
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
