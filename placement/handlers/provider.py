"""/resource_providers, /resource_providers/{uuid}"""

from __future__ import annotations

import uuid as uuid_module
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from placement import errors
from placement import microversion as mv
from placement.db.writes.transaction import Transaction
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, created, json_list, newest_date, no_content, ok
from placement.index.snapshot import Snapshot
from placement.objects.locked_provider import TREE_ATTEMPTS, LockedProvider
from placement.objects.provider import ResourceProvider
from placement.schemas import provider as schema
from placement.search.find import find_providers
from placement.search.query import existence, parse
from placement.uuids import canonical

_LINKS = (
    ("inventories", mv.INITIAL),
    ("usages", mv.INITIAL),
    ("aggregates", mv.AGGREGATES),
    ("traits", mv.TRAITS),
    ("allocations", mv.ALLOCATIONS_LINK),
)


@endpoint(policy="placement:resource_providers:list", query=schema.LIST, replies=schema.LIST_REPLIES)
def list_providers(req: Request) -> Reply:
    """List the providers that match every filter."""
    provider_filter = parse.provider_filter(req.parameters, req.version)
    snapshot = req.index.current()
    existence.check_filter(provider_filter, snapshot, req.database)
    slots = find_providers(provider_filter, snapshot)
    documents = _documents(req, snapshot, slots)
    if req.version < mv.CACHE_HEADERS:
        return json_list("resource_providers", documents)
    ids = None if len(slots) == len(snapshot) else snapshot.providers.ids(np.array(slots, dtype=np.intp)).tolist()
    modified = newest_date([req.read(lambda db: ResourceProvider.newest_change(db, ids))])
    return json_list("resource_providers", documents, modified)


@endpoint(policy="placement:resource_providers:create", body=schema.CREATE, replies=schema.CREATE_REPLIES)
def create(req: Request) -> Reply:
    """Create a provider: a root, or the child of another provider."""
    body = req.document
    uuid = canonical(body.get("uuid", "")) or str(uuid_module.uuid4())
    parent_uuid = body.get("parent_provider_uuid")
    provider = req.write(
        lambda db: LockedProvider.create(db, uuid=uuid, name=body["name"], parent_uuid=parent_uuid).record,
        attempts=TREE_ATTEMPTS,
    )
    location = req.absolute_url(f"/resource_providers/{uuid}")
    if req.version >= mv.PROVIDER_BODY:
        return ok(_present(req, provider), NOW, location)
    return created(location)


@endpoint(policy="placement:resource_providers:show", replies=schema.SHOW_REPLIES)
def show(req: Request, uuid: str) -> Reply:
    """Show a provider."""
    provider = req.read(ResourceProvider.get, uuid)
    return ok(_present(req, provider), modified=provider.modified or NOW)


@endpoint(
    policy="placement:resource_providers:update",
    body=schema.UPDATE,
    find_first=ResourceProvider.get,
    replies=schema.UPDATE_REPLIES,
)
def update(req: Request, uuid: str) -> Reply:
    """Rename a provider, and move it below another parent if the body names one."""

    def work(db: Transaction) -> ResourceProvider:
        if "parent_provider_uuid" in req.document:
            parent_uuid, may_reparent = req.document["parent_provider_uuid"], req.version >= mv.REPARENTING
            provider = LockedProvider.lock_and_move(db, uuid, parent_uuid, may_reparent=may_reparent)
        else:
            provider = LockedProvider.lock(db, uuid)
        provider.rename(req.document["name"])
        return provider.record

    provider = req.write(work, attempts=TREE_ATTEMPTS)
    return ok(_present(req, provider), modified=provider.modified or NOW)


@endpoint(policy="placement:resource_providers:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, uuid: str) -> Reply:
    """Delete a provider without children and allocations."""
    req.write(lambda db: LockedProvider.lock(db, uuid, missing=errors.ProviderNotFoundForDelete).delete())
    return no_content()


def _documents(req: Request, snapshot: Snapshot, slots: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield the providers in these slots of the index, as this version shows them."""
    providers = snapshot.providers
    rows = np.array(slots, dtype=np.intp)
    parents = providers.parents(rows)
    has_parent = parents >= 0
    parent_uuids: list[str | None] = [None] * len(rows)
    for position, uuid in zip(np.flatnonzero(has_parent).tolist(), providers.uuids(parents[has_parent]), strict=True):
        parent_uuids[position] = uuid
    columns = (
        providers.uuids(rows),
        providers.names(rows),
        snapshot.generations[rows].tolist(),
        parent_uuids,
        providers.uuids(snapshot.forest.roots(rows)),
    )
    return (_document(req, *values) for values in zip(*columns, strict=True))


def _present(req: Request, provider: ResourceProvider) -> dict[str, Any]:
    """Return the provider as this version shows it."""
    return _document(req, provider.uuid, provider.name, provider.generation, provider.parent_uuid, provider.root_uuid)


def _document(
    req: Request, uuid: str, name: str | None, generation: int, parent: str | None, root: str | None
) -> dict[str, Any]:
    path = f"{req.mount_path}/resource_providers/{uuid}"
    links = [{"rel": "self", "href": path}]
    for rel, since in _LINKS:
        if req.version >= since:
            links.append({"rel": rel, "href": f"{path}/{rel}"})
    document: dict[str, Any] = {"uuid": uuid, "name": name, "generation": generation, "links": links}
    if req.version >= mv.NESTED:
        document["parent_provider_uuid"] = parent
        document["root_provider_uuid"] = root
    return document
