"""Documents of the v1 API, assembled from requests to the Placement API for comparison with the overview."""

from __future__ import annotations

from typing import Any

from tests.caller import Caller

_PROVIDERS = "/resource_providers"
_SIZES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def get(call: Caller, path: str) -> Any:
    """Return the body of the response to a GET in the newest version."""
    answer = call("GET", path)
    assert answer.status == 200, (path, answer)
    return answer.body


def pages(call: Caller, path: str, name: str) -> list[Any]:
    """Return the items of all pages of a list."""
    items = []
    while path:
        body = get(call, path)
        items += body[name]
        path = (body["next"] or "").removeprefix("http://placement")
    return items


def providers(call: Caller) -> dict[str, dict[str, Any]]:
    """Return the documents of all providers, by uuid."""
    providers_by_uuid = {provider["uuid"]: provider for provider in get(call, _PROVIDERS)["resource_providers"]}
    return {uuid: _provider(call, providers_by_uuid, uuid) for uuid in providers_by_uuid}


def _provider(call: Caller, providers_by_uuid: dict[str, Any], uuid: str) -> dict[str, Any]:
    path, provider = f"{_PROVIDERS}/{uuid}", providers_by_uuid[uuid]

    def reference(other: str | None) -> dict[str, Any] | None:
        return other and {"uuid": other, "name": providers_by_uuid[other]["name"]}

    return {
        "uuid": uuid,
        "name": provider["name"],
        "parent": reference(provider["parent_provider_uuid"]),
        "root": reference(provider["root_provider_uuid"]),
        "generation": provider["generation"],
        "traits": sorted(get(call, f"{path}/traits")["traits"]),
        "aggregates": sorted(get(call, f"{path}/aggregates")["aggregates"]),
        "consumers": len(get(call, f"{path}/allocations")["allocations"]),
        "inventories": _inventories(get(call, f"{path}/inventories"), get(call, f"{path}/usages")),
    }


def _inventories(inventories: Any, usages: Any) -> dict[str, Any]:
    records = {}
    for name, inventory in inventories["inventories"].items():
        capacity = int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"])
        used = usages["usages"][name]
        sizes = {size: inventory[size] for size in _SIZES}
        records[name] = {**sizes, "capacity": capacity, "used": used, "free": max(capacity - used, 0)}
    return records


def consumers(call: Caller) -> dict[str, dict[str, Any]]:
    """Return the documents of all consumers without their dates, by uuid."""
    names = {provider["uuid"]: provider["name"] for provider in get(call, _PROVIDERS)["resource_providers"]}
    uuids = {uuid for provider in names for uuid in get(call, f"{_PROVIDERS}/{provider}/allocations")["allocations"]}
    return {uuid: _consumer(uuid, get(call, f"/allocations/{uuid}"), names) for uuid in uuids}


def _consumer(uuid: str, body: Any, names: dict[str, str]) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "type": body["consumer_type"],
        "project": body["project_id"],
        "user": body["user_id"],
        "generation": body["consumer_generation"],
        "expires_at": None,  # a claim of a Placement client has no expiry
        "allocations": {
            provider: {"name": names[provider], "resources": allocation["resources"]}
            for provider, allocation in body["allocations"].items()
        },
    }
