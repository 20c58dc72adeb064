"""Dry runs: writes that are checked and answered like any other, and rolled back (docs: api-dry-run)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes.transaction import Reading, Transaction
from placement.http import failures
from placement.http.environ import API, VERSION
from placement.http.response import JSON, Reply, ok
from placement.objects.claims.free_capacity import FreeCapacity
from placement.objects.provider import ResourceProvider

#: The parameter of a query, and the header, by its name and by its key in the environ.
PARAMETER = "dry_run"
HEADER_NAME = "placement-dry-run"
HEADER = "HTTP_PLACEMENT_DRY_RUN"
#: What is left out of the headers that a dry run shows: the content is shown in another form.
_HIDDEN = "content-length"

#: The room in inventories, by provider uuid and resource class.
Rooms = dict[str, dict[str, FreeCapacity]]


def of_path(_req: object, uuid: str, **_path_values: str) -> Collection[str]:
    """Return the provider that the path names: the ``dry_run`` of an endpoint about one provider."""
    return (uuid,)


def is_asked(environ: WSGIEnvironment) -> bool:
    """Return whether the request is a dry run.

    Raises:
        InvalidDryRun: The parameter or the header is neither ``true`` nor ``false``.
    """
    # Read without the checks of queries: routes that ignore theirs do not refuse one that cannot be decoded.
    query = environ.get("QUERY_STRING")
    given = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == PARAMETER] if query else []
    if HEADER in environ:
        given.append(environ[HEADER].strip())
    for value in given:
        if value not in ("true", "false"):
            raise failures.InvalidDryRun(value=value)
    return "true" in given


def begun(database: Database, named: Collection[str]) -> DryRun[Rooms]:
    """Return a dry run that looks at the room of providers: those named (uuids), and all that the write changes."""

    def look(db: Transaction) -> Rooms:
        return _rooms(db, named, db.changed_providers)

    return DryRun(database, look)


def answer(run: DryRun[Rooms], handler: Callable[[], Reply], environ: WSGIEnvironment) -> Reply:
    """Return 200 with what the handler answers, or with the failure that it raises, and the room that is left.

    Raises:
        Failure: The handler's, if it does not decide about the write: that was not tried yet, or the database is away.
    """
    try:
        reply = handler()
        if environ[VERSION] >= environ[API].cache_headers_since:
            reply.add_cache_headers()
        shown = _shown(reply.status_int, reply.headerlist, reply.body)
    except errors.Failure as failure:
        if run.seen is None or isinstance(failure, errors.Unavailable):
            raise
        status, headers, content = failures.rendered(failure, environ)
        shown = _shown(status.value, headers, content)
    rooms = {
        uuid: {name: {"capacity": room.capacity, "used": room.used, "free": room.free} for name, room in of.items()}
        for uuid, of in (run.seen or {}).items()
    }
    return ok({"dry_run": shown, "room": rooms})


def _rooms(db: Reading, named: Collection[str], changed: Collection[int]) -> Rooms:
    return FreeCapacity.of_providers(db, {*ResourceProvider.ids(db, named).values(), *changed})


def _shown(status: int, headers: Sequence[tuple[str, str]], content: bytes) -> dict[str, Any]:
    by_name = {name.lower(): value for name, value in headers if name.lower() != _HIDDEN}
    shown: dict[str, Any] = {"status": status, "headers": by_name}
    if content:
        # Errors have other forms than JSON, too, for clients that ask for them (docs: api-accept).
        shown["body"] = json.loads(content) if by_name.get("content-type") == JSON else content.decode()
    return shown
