"""Parsing of claim bodies and refusals that several routes share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Minor version of requests without one.
NEWEST = 39
_CONFLICT = re.compile(r"consumer generation conflict - expected (null|\d+) but got (None|\d+)")
_PROVIDER_CONFLICTS = ("resource provider generation conflict", "Resource provider's generation already changed")
#: Parts of the text that refuses a claim for lack of capacity.
_CAPACITY = ("exceed the capacity", "violate inventory constraints", "' invalid.")


def named_providers(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """Return amounts by provider and class from the body of a claim, of any version."""
    allocations = document["allocations"]
    if isinstance(allocations, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in allocations}
    return {provider: entry["resources"] for provider, entry in allocations.items()}


def generation_conflict(detail: str) -> tuple[int | None, int | None] | None:
    """Return the actual and the requested generation of the consumer; None for another refusal."""
    match = _CONFLICT.search(detail)
    if match is None:
        return None
    actual, requested = match.groups()
    return None if actual == "null" else int(actual), None if requested == "None" else int(requested)


def refusal_reason(code: str, detail: str) -> str:
    """Return the reason for the refusal of a write, as in ``ConsumerRefusal`` and ``ProviderRefusal``."""
    if any(words in detail for words in _PROVIDER_CONFLICTS):
        return "generation"
    if any(words in detail for words in _CAPACITY):
        return "capacity"
    # Inventories that are in use or already exist are refused with the same code (docs: api-error-codes).
    if code == "placement.concurrent_update" and "in use" not in detail and "already exists" not in detail:
        return "collision"
    return "other"
