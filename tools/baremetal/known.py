"""The intentional differences between the services, by title of their section in docs/divergences.rst."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tools.baremetal.replies import Comparable, error_text
from tools.baremetal.servers import Request

Overlook = Callable[[Request, Comparable, Comparable], None]


@dataclass(frozen=True)
class Divergence:
    title: str
    overlook: Overlook


DIVERGENCES: list[Divergence] = []


def divergence(title: str) -> Callable[[Overlook], Overlook]:
    """Register a function that removes an intentional difference from two responses."""

    def register(overlook: Overlook) -> Overlook:
        DIVERGENCES.append(Divergence(title, overlook))
        return overlook

    return register


def _equalize(a: Comparable, b: Comparable) -> None:
    """Make the responses equal."""
    b.clear()
    b.update(a)


@divergence("Errors of the original (500)")
def _(_request: Request, a: Comparable, b: Comparable) -> None:
    if a["status"] == 500 and 400 <= b["status"] < 500 and error_text(b) is not None:
        _equalize(a, b)


@divergence("A list of allocations by node and class or owner")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    parameters = {name for name, _ in request.query}
    if a["status"] == 500 and "node" in parameters and parameters & {"resource_class", "owner"} and _is_list(b):
        _equalize(a, b)


@divergence("``next`` repeats the filters")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if not (_is_list(a) and _is_list(b) and "next" in a["body"] and "next" in b["body"]):
        return
    filters = {name for name, _ in request.query} - {"limit", "marker", "sort_key", "sort_dir", "fields"}
    place, _, query = b["body"]["next"].partition("?")
    without_filters = [(name, value) for name, value in urllib.parse.parse_qsl(query, True) if name not in filters]
    place_a, _, query_a = a["body"]["next"].partition("?")
    original = urllib.parse.parse_qsl(query_a, True)
    if request.route[0] == "nodes" and "fields" not in dict(request.query):
        original = [(name, value) for name, value in original if name != "fields"]  # the fields of the short form
    if place == place_a and sorted(without_filters) == sorted(original):
        b["body"]["next"] = a["body"]["next"]


#: Keys of a node that require hardware or an agent on it, with the value that this service shows.
HARDWARE = {"driver_internal_info": {}, "conductor": None, "reservation": None} | {
    f"{name}_interface": None
    for name in (
        *("bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid"),
        *("rescue", "storage", "vendor"),
    )
}


@divergence("Keys of a node that need hardware")
def _(_request: Request, a: Comparable, b: Comparable) -> None:
    for of_a, of_b in zip(documents(a), documents(b), strict=False):
        for name, value in HARDWARE.items():
            if name in of_a and of_b.get(name, ...) == value:
                of_b[name] = of_a[name]


@divergence("``updated_at`` of a node")
def _(_request: Request, a: Comparable, b: Comparable) -> None:
    for of_a, of_b in zip(documents(a), documents(b), strict=False):
        if of_a.get("updated_at") == "<date>" and of_b.get("updated_at", ...) is None and "driver" in of_a:
            of_b["updated_at"] = "<date>"


@divergence("HEAD")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if request.method == "HEAD" and b["status"] in (404, 405, 406):
        _equalize(a, b)


#: The routes of this service.
ROUTES = (
    r"",
    r"drivers",
    r"allocations(/[^/]+)?",
    r"nodes(/[^/]+)?",
    r"nodes/[^/]+/(allocation|maintenance|states|traits|validate)",
    r"nodes/[^/]+/(states/(power|provision)|traits/[^/]+)",
)


@divergence("Nodes, allocations and drivers only")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    route = "/".join(request.route)
    if (
        b["status"] in (404, 405)
        and _is_routing_error(b)
        and not any(re.fullmatch(pattern, route) for pattern in ROUTES)
    ):
        _equalize(a, b)
    for of_a, of_b in zip(documents(a), documents(b), strict=False):
        for name in of_a.keys() - of_b.keys():
            if _are_links(of_a[name]):
                del of_a[name]


def _is_routing_error(reply: Comparable) -> bool:
    """Return whether the response reports an error of the routing or of the version."""
    body = reply["body"]
    return isinstance(body, dict) and isinstance(body.get("error_message"), dict) and "code" in body["error_message"]


@divergence("Version headers")
def _(_request: Request, a: Comparable, b: Comparable) -> None:
    names = [name for name in a["headers"] if name.startswith("x-openstack-ironic-api")]
    if a["status"] in (404, 405) and not any(a["headers"][name] for name in names):
        for name in names:
            b["headers"][name] = None


@divergence("A version that does not exist, at ``/``")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if not request.route and a["status"] == b["status"] == 406 and _is_routing_error(b):
        b["body"] = a["body"]


@divergence("The form of the error for an impossible name of a node")
def _(_request: Request, a: Comparable, b: Comparable) -> None:
    if a["status"] == 400 and _is_routing_error(a) and b["status"] in (400, 404, 405):
        _equalize(a, b)


@divergence("``fields`` with commas and repeated")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    values = [value for name, value in request.query if name == "fields"]
    if len(values) > 1 and any("," in value for value in values) and a["status"] == 400 and b["status"] == 200:
        _equalize(a, b)


@divergence("``fields`` of nodes")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    requested = {name for key, value in request.query if key == "fields" for name in value.split(",")}
    odd = {"created_at", "updated_at", "links", "conductor", "allocation_uuid", "chassis_uuid"}
    if request.route[:1] == ["nodes"] and requested & odd and a["status"] in (400, 500) and b["status"] == 200:
        _equalize(a, b)


@divergence("A GET with two mistakes")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if request.method == "GET" and request.query and {a["status"], b["status"]} <= {400, 404, 406}:
        _equalize(a, b)


@divergence("Names that end in ``.json``")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    suffixed = request.path.partition("?")[0].endswith(".json") and (request.version or 0) < 91
    if suffixed and request.method == "GET" and {a["status"], b["status"]} == {200, 404}:
        _equalize(a, b)


@divergence("Methods other than GET at ``/`` and ``/v1``")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if not request.route and request.method != "GET" and b["status"] == 405:
        _equalize(a, b)


@divergence("GET ``/v1/drivers``")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if request.route == ["drivers"] and a["status"] == b["status"] == 200 and _names("fake-hardware", b):
        b["body"] = a["body"]


def _names(driver: str, reply: Comparable) -> bool:
    drivers = reply["body"].get("drivers") if isinstance(reply["body"], dict) else None
    return isinstance(drivers, list) and any(entry.get("name") == driver for entry in drivers)


def _are_links(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and [link.get("rel") for link in value] == ["self", "bookmark"]


@divergence("The version documents")
def _(request: Request, a: Comparable, b: Comparable) -> None:
    if request.route or a["status"] != 200 or b["status"] != 200:
        return
    for name in ("name", "description"):
        if isinstance(b["body"].get(name), str):
            b["body"][name] = a["body"].get(name)
    pages = [[link for link in reply["body"].get("links", []) if link["rel"] == "describedby"] for reply in (a, b)]
    for of_a, of_b in zip(*pages, strict=False):
        of_b["href"] = of_a["href"]


def _is_list(reply: Comparable) -> bool:
    return isinstance(reply["body"], dict) and any(name in reply["body"] for name in ("allocations", "nodes"))


def documents(reply: Comparable) -> list[dict[str, Any]]:
    """Return the documents in a successful response: the items of a list, or the single document."""
    body = reply["body"]
    if not isinstance(body, dict) or reply["status"] >= 400:
        return []
    items = body.get("nodes", body.get("allocations")) if "id" not in body else None
    return items if isinstance(items, list) and all(isinstance(item, dict) for item in items) else [body]
