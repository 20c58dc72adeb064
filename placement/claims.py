"""From the body of an allocation write to claims: what PUT, POST and the reshaper have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement import errors
from placement.http.request import Request
from placement.objects.claim import UNCHECKED, Claim
from placement.objects.consumer import Owner


def of_consumer(req: Request, consumer: str, body: Mapping[str, Any]) -> Claim:
    """What ``body`` says that the consumer is to hold from now on; raises TooManyAllocations."""
    return of_consumers(req, {consumer: body})[0]


def of_consumers(req: Request, bodies: Mapping[str, Any]) -> list[Claim]:
    """``of_consumer`` for several consumers."""
    resources = {consumer: _resources(body["allocations"]) for consumer, body in bodies.items()}
    count = sum(_written(held) for held in resources.values())
    most = req.conf.placement.max_allocations_per_request
    if count > most:
        raise errors.TooManyAllocations(count=count, most=most)
    return [_claim(req, consumer, resources[consumer], body) for consumer, body in bodies.items()]


def _claim(req: Request, consumer: str, resources: dict[str, dict[str, int]], body: Mapping[str, Any]) -> Claim:
    return Claim(
        consumer=consumer,
        resources=resources,
        owner=Owner(
            body.get("project_id") or req.conf.placement.incomplete_consumer_project_id,
            body.get("user_id") or req.conf.placement.incomplete_consumer_user_id,
            body.get("consumer_type"),
        ),
        generation=body.get("consumer_generation", UNCHECKED),
    )


def _written(resources: Mapping[str, Mapping[str, int]]) -> int:
    """How many allocations; ending all that a consumer holds is work like one."""
    return sum(len(amounts) for amounts in resources.values()) or 1


def _resources(allocations: Any) -> dict[str, dict[str, int]]:
    """Provider uuid -> class -> amount, of an object by provider or of the list that older versions send."""
    if isinstance(allocations, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in allocations}
    return {uuid: entry["resources"] for uuid, entry in allocations.items()}
