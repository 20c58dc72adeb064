"""Random requests of nodes, their states and traits, and of the version documents."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import Any

from tools.baremetal.requests import NODE_FIELDS, TARGETS, changes, fields, odd_arguments, paging, path, weight
from tools.baremetal.servers import SYMBOL, Request
from tools.baremetal.world import BAD_TRAITS, TRAITS, World


def node_path(world: World, suffix: str = "") -> str:
    return f"/v1/nodes/{urllib.parse.quote(world.node(), safe='$')}{suffix}"


@weight(4)
def create_node(world: World) -> Request:
    names = [node.uuid for node in world.nodes] or [world.uuid()]
    properties: tuple[tuple[str, float, Callable[[], Any]], ...] = (
        ("driver", 0.98, lambda: world.choose(["fake-hardware"], ["nope", "", None, 5], 0.05)),
        ("name", 0.7, lambda: world.choose([world.name("n")], ["detail", "states", "validate"])),
        ("resource_class", 0.9, world.resource_class),
        ("uuid", 0.5, lambda: world.choose([world.uuid()], names, 0.1)),
        ("owner", 0.1, lambda: None),  # without authentication, the original refuses other values
        ("lessee", 0.2, world.owner),
        ("extra", 0.2, world.extra),
        ("properties", 0.2, lambda: world.choose([{"cpus": 4}, {"a": {"b": 1}}], [None, [], "x"], 0.1)),
        ("description", 0.1, lambda: world.choose(["rack 7", None], ["x" * 4097, 5], 0.1)),
        (world.choose(["driver_info", "instance_info"]), 0.05, lambda: {"a": 1}),
        (
            world.choose(["provision_state", "bogus", "traits", "power_state", "reservation", "links"]),
            0.05,
            lambda: "x",
        ),
    )
    body = {name: value() for name, share, value in properties if world.chance(share)}
    return world.request("POST", "/v1/nodes", body, 21, makes=body.get("uuid") or world.symbol("n"))


def sort_keys(world: World) -> list[str]:
    keys = ["name", "created_at", "provision_state", "resource_class", "owner", "id", "power_state", "maintenance"]
    # Each service generates its own uuids, which sort differently.
    generated = any(SYMBOL.fullmatch(node.uuid) for node in world.nodes)
    return keys if generated else [*keys, "uuid"]


@weight(7)
def list_nodes(world: World) -> Request:
    query: list[tuple[str, Any]] = []
    flags = (["True", "False", "true", "0"], ["maybe", ""])
    if world.chance(0.2):
        query.append(("associated", world.choose(*flags)))
    if world.chance(0.2):
        query.append(("maintenance", world.choose(*flags)))
    if world.chance(0.2):
        query.append(
            ("provision_state", world.choose(["available", "active", "enroll", "manageable"], ["nope", ""], 0.1))
        )
    if world.chance(0.2):
        query.append(("resource_class", world.resource_class()))
    if world.chance(0.1):
        query.append((world.random.choice(["owner", "lessee"]), world.choose(["p-one", "p-two"], [""])))
    if world.chance(0.05):
        query.append(("driver", world.choose(["fake-hardware"], ["nope"], 0.3)))
    if world.chance(0.08):
        query.append(("instance_uuid", world.instance()))
    markers = [node.uuid for node in world.nodes]
    query += paging(world, markers, sort_keys(world), ("extra", "traits", "bogus", "links", "properties"))
    form = world.random.random()
    if form < 0.3:
        query.append(fields(world, NODE_FIELDS))
    elif form < 0.36:
        query.append(("detail", world.choose(["True", "False"], ["x"])))
    base = "/v1/nodes/detail" if form > 0.85 else world.choose(["/v1/nodes"], ["/v1/nodes/", "/nodes"], 0.1)
    return world.request("GET", path(base, *odd_arguments(world, query)), None, 43)


@weight(7)
def show_node(world: World) -> Request:
    query = [fields(world, NODE_FIELDS)] if world.chance(0.4) else []
    base = node_path(world, world.choose([""], ["/", ".json"], 0.08))
    return world.request("GET", path(base, *odd_arguments(world, list(query))), None, 5)


@weight(9)
def change_node(world: World) -> Request:
    values = {
        "/name": lambda: world.name("n"),
        "/resource_class": world.resource_class,
        "/owner": world.owner,
        "/lessee": world.owner,
        "/description": lambda: "rack 8",  # the original responds to null with 500
        "/extra/a": lambda: world.choose([1, "x", {"b": 2}, None]),
        "/properties/cpus": lambda: world.random.randint(1, 64),
        "/driver_info/a": lambda: "b",
        "/instance_info/a": lambda: "b",
        "/instance_uuid": world.instance,
        "/maintenance": lambda: world.choose([True, False], ["x", None]),
    }
    body = changes(world, values, ("provision_state", "traits", "allocation_uuid", "power_state", "links", "bogus"))
    if isinstance(body, list) and {"op": "remove", "path": "/maintenance"} in body:
        body = []  # the original responds with 500
    if world.chance(0.2):
        operation = world.random.choice(["add", "remove", "replace"])
        body = [
            {"op": operation, "path": "/instance_uuid"} | ({} if operation == "remove" else {"value": world.instance()})
        ]
    return world.request("PATCH", node_path(world), body, 65)


@weight(3)
def delete_node(world: World) -> Request:
    return world.request("DELETE", node_path(world), None, 5)


@weight(8)
def traits(world: World) -> Request:
    form = world.random.random()
    if form < 0.25:
        return world.request("GET", node_path(world, "/traits"), None, 37)
    if form < 0.5:
        body: Any = {"traits": world.traits(3)}
        if world.chance(0.05):
            body = world.random.choice([{}, [], {"traits": None}, {"traits": [], "bogus": 1}, None])
        return world.request("PUT", node_path(world, "/traits"), body, 37)
    trait = world.choose(TRAITS, [bad for bad in BAD_TRAITS if isinstance(bad, str) and bad], 0.06)
    trait_path = node_path(world, f"/traits/{urllib.parse.quote(trait)}")
    if form < 0.75:
        return world.request("PUT", trait_path, world.choose([None, {}], [{"traits": ["CUSTOM_BIG"]}]), 37)
    return world.request("DELETE", node_path(world, "/traits") if form > 0.95 else trait_path, None, 37)


@weight(5)
def maintenance(world: World) -> Request:
    if world.chance(0.5):
        return world.request("DELETE", node_path(world, "/maintenance"), None, 5)
    body = world.choose([{}, None, {"reason": "broken"}, {"reason": None}], [{"reason": 5}, {"bogus": 1}], 0.06)
    return world.request("PUT", node_path(world, "/maintenance"), body, 5)


@weight(9)
def provision(world: World) -> Request:
    node = world.node()
    document = world.ask(f"/v1/nodes/{node}?fields=provision_state") if " " not in node else None
    targets = [target for target in TARGETS.get((document or {}).get("provision_state"), ()) if target in SUPPORTED]
    verbs = ["manage", "provide", "active", "deleted", "undeploy", "nope", "", None, 5]
    body: Any = {"target": world.choose(targets or verbs, verbs, 0.12)}
    if world.chance(0.03):
        body = world.random.choice([{}, [], None, {"target": "manage", "bogus": 1}])
    path_to_state = f"/v1/nodes/{urllib.parse.quote(node, safe='$')}/states/provision"
    request = world.request("PUT", path_to_state, body, 73)
    # Below 1.4 only the original refuses some verbs, which would leave the nodes in different states.
    return request if request.version is None or request.version >= 4 else Request("PUT", path_to_state, body)


#: The targets of the small state machine.
SUPPORTED = frozenset({"manage", "provide", "active", "deploy", "deleted", "undeploy"})


@weight(4)
def power(world: World) -> Request:
    targets = ["power on", "power off", "rebooting", "power on", "soft power off", "soft rebooting"]
    body: Any = {"target": world.choose(targets, ["nope", "", None, "on"], 0.06)}
    if world.chance(0.03):
        body = world.random.choice(
            [{}, [], None, {"target": "power on", "timeout": 5}, {"target": "power on", "timeout": 0}]
        )
    return world.request("PUT", node_path(world, "/states/power"), body, 27)


@weight(4)
def other_views(world: World) -> Request:
    paths = [node_path(world, "/states"), node_path(world, "/validate"), "/v1/drivers", "/", "/v1", "/v1/"]
    return world.request("GET", world.random.choice([*paths, "/v1/drivers/fake-hardware", "/v1/drivers/nope"]))


@weight(4)
def odd_requests(world: World) -> Request:
    """Return a request with a method, path or body that the API does not define."""
    method = world.random.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"])
    paths = [
        "/v1/allocations",
        f"/v1/allocations/{world.allocation()}",
        f"/v1/allocations/{world.uuid()}/x",
        "/v1/nodes",
    ]
    paths += [
        node_path(world, suffix) for suffix in ("", "/nope", "/states", "/traits", "/allocation/x", "/traits/x/y")
    ]
    paths += ["/", "/v1", "/v2", "/nope", "/v1/nope", "/v1/drivers", "/v1/v1/nodes"]
    target = world.random.choice(paths).replace(" ", "%20")
    if method == "DELETE":  # must not delete anything
        target = f"{target}/nope/nope"
    bodies = ["{", "", "null", "[]", '"x"', "5", '{"bogus": 1}']
    return world.request(
        method, target, world.random.choice(bodies) if method in ("POST", "PUT", "PATCH") else None, 60
    )
