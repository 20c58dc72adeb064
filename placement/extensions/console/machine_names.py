"""Machine names for providers: a provider named only by its uuid is shown under the name of its machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from placement.extensions.v1 import nodes
from placement.http.request import Request
from placement.index.providers import ChangedProvider
from placement.index.snapshot import Snapshot

#: WSGI environ key of the snapshot, made once per request.
_ENVIRON_KEY = "placement.console.named_snapshot"


def named_snapshot(req: Request) -> Snapshot:
    """Return the snapshot of the request with the names of machines (docs: console)."""
    if _ENVIRON_KEY not in req.environ:
        req.environ[_ENVIRON_KEY] = with_machine_names(req, req.index.current())
    snapshot: Snapshot = req.environ[_ENVIRON_KEY]
    return snapshot


def trees_of(req: Request) -> Snapshot | None:
    """Return the snapshot with the names of trees for sentences; None if the caller may not see trees."""
    return named_snapshot(req) if req.may("placement:v1:overview:show") else None


def with_machine_names(req: Request, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the names of machines."""
    return _with_names(snapshot, req.read(nodes.names_by_uuid)) if nodes.tables() else snapshot


def _with_names(snapshot: Snapshot, names: Mapping[str, str]) -> Snapshot:
    """Return the snapshot with these names, by uuid, for providers named only by their uuid."""
    renamed_providers: dict[int, ChangedProvider | None] = {}
    for uuid, name in nodes.unambiguous_names(names, snapshot).items():
        slot = snapshot.by_uuid.get(uuid)
        if slot is not None and snapshot.provider(slot).name in (uuid, None):
            renamed_providers[slot] = ChangedProvider.copy(snapshot.provider(slot))._replace(name=name)
    if not renamed_providers:
        return snapshot
    renamed = copy.copy(snapshot)
    renamed.providers = snapshot.providers.with_changes(renamed_providers)
    return renamed
