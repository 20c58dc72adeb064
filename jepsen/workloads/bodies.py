"""Request bodies for writes of allocations in each version of the API, and of provider contents."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Amounts by provider uuid and resource class.
Resources = Mapping[str, Mapping[str, int]]
#: Minor versions of PUT /allocations without and with the consumer's generation.
UNGUARDED, GUARDED = (0, 8, 12, 27), (28, 34, 38, 39)

#: Traits of providers.
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_SSE", "STORAGE_DISK_SSD")


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner and type of a consumer."""

    project: str = "project"
    user: str = "user"
    type: str = "INSTANCE"


def claim(minor: int, resources: Resources, generation: int | None = None, owner: Owner = Owner()) -> dict[str, Any]:
    """Return the body of PUT /allocations/{uuid} in this version; before 1.28 without the generation."""
    if minor < 12:
        allocations = [
            {"resource_provider": {"uuid": uuid}, "resources": {**amounts}} for uuid, amounts in resources.items()
        ]
        body: dict[str, Any] = {"allocations": allocations}
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
    """Return the body of PUT /resource_providers/{uuid}/inventories."""
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    return {"resource_provider_generation": generation, "inventories": inventories}


def sample(rng: random.Random, candidates: Sequence[str]) -> list[str]:
    """Return a random sample of random size, of traits or aggregate uuids."""
    return rng.sample(candidates, rng.randint(0, len(candidates)))
