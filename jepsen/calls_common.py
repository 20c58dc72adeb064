"""What the meanings of several routes need: bodies of claims, and why a request was refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: The minor version of requests that name none.
NEWEST = 39
_CONFLICT = re.compile(r"consumer generation conflict - expected (null|\d+) but got (None|\d+)")
_PROVIDER_CONFLICTS = ("resource provider generation conflict", "Resource provider's generation already changed")
#: Words of the refusals of a claim that does not fit.
_CAPACITY = ("exceed the capacity", "violate inventory constraints", "' invalid.")


def named_providers(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """Return the amounts by class by provider in the body of a claim, of any version."""
    held = document["allocations"]
    if isinstance(held, list):
        return {entry["resource_provider"]["uuid"]: entry["resources"] for entry in held}
    return {provider: entry["resources"] for provider, entry in held.items()}


def generation_conflict(detail: str) -> tuple[int | None, int | None] | None:
    """Return the generation that the consumer has and the one of the request; None for another refusal."""
    match = _CONFLICT.search(detail)
    if match is None:
        return None
    actual, given = match.groups()
    return None if actual == "null" else int(actual), None if given == "None" else int(given)


def why_refused(code: str, detail: str) -> str:
    """Return why a write was refused, as in ``ConsumerRefused`` and ``ProviderRefused``."""
    if any(words in detail for words in _PROVIDER_CONFLICTS):
        return "generation"
    if any(words in detail for words in _CAPACITY):
        return "capacity"
    # The code of a collision is also that of inventories that are in use or present already (docs: api-error-codes).
    if code == "placement.concurrent_update" and "in use" not in detail and "already exists" not in detail:
        return "collision"
    return "other"
