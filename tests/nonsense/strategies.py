"""The Hypothesis generators of invalid requests, and of some valid ones.

A request goes to a route of the table, conforms to its schemas and names existing objects, except for one odd part.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from hypothesis import strategies as st

from placement import microversion as mv
from placement.http.endpoint import Endpoint
from placement.routes import TABLE
from tests import json_strategies
from tests.nonsense.odd_values import (
    AGGREGATE,
    CLASSES,
    CONSUMER_GENERATION,
    CONSUMERS,
    MONSTERS,
    NAMES,
    NOWHERE,
    PROVIDER_GENERATION,
    PROVIDERS,
    TRAITS,
    TRAPS,
    UUIDS,
    Sent,
    usual_headers,
)

ANY_TEXT = st.sampled_from(TRAPS) | st.text(max_size=8)
#: The odd part of a request.
ODD = ("nothing", "body", "body", "query", "path", "method", "header", "version")


def mostly(usual: st.SearchStrategy[Any], otherwise: st.SearchStrategy[Any], in_all: int = 8) -> st.SearchStrategy[Any]:
    """Draw mostly the usual value; the odd number is in the middle, since Hypothesis draws the ends more often."""
    return st.integers(0, in_all - 1).flatmap(lambda number: otherwise if number == in_all // 2 else usual)


# --- routes ----------------------------------------------------------------------------------------------------------

_METHODS = st.sampled_from(("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "", "\xc9"))
VALUES = {
    "uuid": st.sampled_from((*PROVIDERS, *PROVIDERS, NOWHERE)),
    "consumer_uuid": st.sampled_from((*CONSUMERS, *CONSUMERS, NOWHERE)),
    "resource_class": st.sampled_from(CLASSES),
    "name": st.sampled_from(NAMES),
}
#: Every route, with its endpoint of this version or another one.
ROUTES = tuple(
    (method, path, endpoint)
    for path, methods in TABLE.items()
    for method, endpoints in methods.items()
    for endpoint in (endpoints if isinstance(endpoints, tuple) else (endpoints,))
)
#: Routes that parse more of a request are drawn more often.
_WEIGHTED_ROUTES = tuple(route for route in ROUTES for _ in range(3 if route[2].body or route[2].query else 1))


@st.composite
def _paths(draw: st.DrawFn, path: str, odd: bool) -> bytes:
    """Draw the path with its values, unquoted, as the server forwards it."""
    if not odd:
        return re.sub("{(.*?)}", lambda match: draw(VALUES[match[1]]), path).encode()
    content = re.sub("{(.*?)}", lambda _: draw(ANY_TEXT), path).encode()
    return content + draw(mostly(st.just(b""), ANY_TEXT.map(str.encode) | st.binary(max_size=6), 2))


@st.composite
def _versions(draw: st.DrawFn, endpoint: Endpoint) -> mv.Version:
    """Draw a version, mostly one that has the endpoint."""
    last = endpoint.until.minor - 1 if endpoint.until else mv.LATEST.minor
    lifetime = st.integers(endpoint.since.minor, last)
    return mv.Version(1, draw(mostly(lifetime, st.integers(0, mv.LATEST.minor), 12)))


# --- the query -------------------------------------------------------------------------------------------------------

_SUFFIXES = st.sampled_from(("", "", "1", "2", "_A", "0", "01", "-" * 64, "x" * 65))
_SIGNS = st.sampled_from(("in:", "!in:", "!", "in:!", ":", "startswith:"))
_AMOUNTS = st.sampled_from((*[":1"] * 6, ":2", "", ":0", ":-1", ":x", ":" + "9" * 25, ":1.5", ": 1", ":1:1", ":\uff11"))
#: The kind of value of a parameter.
ABOUT = {
    "resources": st.tuples(st.sampled_from(CLASSES), _AMOUNTS).map("".join),
    "required": st.sampled_from(TRAITS),
    "root_required": st.sampled_from(TRAITS),
    "member_of": st.sampled_from((AGGREGATE, AGGREGATE, NOWHERE)),
    "in_tree": st.sampled_from(UUIDS),
    "same_subtree": st.sampled_from(("1", "2", "_A", "")),
    "limit": st.sampled_from(("1", "2", "1000", "0", "-1", "1.5", "9" * 25, "9" * 5000)),
    "group_policy": st.sampled_from(("none", "isolate")),
    "uuid": st.sampled_from(UUIDS),
    "name": st.sampled_from(("root", "child", *NAMES)),
    "associated": st.sampled_from(("true", "FALSE")),
    "project_id": st.sampled_from(("project", "nobody")),
    "user_id": st.sampled_from(("user", "nobody")),
    "consumer_type": st.sampled_from(("INSTANCE", "all", "unknown", "allfoo")),
}
#: Parameters that may occur once per group.
_GROUPED = ("resources", "required", "member_of", "in_tree")


@st.composite
def _parameters(draw: st.DrawFn, name: str, odd: bool) -> tuple[str, str]:
    values = ABOUT.get(name, ANY_TEXT)
    words = [draw(mostly(values, ANY_TEXT, 3) if odd else values) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    suffix = draw(_SUFFIXES) if name in _GROUPED and odd else ""
    return name + suffix, draw(mostly(st.just(""), _SIGNS, 3)) + ",".join(words)


@st.composite
def _queries(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version, odd: bool) -> bytes:
    if endpoint.query is None and not odd:
        return b""
    rendered = endpoint.query.render(version) if endpoint.query else {}
    supported = [*rendered.get("properties", {})] or list(ABOUT)
    mandatory = rendered.get("required") or (["resources"] if "resources" in supported else [])
    named = st.sampled_from(supported)
    names = draw(st.lists(mostly(named, ANY_TEXT) if odd else named, max_size=3))
    pairs = [draw(_parameters(name, odd)) for name in [*names, *mandatory]]
    encoded = urllib.parse.urlencode(pairs).encode()
    broken = st.sampled_from((b"&", b"&=", b"%88", b"&name=%88", b"\xff", b"&a;b", b"&%00=%00"))
    return encoded + draw(mostly(st.just(b""), broken, 3)) if odd else encoded


# --- the body --------------------------------------------------------------------------------------------------------

_GENERATIONS = st.sampled_from((*[PROVIDER_GENERATION, CONSUMER_GENERATION] * 4, 0, 2, -1, 2**31, 2**63))
_AMOUNT = mostly(st.integers(1, 2), st.sampled_from((4, 0, -1, 2**31 - 1, 2**31, 2**63, 10**30, 1.0, 1.5, True, "1")))
_RATIOS = st.sampled_from((1.0, 1.0, 1.5, 0, -1.0, 1e-300, 3.4e38, 1e308, "1", None))
_ODD_VALUES = st.sampled_from(
    (*TRAPS, "\ud800", "\udc00x", 10**400, -(2**63), 5e-324, 1.7e308, True, None, [], {}, [[[[[[]]]]]], {"": {"": {}}})
)
#: The resources of a claim.
_QUERIES = st.sampled_from((
    *("resources=VCPU:1", "resources=VCPU:1,DISK_GB:1&required=CUSTOM_TRAIT", "resources=CUSTOM_CLASS:2"),
    *("resources=VCPU:1&in_tree=child", f"resources=DISK_GB:1&member_of={AGGREGATE}", "resources=VCPU:9999"),
    *("resources1=VCPU:1&resources2=DISK_GB:1&group_policy=isolate", "resources=VCPU:1&limit=1", "resources=NO:1"),
))  # fmt: skip


def familiar(draw: st.DrawFn, value: Any, key: str = "") -> Any:
    """Draw the value, mostly with existing names instead of random ones."""
    if isinstance(value, dict):
        return {familiar(draw, name): familiar(draw, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [familiar(draw, inner, key) for inner in value]
    if draw(st.integers(0, 15)) == 8:
        return value
    if isinstance(value, str):
        return draw(mostly(_QUERIES, ANY_TEXT)) if key == "query" else _familiar_text(draw, value)
    if key.endswith("generation"):
        return draw(_GENERATIONS) if value is not None else None
    if key == "allocation_ratio":
        return draw(_RATIOS)
    return draw(_AMOUNT) if isinstance(value, int | float) else value


def _familiar_text(draw: st.DrawFn, text: str) -> str:
    if len(text) >= 32:
        return draw(st.sampled_from((*UUIDS, *PROVIDERS, *PROVIDERS)))
    if text.startswith("CUSTOM_"):
        return draw(st.sampled_from(NAMES))
    return draw(st.sampled_from(CLASSES[:3])) if re.fullmatch("[A-Z0-9_]+", text) else text


@st.composite
def _json(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version, odd: bool) -> Any:
    """Draw a value that conforms to the schema, or nearly."""
    value = familiar(draw, draw(json_strategies.conforming(endpoint.body.render(version))))
    if not odd:
        return value
    kind = draw(st.sampled_from(("trap", "trap", "nearly", "any")))
    if kind == "trap":
        return with_trap(draw, value)
    return draw(json_strategies.nearly(st.just(value)) if kind == "nearly" else json_strategies.json_values())


def with_trap(draw: st.DrawFn, value: Any) -> Any:
    """Draw the value with something odd in one place, which may be a key."""
    if not isinstance(value, dict | list) or not value:
        return draw(_ODD_VALUES)
    if isinstance(value, list):
        return [with_trap(draw, value[0]), *value[1:]]
    key = draw(st.sampled_from(list(value)))
    if draw(st.integers(0, 5)) == 3:
        return {**{name: inner for name, inner in value.items() if name != key}, draw(ANY_TEXT): value[key]}
    return {**value, key: with_trap(draw, value[key])}


@st.composite
def bodies(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version, odd: bool) -> bytes:
    """Draw the body of a request: it conforms to the schema, or is odd."""
    if endpoint.body is None:
        return draw(st.sampled_from(MONSTERS)) if odd else b""
    value = draw(_json(endpoint, version, odd))
    content = json.dumps(value, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    if odd and draw(st.integers(0, 5)) == 3:
        at = draw(st.integers(0, len(content)))
        return content[:at] + draw(st.binary(max_size=2)) + content[at + draw(st.integers(0, 2)) :]
    return content


# --- the headers -----------------------------------------------------------------------------------------------------

_WEIRD = st.sampled_from((None, "", " ", ",", ";", "\xe9", "\xff\xfe", "a" * 9000, "q=", "*", "\t", "%", "a/b;q=x"))
_HEADERS = {
    "Content-Type": ("application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "application/json;", "json"),
    "Content-Length": ("0", "-1", "+1", "1e3", "x", "\xb2", " 2", "9" * 18, "9" * 19, "9" * 30, "9" * 5000),
    "Accept": (
        "*/*",
        "text/html",
        "text/plain",
        "application/*",
        "application/json;q=0",
        "x",
        "text/html;q=.1,*/*",
        "/",
    ),
    "X-Auth-Token": ("user", "admin:project", ":", "::", "admin:", "a" * 3000),
    "X-Roles": ("reader", "member", "service", "admin,admin"),
    "X-Project-Id": ("project",),
    "OpenStack-System-Scope": ("all",),
    "X-Openstack-Request-Id": ("req-x", f"req-{NOWHERE}"),
    "Host": ("a b", "[::1]:80", "x:y"),
    "X-Forwarded-Proto": ("https", "x"),
}
_ODD_VERSIONS = st.sampled_from(
    ("latest", "LATEST", "1.40", "0.9", "1", "1.2.3", "x.y", "-1.2", "1.-2", "\u0967.\u0968", "", "1." + "9" * 5000)
)


@st.composite
def _headers(draw: st.DrawFn, usual: dict[str, str], odd: bool) -> dict[str, str]:
    headers: dict[str, str | None] = dict(usual)
    if odd:
        name = draw(st.sampled_from(list(_HEADERS)))
        headers[name] = draw(mostly(st.sampled_from(_HEADERS[name]), _WEIRD, 3))
    return {name: value for name, value in headers.items() if value is not None}


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    """Draw any request."""
    odd = draw(st.sampled_from(ODD))
    method, path, endpoint = draw(st.sampled_from(_WEIGHTED_ROUTES))
    version = draw(_versions(endpoint))
    body = draw(bodies(endpoint, version, odd == "body"))
    version_text = draw(_ODD_VERSIONS) if odd == "version" else str(version)
    return Sent(
        method=draw(_METHODS) if odd == "method" else method,
        path=draw(_paths(path, odd == "path")),
        query=draw(_queries(endpoint, version, odd == "query")),
        headers=draw(_headers(usual_headers(body, version_text), odd == "header")),
        body=body,
    )
