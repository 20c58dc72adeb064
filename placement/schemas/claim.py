"""From the bodies of allocation writes to claims: what PUT, POST and the reshaper have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from placement import errors
from placement.objects.claims.claim import ANY_GENERATION, Claim
from placement.objects.consumer import Owner


class ClaimOptions(Protocol):
    """The options that apply; the group ``placement`` of the configuration has them."""

    max_allocations_per_request: int
    #: The owner of a consumer for which a body of an old version names none.
    incomplete_consumer_project_id: str
    incomplete_consumer_user_id: str


def claims(bodies: Mapping[str, Any], options: ClaimOptions) -> list[Claim]:
    """The claims of a request.

    Args:
        bodies: What each consumer is to hold, by consumer uuid, valid by the schema of allocations in any version.

    Raises:
        TooManyAllocations: The request writes more allocations than the limit.
    """
    resources = {consumer: _resources(body["allocations"]) for consumer, body in bodies.items()}
    # Ending a consumer takes as much work as one allocation.
    count = sum(sum(map(len, held.values())) or 1 for held in resources.values())
    most = options.max_allocations_per_request
    if count > most:
        raise errors.TooManyAllocations(count=count, most=most)
    return [_claim(consumer, resources[consumer], body, options) for consumer, body in bodies.items()]


def providers_named(bodies: Mapping[str, Any]) -> set[str]:
    """The uuids of the providers in these bodies, whether they exist or not."""
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
    """Amounts by provider uuid and class, from an object by provider or from the list that older versions send."""
    if isinstance(allocations, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in allocations}
    return {uuid: entry["resources"] for uuid, entry in allocations.items()}
