"""/allocations, /allocations/{consumer_uuid}, /resource_providers/{uuid}/allocations"""

from __future__ import annotations

from typing import Any

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, newest_date, no_content, ok
from placement.objects.allocation import ConsumerShare, ProviderAllocations
from placement.objects.claims import joint_claims, release
from placement.objects.claims.holding import Holding
from placement.objects.consumer import canonical_uuid
from placement.objects.provider import ResourceProvider
from placement.schemas import allocation as schema
from placement.schemas.claim import claims, provider_uuids


@endpoint(policy="placement:allocations:list", replies=schema.SHOW_REPLIES)
def show(req: Request, consumer_uuid: str) -> Reply:
    """Show the allocations of the consumer: an empty object, not 404, if it holds nothing."""
    holding = req.read(lambda db: Holding.find(db, consumer_uuid))
    if holding is None:
        return ok({"allocations": {}}, modified=newest_date([]))
    return ok(_present(holding, req.version), modified=newest_date([holding.modified]))


def _check_uuid(_req: Request, consumer_uuid: str) -> None:
    """Raise MalformedConsumerUuid unless the path contains a uuid."""
    canonical_uuid(consumer_uuid)


@endpoint(
    policy="placement:allocations:update",
    check_path=_check_uuid,
    body=schema.REPLACE,
    dry_run=lambda req, consumer_uuid: provider_uuids({consumer_uuid: req.document}),
    replies=schema.REPLACE_REPLIES,
)
def replace(req: Request, consumer_uuid: str) -> Reply:
    """Replace the allocations of the consumer."""
    consumer = canonical_uuid(consumer_uuid)
    requested = claims({consumer: req.document}, req.conf.placement)
    with errors.prefix_failures(f"Unable to allocate inventory for consumer {consumer}: ", errors.UnknownResourceClass):
        joint_claims.place(req.writes_to, requested, attempts=req.conf.placement.allocation_conflict_retry_count)
    return no_content()


@endpoint(
    since=mv.POST_ALLOCATIONS,
    policy="placement:allocations:manage",
    body=schema.CREATE,
    dry_run=lambda req: provider_uuids(req.document),
    replies=schema.CREATE_REPLIES,
)
def create(req: Request) -> Reply:
    """Replace the allocations of several consumers, all or nothing."""
    with errors.prefix_failures("Unable to allocate inventory ", errors.UnknownResourceClass):
        requested = claims(req.document, req.conf.placement)
        joint_claims.place(req.writes_to, requested, attempts=req.conf.placement.allocation_conflict_retry_count)
    return no_content()


@endpoint(policy="placement:allocations:delete", replies=schema.DELETE_REPLIES)
def delete(req: Request, consumer_uuid: str) -> Reply:
    """Delete the allocations of the consumer."""
    req.write(lambda db: release.end_consumer(db, consumer_uuid))
    return no_content()


@endpoint(policy="placement:resource_providers:allocations:list", replies=schema.OF_PROVIDER_REPLIES)
def of_provider(req: Request, uuid: str) -> Reply:
    """Show the allocations on the provider, by consumer."""
    provider, allocations = req.read(
        ResourceProvider.get_with, uuid, ProviderAllocations.of_provider, errors.ProviderOfAllocationsNotFound
    )
    document = {
        "resource_provider_generation": provider.generation,
        "allocations": {consumer: _present_share(share, req.version) for consumer, share in allocations.shares.items()},
    }
    return ok(document, modified=newest_date([allocations.modified]))


def _present(holding: Holding, version: mv.Version) -> dict[str, Any]:
    document: dict[str, Any] = {
        "allocations": {
            uuid: {"resources": amounts.resources, "generation": amounts.generation}
            for uuid, amounts in holding.held.items()
        }
    }
    if version >= mv.ALLOCATIONS_BY_PROVIDER:
        document |= {"project_id": holding.project, "user_id": holding.user}
    if version >= mv.CONSUMER_GENERATION:
        document["consumer_generation"] = holding.generation
    if version >= mv.CONSUMER_TYPES:
        document["consumer_type"] = holding.consumer_type
    return document


def _present_share(share: ConsumerShare, version: mv.Version) -> dict[str, Any]:
    if version >= mv.CONSUMER_GENERATION:
        return {"resources": share.resources, "consumer_generation": share.consumer_generation}
    return {"resources": share.resources}
