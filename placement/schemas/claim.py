"""Conversion of the bodies of PUT and POST /allocations and of the reshaper to claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from placement import errors
from placement.objects.claims.claim import ANY_GENERATION, Claim
from placement.objects.consumer import Owner


class ClaimOptions(Protocol):
    """The options of the group ``placement`` that apply to claims."""

    max_allocations_per_request: int
    #: The owner of a consumer if the body names none, as in old versions.
    incomplete_consumer_project_id: str
    incomplete_consumer_user_id: str


def claims(bodies: Mapping[str, Any], options: ClaimOptions) -> list[Claim]:
    """Return the claims of a request.

    Args:
        bodies: Valid bodies of any version, by consumer uuid.

    Raises:
        TooManyAllocations: The request writes more allocations than the limit.
    """
    resources = {consumer: _resources(body["allocations"]) for consumer, body in bodies.items()}
    # Ending a consumer takes as much work as writing one allocation.
    count = sum(sum(map(len, amounts.values())) or 1 for amounts in resources.values())
    limit = options.max_allocations_per_request
    if count > limit:
        raise errors.TooManyAllocations(count=count, limit=limit)
    return [_claim(consumer, resources[consumer], body, options) for consumer, body in bodies.items()]


def provider_uuids(bodies: Mapping[str, Any]) -> set[str]:
    """Return the uuids of the providers in these bodies, whether they exist or not."""
    return {uuid for body in bodies.values() for uuid in _resources(body["allocations"])}


def _claim(
    consumer: str, resources: Mapping[str, Mapping[str, int]], body: Mapping[str, Any], options: ClaimOptions
) -> Claim:
    owner = Owner(
        body.get("project_id") or options.incomplete_consumer_project_id,
        body.get("user_id") or options.incomplete_consumer_user_id,
        body.get("consumer_type"),
    )
    return Claim(consumer, resources, owner, body.get("consumer_generation", ANY_GENERATION))


def _resources(allocations: Any) -> dict[str, dict[str, int]]:
    """Return amounts by provider uuid and class, from an object by provider or from the list of older versions."""
    if isinstance(allocations, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in allocations}
    return {uuid: entry["resources"] for uuid, entry in allocations.items()}
