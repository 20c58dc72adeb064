"""The providers as pages name them: one that is a machine has the name of the machine, where its own is a uuid."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from placement.extensions.v1 import nodes
from placement.http.request import Request
from placement.index.snapshot import Snapshot

#: Where a request keeps what it has read.
_KEPT = "placement.console.named_snapshot"


def named_snapshot(req: Request) -> Snapshot:
    """Return the snapshot of the request, with the names of machines (docs: console)."""
    if _KEPT not in req.environ:
        req.environ[_KEPT] = with_machine_names(req, req.index.current())
    found: Snapshot = req.environ[_KEPT]
    return found


def trees_of(req: Request) -> Snapshot | None:
    """Return that snapshot, by whose trees sentences name providers, to those who may see these."""
    return named_snapshot(req) if req.may("placement:v1:overview:show") else None


def with_machine_names(req: Request, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which providers that are machines have the names of these."""
    return _with_names(snapshot, req.read(nodes.names_by_uuid)) if nodes.tables() else snapshot


def _with_names(snapshot: Snapshot, known: Mapping[str, str]) -> Snapshot:
    """Return the snapshot with these names of providers, by uuid, but for those that have a name of their own."""
    providers = [*snapshot.providers]
    changed = False
    for uuid, name in nodes.unambiguous(known, snapshot).items():
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
