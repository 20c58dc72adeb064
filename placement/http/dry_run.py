"""Dry runs: writes that are checked and executed like any other, then rolled back (docs: api-dry-run)."""

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

#: The query parameter; the header, by name and by environ key.
PARAMETER = "dry_run"
HEADER_NAME = "placement-dry-run"
HEADER = "HTTP_PLACEMENT_DRY_RUN"
#: The header omitted from the headers shown: the body is embedded as JSON, so its length differs.
_HIDDEN_HEADER = "content-length"

#: Capacity, usage and free capacity, by provider uuid and resource class.
FreeByProvider = dict[str, dict[str, FreeCapacity]]


def of_path(_req: object, uuid: str, **_path_values: str) -> Collection[str]:
    """Return the uuid in the path; the ``dry_run`` of endpoints whose path names a provider."""
    return (uuid,)


def is_requested(environ: WSGIEnvironment) -> bool:
    """Whether the request asks for a dry run.

    Raises:
        InvalidDryRun: The parameter or the header is neither ``true`` nor ``false``.
    """
    # Not Request.pairs: a route that ignores its query accepts one that cannot be decoded.
    query = environ.get("QUERY_STRING")
    values = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == PARAMETER] if query else []
    if HEADER in environ:
        values.append(environ[HEADER].strip())
    for value in values:
        if value not in ("true", "false"):
            raise failures.InvalidDryRun(value=value)
    return "true" in values


def start(database: Database, provider_uuids: Collection[str]) -> DryRun[FreeByProvider]:
    """Return a dry run that reads the free capacity of these providers and of the providers that the write changes."""

    def observe(db: Transaction) -> FreeByProvider:
        return _free_by_provider(db, provider_uuids, db.changed_providers)

    return DryRun(database, observe)


def respond(run: DryRun[FreeByProvider], handler: Callable[[], Reply], environ: WSGIEnvironment) -> Reply:
    """Return 200 with the handler's response or failure, and the capacity that would remain free.

    Raises:
        Failure: The handler failed before the write was attempted, or the database is unavailable.
    """
    try:
        reply = handler()
        if environ[VERSION] >= environ[API].cache_headers_since:
            reply.add_cache_headers()
        rendered = _render(reply.status_int, reply.headerlist, reply.body)
    except errors.Failure as failure:
        if run.observation is None or isinstance(failure, errors.Unavailable):
            raise
        status, headers, content = failures.render(failure, environ)
        rendered = _render(status.value, headers, content)
    remaining = {
        uuid: {
            name: {"capacity": free.capacity, "used": free.used, "free": free.free} for name, free in by_class.items()
        }
        for uuid, by_class in (run.observation or {}).items()
    }
    return ok({"dry_run": rendered, "room": remaining})


def _free_by_provider(db: Reading, uuids: Collection[str], changed_ids: Collection[int]) -> FreeByProvider:
    return FreeCapacity.of_providers(db, {*ResourceProvider.ids(db, uuids).values(), *changed_ids})


def _render(status: int, headers: Sequence[tuple[str, str]], content: bytes) -> dict[str, Any]:
    by_name = {name.lower(): value for name, value in headers if name.lower() != _HIDDEN_HEADER}
    rendered: dict[str, Any] = {"status": status, "headers": by_name}
    if content:
        # Errors may be rendered as HTML or text (docs: api-accept).
        rendered["body"] = json.loads(content) if by_name.get("content-type") == JSON else content.decode()
    return rendered
