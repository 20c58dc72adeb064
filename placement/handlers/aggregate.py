"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement import errors
from placement import microversion as mv
from placement.db.transaction import Transaction
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects import aggregate
from placement.objects.provider import ResourceProvider
from placement.schemas import aggregate as schema


@endpoint(since=mv.AGGREGATES, gate="after media types", policy="placement:resource_providers:aggregates:list")
def list(req: Request, uuid: str) -> Reply:
    """The aggregates that the provider belongs to."""

    def work(db: Any) -> tuple[ResourceProvider, Iterable[str]]:
        provider = ResourceProvider.get(db, uuid)
        return provider, aggregate.of_provider(db, provider)

    return _present(req, *req.read(work))


@endpoint(
    since=mv.AGGREGATES,
    gate="after media types",
    policy="placement:resource_providers:aggregates:update",
    body=schema.REPLACE,
)
def replace(req: Request, uuid: str) -> Reply:
    """Make the provider belong to exactly these aggregates."""
    guarded = req.version >= mv.AGGREGATE_GENERATION
    req.read(lambda db: ResourceProvider.get(db, uuid))
    uuids = req.body["aggregates"] if guarded else req.body
    req.check_count("aggregates", len(uuids))

    def work(db: Transaction) -> ResourceProvider:
        provider = ResourceProvider.lock(db, uuid)
        if guarded:
            provider.expect(req.body["resource_provider_generation"], errors.ProviderGenerationMoved)
        aggregate.replace(db, provider, uuids)
        if guarded:
            return provider.advance(db)
        provider.touch(db, [provider.id])
        return provider

    return _present(req, req.write(work), uuids)


def _present(req: Request, provider: ResourceProvider, uuids: Iterable[str]) -> Reply:
    body: dict[str, Any] = {"aggregates": [*uuids]}
    if req.version >= mv.AGGREGATE_GENERATION:
        body["resource_provider_generation"] = provider.generation
    return ok(body, modified=NOW)
