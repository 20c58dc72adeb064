"""Bodies of writes of allocations in each version of the API, and of contents of providers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Amounts by resource class, by the uuid of the provider.
Resources = Mapping[str, Mapping[str, int]]
#: Minor versions of PUT /allocations of each form: without the consumer's generation, and with it.
UNGUARDED, GUARDED = (0, 8, 12, 27), (28, 34, 38, 39)

#: Of providers.
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "STORAGE_DISK_SSD")


@dataclass(frozen=True, slots=True)
class Owner:
    """To whom a consumer belongs, and what it is."""

    project: str = "project"
    user: str = "user"
    type: str = "INSTANCE"


def claim(minor: int, resources: Resources, generation: int | None = None, owner: Owner = Owner()) -> dict[str, Any]:
    """Return what PUT /allocations/{uuid} sends in this version; before 1.28 without the generation."""
    if minor < 12:
        named = [{"resource_provider": {"uuid": uuid}, "resources": {**amounts}} for uuid, amounts in resources.items()]
        body: dict[str, Any] = {"allocations": named}
    else:
        body = {"allocations": {uuid: {"resources": {**amounts}} for uuid, amounts in resources.items()}}
    if minor >= 8:
        body |= {"project_id": owner.project, "user_id": owner.user}
    if minor >= 28:
        body["consumer_generation"] = generation
    if minor >= 38:
        body["consumer_type"] = owner.type
    return body


def stock(generation: int, totals: Mapping[str, int]) -> dict[str, Any]:
    """Return what PUT /resource_providers/{uuid}/inventories sends."""
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    return {"resource_provider_generation": generation, "inventories": inventories}


def some(chance: random.Random, candidates: Sequence[str]) -> list[str]:
    """Return some of these by chance: traits, or uuids of aggregates."""
    return chance.sample(candidates, chance.randint(0, len(candidates)))
