"""Requests to the v1 API that are valid except for one odd part, and the places of a text in them."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from placement.extensions.v1.api import TABLE
from placement.http.endpoint import Endpoint
from placement.version_history import OLDEST
from tests.nonsense.odd_values import (
    AGGREGATE,
    CLASSES,
    CONSUMERS,
    NOWHERE,
    PROVIDERS,
    TRAITS,
    UUIDS,
    Sent,
    usual_headers,
)
from tests.nonsense.strategies import ANY_TEXT, bodies, mostly
from tests.nonsense.text_positions import Place

PREFIX = "/v1"
ROUTES = tuple(
    (method, path, endpoint)
    for path, methods in TABLE.items()
    for method, endpoint in methods.items()
    if isinstance(endpoint, Endpoint)
)
#: Routes that parse more of a request are drawn more often.
_WEIGHTED_ROUTES = tuple(route for route in ROUTES for _ in range(4 if route[2].body else 1))
_IDENTS = (*PROVIDERS, "root", "child", "nothing")


def parameters(endpoint: Endpoint) -> list[str]:
    """Return the names of an endpoint's parameters; for parameters of groups with and without a suffix."""
    if endpoint.query is None:
        return []
    schema = endpoint.query.render(OLDEST)
    patterns = (re.match(r"\^([a-z_]+)", pattern) for pattern in schema.get("patternProperties", ()))
    groups = [match[1] for match in patterns if match is not None]
    return [*schema.get("properties", ()), *groups, *(f"{group}1" for group in groups)]


_VALUES = (
    *("1", "0", "-1", "1000", "1001", "9" * 30, "true", "x", "1.39", "1.40", "none", "isolate", "_A,_B", ""),
    *("VCPU:1", "VCPU:9999999999", "DISK_GB:0", "CUSTOM_SPARE:1", "VCPU:1,DISK_GB:2", "in:HW_CPU_X86_AVX", "!x"),
    *("free:VCPU", "-used:DISK_GB", "capacity:NOTHING", "free:", "5:1", "30d", "99999w", "2026-11-20", "0001-01-01"),
    *("9999-12-31T23:59:59Z", "2026-02-30", "0s", "INSTANCE", "unknown", "project", "user", "root", "child"),
    *(*UUIDS, *CLASSES, *TRAITS),
)


@st.composite
def _path(draw: st.DrawFn, path: str, odd: bool) -> bytes:
    idents = st.sampled_from((*CONSUMERS, NOWHERE) if "{consumer}" in path else _IDENTS)
    filled = PREFIX + re.sub("{.*?}", lambda _: draw(mostly(idents, ANY_TEXT, 2) if odd else idents), path)
    return (filled + draw(st.sampled_from(("", "", "/", ".json", "//", "/x")))).encode() if odd else filled.encode()


@st.composite
def _query(draw: st.DrawFn, endpoint: Endpoint, odd: bool) -> bytes:
    supported = parameters(endpoint) or ["limit"]
    names = mostly(st.sampled_from(supported), ANY_TEXT) if odd else st.sampled_from(supported)
    pairs = draw(st.lists(st.tuples(names, mostly(st.sampled_from(_VALUES), ANY_TEXT, 4)), max_size=4))
    encoded = urllib.parse.urlencode(pairs).encode()
    return encoded + draw(st.sampled_from((b"", b"&", b"%88", b"&a;b", b"&%00=%00"))) if odd else encoded


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    """Draw any request to this API."""
    odd = draw(st.sampled_from(("nothing", "query", "path", "method", "body")))
    method, path, endpoint = draw(st.sampled_from(_WEIGHTED_ROUTES))
    body = draw(bodies(endpoint, OLDEST, odd == "body"))
    methods = st.sampled_from(("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "", "\xc9"))
    return Sent(
        method=draw(methods) if odd == "method" else method,
        path=draw(_path(path, odd == "path")),
        query=draw(_query(endpoint, odd == "query")),
        headers=usual_headers(body),
        body=body,
    )


_CLAIM = {
    "consumer": NOWHERE,
    "consumer_type": "INSTANCE",
    "project_id": "project",
    "user_id": "user",
    "query": "resources=VCPU:1",
}
_BODIES = {"/claims": {"requests": [_CLAIM]}, "/claims/{consumer}/extend": {"expires_in": 60}}


def places() -> Iterator[Place]:
    """Return requests with a place for a text: each path with a value, each parameter, and an unknown one."""
    for method, path, endpoint in ROUTES:
        body = _BODIES.get(path)
        if "{" in path:
            yield Place(method, PREFIX + re.sub("{.*?}", "TRAP", path), body=body)
        filled = PREFIX + path.replace("{provider}", "root").replace("{consumer}", CONSUMERS[0])
        needed = "resources=VCPU:1&" if "resources" in parameters(endpoint) else ""
        for name in (*parameters(endpoint), "TRAP"):
            yield Place(method, filled, f"{needed}{name}=TRAP", body)
    yield Place("GET", f"{PREFIX}/overview", "sort=free:TRAP")
    yield Place("GET", f"{PREFIX}/overview", "sort=free:VCPU&after=TRAP:1")
    yield Place("GET", f"{PREFIX}/consumers", f"provider={PROVIDERS[0]}&class=TRAP")
    yield Place("GET", f"{PREFIX}/overview", f"aggregate={AGGREGATE}&trait=TRAP")
    yield from (Place("POST", f"{PREFIX}/claims", body=body) for body in _claims())


def _claims() -> Iterator[dict[str, Any]]:
    """Return calls with a place for a text."""
    for name in (*_CLAIM, "TRAP"):
        yield {"requests": [_CLAIM | {name: "TRAP"}]}
    for query in (
        "resources=TRAP:1",
        "resources=VCPU:TRAP",
        "resources=VCPU:1&TRAP=1",
        "resources=VCPU:1&in_tree=TRAP",
    ):
        yield {"requests": [_CLAIM | {"query": query}]}
    group = {"resources": {"VCPU": 1}}
    for name in ("required", "member_of"):
        yield {"requests": [_CLAIM | {"query": {"groups": {"": group | {name: ["TRAP"]}}}}]}
    yield {"requests": [_CLAIM | {"query": {"groups": {"TRAP": group | {"in_tree": "TRAP"}}}}]}
    yield {
        "requests": [
            _CLAIM | {"query": {"groups": {"1": group}, "same_subtree": [["TRAP"]], "root_required": ["TRAP"]}}
        ]
    }
    for option in ({"strategy": "TRAP"}, {"strategy": {"spread_over": "TRAP"}}, {"TRAP": "TRAP"}):
        yield {"requests": [_CLAIM], **option}
    for name in ("apart_from", "together_with"):
        yield {"requests": [_CLAIM], name: ["TRAP"]}
