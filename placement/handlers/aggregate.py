"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from placement import errors
from placement import microversion as mv
from placement.db.writes.transaction import Transaction
from placement.http import dry_run
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects.aggregate import Aggregate
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.schemas import aggregate as schema


@endpoint(
    since=mv.AGGREGATES,
    media_types_first=True,
    policy="placement:resource_providers:aggregates:list",
    replies=schema.LIST_REPLIES,
)
def list_aggregates(req: Request, uuid: str) -> Reply:
    """Show the aggregates of the provider."""
    provider, aggregates = req.read(ResourceProvider.get_with, uuid, Aggregate.of_provider)
    return _present(req, provider, [aggregate.uuid for aggregate in aggregates])


@endpoint(
    since=mv.AGGREGATES,
    media_types_first=True,
    policy="placement:resource_providers:aggregates:update",
    body=schema.REPLACE,
    limits={"aggregates": lambda document: len(_uuids(document))},
    find_first=ResourceProvider.get,
    dry_run=dry_run.of_path,
    replies=schema.REPLACE_REPLIES,
)
def replace(req: Request, uuid: str) -> Reply:
    """Replace the aggregates of the provider."""
    checks_generation = req.version >= mv.AGGREGATE_GENERATION
    generation = req.document["resource_provider_generation"] if checks_generation else None
    uuids = _uuids(req.document)

    def work(db: Transaction) -> ResourceProvider:
        provider = LockedProvider.lock(db, uuid, generation, conflict=errors.ProviderGenerationMoved)
        provider.replace_aggregates(uuids, advance=checks_generation)
        return provider.record

    return _present(req, req.write(work), uuids)


def _uuids(document: Any) -> Collection[str]:
    """Return the aggregates in a body: a list before AGGREGATE_GENERATION, an object from then on."""
    uuids: list[str] = document["aggregates"] if isinstance(document, dict) else document
    return uuids


def _present(req: Request, provider: ResourceProvider, uuids: Iterable[str]) -> Reply:
    document: dict[str, Any] = {"aggregates": [*uuids]}
    if req.version >= mv.AGGREGATE_GENERATION:
        document["resource_provider_generation"] = provider.generation
    return ok(document, modified=NOW)
