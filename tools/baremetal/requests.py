"""Random requests of allocations, and helpers for all random requests; most of them refer to objects of the run."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from tools.baremetal.servers import Request
from tools.baremetal.world import PROJECTS, TRAITS, World

Maker = Callable[[World], Request]
MAKERS: dict[Maker, int] = {}

#: Fields of the documents that both services support.
ALLOCATION_FIELDS = (
    *("uuid", "name", "node_uuid", "state", "last_error", "owner", "resource_class", "traits", "candidate_nodes"),
    *("extra", "created_at", "updated_at", "links"),
)
NODE_FIELDS = (
    *("uuid", "name", "driver", "resource_class", "traits", "owner", "lessee", "description", "properties", "extra"),
    *("driver_info", "instance_info", "instance_uuid", "allocation_uuid", "maintenance", "maintenance_reason", "fault"),
    *("power_state", "target_power_state", "provision_state", "target_provision_state", "provision_updated_at"),
    *("last_error", "reservation", "protected", "retired", "created_at", "updated_at", "links", "parent_node"),
)
TARGETS = {
    "enroll": ("manage",),
    "manageable": ("provide", "provide", "clean", "inspect"),
    "available": ("active", "active", "deploy", "manage"),
    "active": ("deleted", "undeploy", "deleted", "rebuild"),
}


def weight(number: int) -> Callable[[Maker], Maker]:
    """Register a function that returns requests, chosen with a probability proportional to ``number``."""

    def register(maker: Maker) -> Maker:
        MAKERS[maker] = number
        return maker

    return register


def random_request(world: World) -> Request:
    """Return the next request of a run."""
    (maker,) = world.random.choices(list(MAKERS), list(MAKERS.values()))
    return maker(world)


def first_requests(world: World) -> list[Request]:
    """Return valid requests that create some nodes; most of them can be allocated."""
    requests = []
    for _ in range(world.random.randint(2, 5)):
        node, name = world.uuid(), world.new_name("n")
        body = {"driver": "fake-hardware", "uuid": node, "name": name}
        requests.append(
            Request("POST", "/v1/nodes", body | {"resource_class": world.choose(world.classes[:3])}, makes=node)
        )
        # Without authentication, the original refuses an owner in the POST.
        projects = {key: world.choose(PROJECTS) for key in ("owner", "lessee") if world.chance(0.3)}
        changes = [{"op": "add", "path": f"/{key}", "value": value} for key, value in projects.items()]
        requests += [Request("PATCH", f"/v1/nodes/{node}", changes)] if changes else []
        traits = world.sample(TRAITS, 3)
        requests += [Request("PUT", f"/v1/nodes/{node}/traits", {"traits": traits})] if traits else []
        if world.chance(0.9):
            targets = ["manage", "provide"] + (["active"] if world.chance(0.2) else [])
            requests += [Request("PUT", f"/v1/nodes/{node}/states/provision", {"target": target}) for target in targets]
            requests += [Request("PUT", f"/v1/nodes/{node}/states/power", {"target": "power on"})]
    return requests


def path(base: str, *query: tuple[str, Any]) -> str:
    return f"{base}?{urllib.parse.urlencode(query, safe='$,')}" if query else base


def fields(world: World, supported: tuple[str, ...]) -> tuple[str, str]:
    names = world.sample(supported, 5) or ["uuid"]
    if world.chance(0.06):
        names.append(world.random.choice(["", "bogus", "id", "node_id", "uuid "]))
    return "fields", ",".join(names)


def paging(world: World, markers: list[str], keys: Sequence[str], bad: Sequence[str]) -> list[tuple[str, Any]]:
    """Return random parameters of paging and sorting."""
    query: list[tuple[str, Any]] = []
    if world.chance(0.3):
        query.append(("limit", world.choose([1, 2, 3, 5], [0, -1, "x", "", 1001, 1.5], 0.1)))
    if world.chance(0.2):
        query.append(("marker", world.choose(markers or [world.uuid()], [world.uuid(), "nope", ""], 0.1)))
    if world.chance(0.25):
        query.append(("sort_key", world.choose(keys, bad, 0.12)))
    if world.chance(0.25):
        query.append(("sort_dir", world.choose(["asc", "desc"], ["up", ""], 0.1)))
    return query


def odd_arguments(world: World, query: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the parameters in random order, rarely with an unknown or a repeated one."""
    if world.chance(0.02):
        query = [*query, ("bogus", 1)]
    if query and world.chance(0.03):
        query = [*query, world.random.choice(query)]
    return world.random.sample(query, len(query))


def changes(world: World, values: dict[str, Callable[[], Any]], readonly: tuple[str, ...]) -> Any:
    """Return the body of a PATCH."""
    if world.chance(0.03):
        return world.random.choice([[], {}, "[", None, [{}], [5], [{"op": "add"}], [{"op": "test", "path": "/name"}]])
    return [_change(world, values, readonly) for _ in range(world.random.choice([1, 1, 1, 2]))]


def _change(world: World, values: dict[str, Callable[[], Any]], readonly: tuple[str, ...]) -> dict[str, Any]:
    place = world.random.choice(list(values)) if world.chance(0.94) else f"/{world.random.choice(readonly)}"
    operation = world.choose(
        ["add", "add", "replace", "replace", "remove"], ["test", "move", "copy", "nope", None], 0.02
    )
    change = {"op": operation, "path": place}
    if operation != "remove":
        change["value"] = values[place]() if place in values else world.uuid()
    return change


# --------------------------------------------------------------------------------------------------------- allocations


@weight(22)
def allocate(world: World) -> Request:
    makes = body_uuid = None
    body: dict[str, Any] = {}
    if world.chance(0.95):
        body["resource_class"] = world.resource_class()
    if world.chance(0.3):
        body["traits"] = world.traits()
    if world.chance(0.25):
        body["candidate_nodes"] = [world.node() for _ in range(world.random.randint(0, 3))]
    if world.chance(0.6):
        body["name"] = world.name("a")
    if world.chance(0.6):
        existing = [uuid for uuid, _ in world.allocations] + world.instances
        body_uuid = body["uuid"] = world.choose([world.uuid()], existing, 0.08)
    if world.chance(0.15):
        body["extra"] = world.extra()
    since = 52
    if world.chance(0.2):
        body["owner"], since = world.owner(), 60
    if world.chance(0.03):
        body[world.random.choice(["state", "node_uuid", "last_error", "bogus", "links"])] = None
    if body and world.chance(0.03):
        name = world.random.choice(sorted(body.keys() - {"uuid", "name"}) or ["traits"])
        body[name] = world.random.choice([None, 5, [], {}, "x", [None]])
    makes = body_uuid or world.symbol("a")
    return world.request(
        "POST", world.choose(["/v1/allocations"], ["/v1/allocations/", "/allocations"]), body, since, makes=makes
    )


@weight(5)
def backfill(world: World) -> Request:
    body: dict[str, Any] = {"node": world.node()}
    document = world.ask(
        path("/v1/nodes", ("provision_state", "active"), ("fields", "uuid,resource_class,traits,instance_uuid"))
    )
    active = document["nodes"] if document else []
    if active and world.chance(0.9):
        node = world.random.choice(active)
        body["node"] = node["uuid"]
        if world.chance(0.4):
            body["resource_class"] = world.choose([node["resource_class"]], [world.resource_class()], 0.2)
        if world.chance(0.3):
            body["traits"] = world.choose([node["traits"][:1]], [world.traits()], 0.3)
        if node["instance_uuid"] and world.chance(0.4):
            body["uuid"] = node["instance_uuid"]
    if world.chance(0.2):
        body["candidate_nodes"] = [body["node"] if world.chance(0.6) else world.node()]
    if world.chance(0.4):
        body["name"] = world.name("a")
    if world.chance(0.3):
        body.setdefault("uuid", world.uuid())
    if world.chance(0.1):
        body["owner"] = world.owner()
    return world.request("POST", "/v1/allocations", body, 58, makes=body.get("uuid") or world.symbol("a"))


@weight(9)
def list_allocations(world: World) -> Request:
    query: list[tuple[str, Any]] = []
    since = 52
    if world.chance(0.25):
        query.append(("node", world.node()))
    if world.chance(0.25):
        query.append(("resource_class", world.resource_class()))
    if world.chance(0.25):
        query.append(("state", world.choose(["active", "error", "allocating"], ["nope", ""])))
    if world.chance(0.15):
        query.append(("owner", world.choose(["p-one", "p-two"], ["", "nobody"])))
        since = 60
    if world.chance(0.35):
        query.append(fields(world, ALLOCATION_FIELDS))
    keys = ("name", "created_at", "state", "resource_class", "owner", "id", "last_error")
    bad = ("extra", "traits", "candidate_nodes", "node_uuid", "bogus", "links", "")
    query += paging(world, [uuid for uuid, _ in world.allocations], keys, bad)
    if world.chance(0.01):
        query.append(("detail", "True"))
    base = world.choose(["/v1/allocations"], ["/v1/allocations/", "/allocations", "/v1/allocations.json"], 0.06)
    return world.request("GET", path(base, *odd_arguments(world, query)), None, since)


@weight(6)
def show_allocation(world: World) -> Request:
    query = [fields(world, ALLOCATION_FIELDS)] if world.chance(0.3) else []
    base = f"/v1/allocations/{urllib.parse.quote(world.allocation(), safe='$')}" + world.choose(
        [""], ["/", ".json"], 0.08
    )
    return world.request("GET", path(base, *odd_arguments(world, list(query))), None, 52)


@weight(6)
def change_allocation(world: World) -> Request:
    values: dict[str, Callable[[], Any]] = {
        "/name": lambda: world.name("a"),
        "/extra": world.extra,
        "/extra/a": lambda: world.choose([1, "x", True, None, {"l": [1]}], [[], 1.5]),
        "/extra/x~1y": lambda: "z",
        "/extra/new": lambda: world.random.randint(0, 5),
    }
    body = changes(world, values, ("owner", "state", "traits", "uuid", "bogus", "node_uuid", "candidate_nodes"))
    return world.request("PATCH", f"/v1/allocations/{urllib.parse.quote(world.allocation(), safe='$')}", body, 57)


@weight(8)
def delete_allocation(world: World) -> Request:
    return world.request("DELETE", f"/v1/allocations/{urllib.parse.quote(world.allocation(), safe='$')}", None, 52)


@weight(6)
def allocation_of_node(world: World) -> Request:
    method = world.choose(["GET", "GET", "DELETE"], ["POST", "PUT", "PATCH"], 0.05)
    query = [fields(world, ALLOCATION_FIELDS)] if method == "GET" and world.chance(0.2) else []
    node = world.node()
    if world.chance(0.7):
        document = world.ask("/v1/allocations?state=active&fields=node_uuid")
        allocated = {allocation["node_uuid"] for allocation in document["allocations"]} if document else set()
        allocated_nodes = [node.uuid for node in world.nodes if node.uuid in allocated]
        node = world.random.choice(allocated_nodes) if allocated_nodes else node
    base = f"/v1/nodes/{urllib.parse.quote(node, safe='$')}/allocation"
    return world.request(method, path(base, *query), {} if method in ("POST", "PUT", "PATCH") else None, 52)
