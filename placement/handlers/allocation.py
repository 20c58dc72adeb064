"""/allocations, /allocations/{consumer_uuid}, /resource_providers/{uuid}/allocations"""

from __future__ import annotations

import datetime
import uuid as uuid_module
from collections.abc import Sequence
from typing import Any

from oslo_utils import uuidutils

from placement import claims, errors
from placement import microversion as mv
from placement.db.transaction import Reading
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, newest, no_content, ok
from placement.objects import allocation
from placement.objects import claim as objects
from placement.objects.allocation import Held, HeldHere
from placement.objects.provider import ResourceProvider
from placement.schemas import allocation as schema


@endpoint(policy="placement:allocations:list")
def show(req: Request, consumer_uuid: str) -> Reply:
    """Show all allocations of the consumer; a consumer without any is shown with none, not as missing."""
    held = req.read(lambda db: allocation.of_consumer(db, consumer_uuid))
    if held is None:
        return ok({"allocations": {}}, modified=newest([]))
    return ok(_present(held, req.version), modified=newest([held.modified]))


def _check_uuid(_req: Request, consumer_uuid: str) -> None:
    """Refuse a path that names no consumer."""
    if not uuidutils.is_uuid_like(consumer_uuid):
        raise errors.MalformedConsumerUuid(uuid=consumer_uuid)


@endpoint(policy="placement:allocations:update", path=_check_uuid, body=schema.REPLACE)
def replace(req: Request, consumer_uuid: str) -> Reply:
    """Replace all allocations of the consumer."""
    consumer = str(uuid_module.UUID(consumer_uuid))
    claim = claims.of_consumer(req, consumer, req.document)
    with errors.saying(f"Unable to allocate inventory for consumer {consumer}: ", errors.UnknownResourceClass):
        _place(req, [claim])
    return no_content()


@endpoint(since=mv.POST_ALLOCATIONS, policy="placement:allocations:manage", body=schema.CREATE)
def create(req: Request) -> Reply:
    """Replace all allocations of each of several consumers, or of none of them."""
    with errors.saying("Unable to allocate inventory ", errors.UnknownResourceClass):
        _place(req, claims.of_consumers(req, req.document))
    return no_content()


@endpoint(policy="placement:allocations:delete")
def delete(req: Request, consumer_uuid: str) -> Reply:
    """Delete all allocations of the consumer."""
    req.write(lambda db: objects.release(db, consumer_uuid))
    return no_content()


@endpoint(policy="placement:resource_providers:allocations:list")
def of_provider(req: Request, uuid: str) -> Reply:
    """Show the allocations on the provider, by consumer."""

    def work(db: Reading) -> tuple[ResourceProvider, dict[str, HeldHere], datetime.datetime | None]:
        provider = ResourceProvider.get(db, uuid, errors.ProviderOfAllocationsNotFound)
        return provider, *allocation.of_provider(db, provider)

    provider, held, modified = req.read(work)
    document = {
        "resource_provider_generation": provider.generation,
        "allocations": {consumer: _present_here(held_here, req.version) for consumer, held_here in held.items()},
    }
    return ok(document, modified=newest([modified]))


def _place(req: Request, wanted: Sequence[objects.Claim]) -> None:
    req.write(
        lambda db: objects.place(db, wanted),
        attempts=req.conf.placement.allocation_conflict_retry_count,
        exhausted=errors.AllocationsChanged,
    )


def _present(held: Held, version: mv.Version) -> dict[str, Any]:
    document: dict[str, Any] = {
        "allocations": {
            uuid: {"resources": resources, "generation": held.provider_generations[uuid]}
            for uuid, resources in held.resources.items()
        }
    }
    if version >= mv.ALLOCATIONS_BY_PROVIDER:
        document |= {"project_id": held.project, "user_id": held.user}
    if version >= mv.CONSUMER_GENERATION:
        document["consumer_generation"] = held.consumer_generation
    if version >= mv.CONSUMER_TYPES:
        document["consumer_type"] = held.consumer_type
    return document


def _present_here(held: HeldHere, version: mv.Version) -> dict[str, Any]:
    if version >= mv.CONSUMER_GENERATION:
        return {"resources": held.resources, "consumer_generation": held.consumer_generation}
    return {"resources": held.resources}
