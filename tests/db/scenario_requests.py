"""Requests of the Placement API for scenarios (tests/db/scenarios.py), and common preconditions."""

from __future__ import annotations

from typing import Any

from tests.db.scenarios import Call


def provider(name: str, parent: str | None = None) -> Call:
    body: dict[str, Any] = {"uuid": f"${name}", "name": f"${name}"}
    return Call("POST /resource_providers", body | ({"parent_provider_uuid": f"${parent}"} if parent else {}))


def inventories(generation: int, **totals: int) -> dict[str, Any]:
    records = {name.replace("RUN", "$RUN"): {"total": total} for name, total in totals.items()}
    return {"resource_provider_generation": generation, "inventories": records}


def stock(name: str, generation: int = 0, **totals: int) -> Call:
    return Call(f"PUT /resource_providers/${name}/inventories", inventories(generation, **totals))


def traits(name: str, generation: int, *names: str) -> Call:
    body = {"resource_provider_generation": generation, "traits": [*names]}
    return Call(f"PUT /resource_providers/${name}/traits", body)


def aggregates(name: str, generation: int, *names: str) -> Call:
    body = {"resource_provider_generation": generation, "aggregates": [*names]}
    return Call(f"PUT /resource_providers/${name}/aggregates", body)


def holding(generation: int | None, **resources: dict[str, int]) -> dict[str, Any]:
    """Return the body of a claim: amounts by provider, and the consumer's generation."""
    return {
        "allocations": {f"${name}": {"resources": amounts} for name, amounts in resources.items()},
        "project_id": "$RUN",
        "user_id": "$RUN",
        "consumer_generation": generation,
        "consumer_type": "T_$RUN",
    }


def claim(generation: int | None = None, consumer: str = "consumer", **resources: dict[str, int]) -> Call:
    return Call(f"PUT /allocations/${consumer}", holding(generation, **resources))


RESOURCE_CLASS = Call("PUT /resource_classes/CUSTOM_C_$RUN")
TRAIT = Call("PUT /traits/CUSTOM_T_$RUN")
HOST = (provider("host"), stock("host", VCPU=8, MEMORY_MB=1024, DISK_GB=100))
OTHER = (provider("other"), stock("other", VCPU=8))
TREE = (provider("top"), provider("middle", "top"), provider("leaf", "middle"), provider("elsewhere"))
CLAIMED = (*HOST, *OTHER, claim(host={"VCPU": 1, "MEMORY_MB": 64}))
OLD_CLAIM = Call(
    "PUT /allocations/$consumer_before",
    {"allocations": [{"resource_provider": {"uuid": "$host"}, "resources": {"VCPU": 1}}]},
    0,
)
FULL = (*HOST, claim(consumer="consumer_before", host={"VCPU": 8}))
