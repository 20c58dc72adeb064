"""Requests to the Bare Metal API that are valid except for one odd part, and the places of a text in them."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from placement.extensions.baremetal import versions
from placement.extensions.baremetal.api import TABLE
from placement.http.endpoint import Endpoint
from tests import json_strategies
from tests.nonsense.odd_values import MONSTERS as COMMON_MONSTERS
from tests.nonsense.odd_values import NOWHERE, Sent, usual_headers
from tests.nonsense.strategies import ANY_TEXT, mostly, with_trap
from tests.nonsense.text_positions import Place

PREFIX = "/baremetal"
#: An allocated node, a free one, and one with an instance set by hand.
NODES = tuple(f"{number}0000000-eeee-4eee-8eee-eeeeeeeeeee{number}" for number in range(3))
#: The allocation of the first node, and one in error.
ALLOCATIONS = tuple(f"{number}0000000-cccc-4ccc-8ccc-ccccccccccc{number}" for number in range(2))
NODE_NAMES, ALLOCATION_NAMES = ("held", "free", "used"), ("active", "failed")
CLASS, TRAITS = "bm.large", ("HW_CPU_X86_AVX", "CUSTOM_TRAIT")

ROUTES = tuple(
    (method, path, endpoint)
    for path, methods in TABLE.items()
    for method, endpoint in methods.items()
    if isinstance(endpoint, Endpoint)
)
_IDENTS = {
    "node": (*NODES, *NODE_NAMES, NOWHERE, "nothing"),
    "allocation": (*ALLOCATIONS, *ALLOCATION_NAMES, NOWHERE, "nothing"),
    "trait": (*TRAITS, "CUSTOM_NEW"),
}
_PARAMETERS = (
    *("fields", "limit", "marker", "sort_key", "sort_dir", "node", "resource_class", "state", "owner", "detail"),
    *("instance_uuid", "associated", "maintenance", "provision_state", "driver", "lessee", "description_contains"),
)
_VALUES = (
    *(*NODES, *NODE_NAMES, *ALLOCATIONS, CLASS, "active", "error", "1", "0", "-1", "1000", "True", "False", "maybe"),
    *(
        "uuid",
        "uuid,name",
        "extra",
        "traits",
        "id",
        "created_at",
        "asc",
        "desc",
        "available",
        "fake-hardware",
        "9" * 30,
    ),
)
_PATHS = (
    *("/name", "/extra", "/extra/a", "/extra/a~1b", "/resource_class", "/instance_uuid", "/owner", "/properties/cpus"),
    *("/traits", "/uuid", "", "/", "name", "/extra/", "/extra/~", "/extra/~2", "/driver_info/x", "/lessee", "/fault"),
)
#: Bodies, with patches whose value is nested more deeply than Python's recursion limit, but less than the decoder's.
MONSTERS = COMMON_MONSTERS + tuple(
    b'[{"op": "add", "path": "%s", "value": %s}]' % (path, b'{"a":' * depth + b"1" + b"}" * depth)
    for path, depth in ((b"/extra", 32), (b"/extra", 500), (b"/extra/a", 900), (b"/name", 900), (b"x", 900))
)
_TARGETS = ("manage", "provide", "active", "deleted", "deploy", "power on", "power off", "rebooting", "x", "")


@st.composite
def _path(draw: st.DrawFn, path: str, odd: bool) -> bytes:
    def value(match: re.Match[str]) -> str:
        values = _IDENTS.get(match[1].partition(":")[0], ("x",))
        return draw(mostly(st.sampled_from(values), ANY_TEXT, 2)) if odd else draw(st.sampled_from(values))

    filled = PREFIX + re.sub("{(.*?)}", value, path)
    return (filled + draw(st.sampled_from(("", "", "/", ".json", "//", "/x")))).encode() if odd else filled.encode()


@st.composite
def _query(draw: st.DrawFn, odd: bool) -> bytes:
    if not odd and draw(st.integers(0, 2)):
        return b""
    names = mostly(st.sampled_from(_PARAMETERS), ANY_TEXT) if odd else st.sampled_from(_PARAMETERS)
    values = mostly(st.sampled_from(_VALUES), ANY_TEXT, 3)
    pairs = draw(st.lists(st.tuples(names, values), max_size=3))
    encoded = urllib.parse.urlencode(pairs).encode()
    return encoded + draw(st.sampled_from((b"", b"&", b"%88", b"&a;b", b"&%00=%00"))) if odd else encoded


def _familiar(draw: st.DrawFn, value: Any, key: str = "") -> Any:
    """Return the value, mostly with existing names instead of random ones."""
    if isinstance(value, dict):
        return {name: _familiar(draw, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_familiar(draw, inner, key) for inner in value]
    choices: dict[str, tuple[Any, ...]] = {
        "uuid": (*NODES, *ALLOCATIONS, NOWHERE, NOWHERE),
        "name": (*NODE_NAMES, *ALLOCATION_NAMES, "new", "", "a b"),
        "node": _IDENTS["node"],
        "candidate_nodes": _IDENTS["node"],
        "resource_class": (CLASS, CLASS.upper(), "other", ""),
        "traits": (*TRAITS, "CUSTOM_NEW", "x"),
        "driver": ("fake-hardware", "fake-hardware", "x"),
        "path": _PATHS,
        "target": _TARGETS,
        "value": ("x", NOWHERE, ALLOCATIONS[0], {}, {"a": {"b": [1]}}, None, True, 1, [], 1.5, CLASS),
    }
    if key in choices and draw(st.integers(0, 9)):
        return draw(st.sampled_from(choices[key]))
    return value


@st.composite
def _body(draw: st.DrawFn, endpoint: Endpoint, version: versions.Version, odd: bool) -> bytes:
    if endpoint.body is None:
        return draw(st.sampled_from(MONSTERS)) if odd else b""
    value = _familiar(draw, draw(json_strategies.conforming(endpoint.body.render(version))))
    if odd:
        kind = draw(st.sampled_from(("trap", "nearly", "any", "monster")))
        if kind == "monster":
            return draw(st.sampled_from(MONSTERS))
        if kind == "trap":
            value = with_trap(draw, value)
        else:
            value = draw(json_strategies.nearly(st.just(value)) if kind == "nearly" else json_strategies.json_values())
    return json.dumps(value, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")


def headers(body: bytes = b"", version: str = "1.115") -> dict[str, str]:
    """Draw the headers of a client with all rights."""
    return {**usual_headers(body), "OpenStack-API-Version": f"baremetal {version}"}


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    """Draw any request to this API."""
    odd = draw(st.sampled_from(("nothing", "body", "body", "query", "path", "method", "version")))
    method, path, endpoint = draw(st.sampled_from(ROUTES))
    oldest = min(endpoint.since.minor, versions.LATEST.minor)
    version = versions.Version(1, draw(mostly(st.integers(oldest, versions.LATEST.minor), st.integers(1, 115), 6)))
    body = draw(_body(endpoint, version, odd == "body"))
    stated = draw(st.sampled_from(("latest", "1.116", "2.1", "abc", "", "1.0"))) if odd == "version" else str(version)
    methods = st.sampled_from(("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "", "\xc9"))
    return Sent(
        method=draw(methods) if odd == "method" else method,
        path=draw(_path(path, odd == "path")),
        query=draw(_query(odd == "query")),
        headers=headers(body, stated),
        body=body,
    )


# --- the places of a text --------------------------------------------------------------------------------------------

_V1 = f"{PREFIX}/v1"
_NODE = {"driver": "fake-hardware"}
_ALLOCATION = {"resource_class": CLASS}


def places() -> Iterator[Place]:
    """Return requests with a place for a text."""
    yield from _path_places()
    yield from _query_places()
    yield from _body_places()


def _path_places() -> Iterator[Place]:
    for path in ("nodes/TRAP", "allocations/TRAP", "nodes/TRAP/allocation", "nodes/free/traits/TRAP", "TRAP"):
        yield Place("GET", f"{_V1}/{path}")
        yield Place("DELETE", f"{_V1}/{path}")
    for path in ("nodes/TRAP/traits", "nodes/TRAP/states", "nodes/TRAP/validate"):
        yield Place("GET", f"{_V1}/{path}")
    yield Place("PUT", f"{_V1}/nodes/free/traits/TRAP")
    yield Place("PUT", f"{_V1}/nodes/TRAP/maintenance", body={"reason": "TRAP"})


def _query_places() -> Iterator[Place]:
    for name in (*_PARAMETERS, "TRAP"):
        yield Place("GET", f"{_V1}/nodes", f"{name}=TRAP")
        yield Place("GET", f"{_V1}/allocations", f"{name}=TRAP")
    for path in ("nodes/detail", "nodes/free", "allocations/active", "nodes/held/allocation", "drivers"):
        yield Place("GET", f"{_V1}/{path}", "fields=TRAP")


def _body_places() -> Iterator[Place]:
    for name in ("name", "uuid", "resource_class", "owner", "lessee", "driver", "description", "TRAP"):
        yield Place("POST", f"{_V1}/nodes", body=_NODE | {name: "TRAP"})
    for value in ({"TRAP": "TRAP"}, {"a": ["TRAP"]}):
        yield Place("POST", f"{_V1}/nodes", body=_NODE | {"extra": value, "properties": value, "driver_info": value})
        yield Place("POST", f"{_V1}/allocations", body=_ALLOCATION | {"extra": value})
    for name in ("name", "uuid", "resource_class", "owner", "node", "TRAP"):
        yield Place("POST", f"{_V1}/allocations", body=_ALLOCATION | {name: "TRAP"})
    for name in ("traits", "candidate_nodes"):
        yield Place("POST", f"{_V1}/allocations", body=_ALLOCATION | {name: ["TRAP"]})
    for path in ("provision", "power"):
        yield Place("PUT", f"{_V1}/nodes/free/states/{path}", body={"target": "TRAP"})
    yield Place("PUT", f"{_V1}/nodes/free/maintenance", body={"reason": "TRAP"})
    yield Place("PUT", f"{_V1}/nodes/free/traits", body={"traits": ["TRAP"]})
    for record in ("nodes/free", "allocations/active"):
        for path in ("/name", "/extra", "/extra/TRAP", "/TRAP", "TRAP", "/instance_uuid", "/resource_class", "/owner"):
            yield Place("PATCH", f"{_V1}/{record}", body=[{"op": "add", "path": path, "value": "TRAP"}])
