"""/allocations, /allocations/{consumer_uuid}, /resource_providers/{uuid}/allocations"""

from __future__ import annotations

from typing import Any

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, newest, no_content, ok
from placement.objects.allocation import ConsumerShare, ProviderAllocations
from placement.objects.claims import joint_claims, release
from placement.objects.claims.holding import Holding
from placement.objects.consumer import canonical_uuid
from placement.objects.provider import ResourceProvider
from placement.schemas import allocation as schema
from placement.schemas.claim import claims, providers_named


@endpoint(policy="placement:allocations:list", replies=schema.SHOW_REPLIES)
def show(req: Request, consumer_uuid: str) -> Reply:
    """Show all allocations of the consumer; a consumer without any is shown with none, not as missing."""
    held = req.read(lambda db: Holding.find(db, consumer_uuid))
    if held is None:
        return ok({"allocations": {}}, modified=newest([]))
    return ok(_present(held, req.version), modified=newest([held.modified]))


def _check_uuid(_req: Request, consumer_uuid: str) -> None:
    """Refuse a path that names no consumer."""
    canonical_uuid(consumer_uuid)


@endpoint(
    policy="placement:allocations:update",
    check_path=_check_uuid,
    body=schema.REPLACE,
    dry_run=lambda req, consumer_uuid: providers_named({consumer_uuid: req.document}),
    replies=schema.REPLACE_REPLIES,
)
def replace(req: Request, consumer_uuid: str) -> Reply:
    """Replace all allocations of the consumer."""
    consumer = canonical_uuid(consumer_uuid)
    wanted = claims({consumer: req.document}, req.conf.placement)
    with errors.prefixed(f"Unable to allocate inventory for consumer {consumer}: ", errors.UnknownResourceClass):
        joint_claims.place(req.writes_to, wanted, attempts=req.conf.placement.allocation_conflict_retry_count)
    return no_content()


@endpoint(
    since=mv.POST_ALLOCATIONS,
    policy="placement:allocations:manage",
    body=schema.CREATE,
    dry_run=lambda req: providers_named(req.document),
    replies=schema.CREATE_REPLIES,
)
def create(req: Request) -> Reply:
    """Replace all allocations of each of several consumers, or of none of them."""
    with errors.prefixed("Unable to allocate inventory ", errors.UnknownResourceClass):
        wanted = claims(req.document, req.conf.placement)
        joint_claims.place(req.writes_to, wanted, attempts=req.conf.placement.allocation_conflict_retry_count)
    return no_content()


@endpoint(policy="placement:allocations:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, consumer_uuid: str) -> Reply:
    """Delete all allocations of the consumer."""
    req.write(lambda db: release.end_consumer(db, consumer_uuid))
    return no_content()


@endpoint(policy="placement:resource_providers:allocations:list", replies=schema.OF_PROVIDER_REPLIES)
def of_provider(req: Request, uuid: str) -> Reply:
    """Show the allocations on the provider, by consumer."""
    provider, held = req.read(
        ResourceProvider.get_with, uuid, ProviderAllocations.of_provider, errors.ProviderOfAllocationsNotFound
    )
    document = {
        "resource_provider_generation": provider.generation,
        "allocations": {consumer: _present_share(share, req.version) for consumer, share in held.shares.items()},
    }
    return ok(document, modified=newest([held.modified]))


def _present(held: Holding, version: mv.Version) -> dict[str, Any]:
    document: dict[str, Any] = {
        "allocations": {
            uuid: {"resources": on.resources, "generation": on.generation} for uuid, on in held.held.items()
        }
    }
    if version >= mv.ALLOCATIONS_BY_PROVIDER:
        document |= {"project_id": held.project, "user_id": held.user}
    if version >= mv.CONSUMER_GENERATION:
        document["consumer_generation"] = held.generation
    if version >= mv.CONSUMER_TYPES:
        document["consumer_type"] = held.consumer_type
    return document


def _present_share(share: ConsumerShare, version: mv.Version) -> dict[str, Any]:
    if version >= mv.CONSUMER_GENERATION:
        return {"resources": share.resources, "consumer_generation": share.consumer_generation}
    return {"resources": share.resources}
