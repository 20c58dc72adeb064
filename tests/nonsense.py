"""The Hypothesis generators of requests that nobody should send, and of some that somebody might.

A request goes to a route of the table or nearly so; what is in it is sound, nearly sound, or anything.
"""

from __future__ import annotations

import io
import json
import re
import urllib.parse
from typing import Any, NamedTuple

from hypothesis import strategies as st

from placement import microversion as mv
from placement.endpoint import Endpoint
from placement.routes import TABLE
from tests import json_strategies

# --- what there is, and some that there is not -----------------------------------------------------------------------

PROVIDERS = tuple(f"{number}0000000-aaaa-4aaa-8aaa-aaaaaaaaaaa{number}" for number in range(3))
CONSUMERS = tuple(f"{number}0000000-cccc-4ccc-8ccc-ccccccccccc{number}" for number in range(2))
AGGREGATE = "d0000000-dddd-4ddd-8ddd-dddddddddddd"
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_CLASS", "CUSTOM_SPARE")
TRAITS = ("HW_CPU_X86_AVX", "CUSTOM_TRAIT", "CUSTOM_SPARE_TRAIT")
NOWHERE = "f0000000-ffff-4fff-8fff-ffffffffffff"
UUIDS = (*PROVIDERS, *CONSUMERS, AGGREGATE, NOWHERE)
NAMES = (*CLASSES, *TRAITS, "CUSTOM_NEW", "CUSTOM_" + "N" * 300, "vcpu")
#: The consumers' after one claim each, and those of the providers; and some that are nobody's.
GENERATIONS = (5, 1, 5, 1, 5, 1, 0, 2, -1, 2**31, 2**63)

#: What has broken services of all kinds.
TRAPS = (
    *(
        "",
        " ",
        "\0",
        "VCPU\0",
        "\n",
        "VCPU\n",
        "a\r\nX-Evil: 1",
        "\x7f",
        "\x80",
        "\ufeff",
        "\u202e",
        "é",
        "ß",
        "İ",
        "ﬀ",
    ),
    *("😀", "\U0001d4b1", "VCPU😀", "%", "%2F", "%00", "%%", "..", "../..", "/", "//", "a/b", ";", ":", "?", "#", "\\"),
    *("'", '"', "' OR '1'='1", "'; DROP TABLE traits; --", "{0}", "%s", "%(uuid)s", "<b>x</b>", "&amp;", "-", "_", "*"),
    *("null", "None", "NaN", "inf", "0", "-1", "1e400", "9" * 30, "9" * 5000, "x" * 256, "x" * 9000, "😀" * 300),
    *("{" + PROVIDERS[0] + "}", "urn:uuid:" + PROVIDERS[0], PROVIDERS[0].replace("-", ""), PROVIDERS[0].upper()),
    *("-" * 36, "a" * 36, PROVIDERS[0] + "\n", " " + PROVIDERS[0]),
)
ANY_TEXT = st.sampled_from(TRAPS) | st.text(max_size=8)


def mostly(usual: st.SearchStrategy[Any], otherwise: st.SearchStrategy[Any], in_all: int = 8) -> st.SearchStrategy[Any]:
    """All but one in so many are as usual; the one is in the middle, for the ends are drawn more often."""
    return st.integers(0, in_all - 1).flatmap(lambda number: otherwise if number == in_all // 2 else usual)


# --- where to --------------------------------------------------------------------------------------------------------

_METHODS = st.sampled_from(("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "", "ZZ", "É"))
_VALUES = {
    "uuid": st.sampled_from((*PROVIDERS, PROVIDERS[0], NOWHERE)),
    "consumer_uuid": st.sampled_from((*CONSUMERS, CONSUMERS[0], NOWHERE)),
    "resource_class": st.sampled_from(CLASSES),
    "name": st.sampled_from(NAMES),
}
#: Every route, with its endpoint of this version or of another.
ROUTES = tuple(
    (method, path, endpoint)
    for path, methods in TABLE.items()
    for method, endpoints in methods.items()
    for endpoint in (endpoints if isinstance(endpoints, tuple) else (endpoints,))
)
#: Those that read the most of what is sent are asked more often.
_ASKED = tuple(route for route in ROUTES for _ in range(3 if route[2].body or route[2].query else 1))


@st.composite
def _paths(draw: st.DrawFn, path: str) -> bytes:
    """The path with values in it, as the server passes it on: no longer quoted."""
    filled = re.sub("{(.*?)}", lambda match: draw(mostly(_VALUES[match[1]], ANY_TEXT, 6)), path)
    content = draw(mostly(st.just(filled), ANY_TEXT.map(lambda text: filled + text), 12)).encode()
    return draw(mostly(st.just(content), st.binary(max_size=6).map(lambda odd: content + odd), 20))


# --- the query -------------------------------------------------------------------------------------------------------

_SUFFIXES = st.sampled_from(("", "", "1", "2", "_A", "0", "01", "-" * 64, "x" * 65))
_SIGNS = st.sampled_from(("", "", "", "in:", "!in:", "!", "in:!", ":", "startswith:"))
_AMOUNTS = st.sampled_from(
    (":1", ":1", ":1", ":2", "", ":0", ":-1", ":x", ":" + "9" * 25, ":1.5", ": 1", ":1:1", ":\uff11")
)
_NUMBERS = st.sampled_from(("1", "2", "1000", "0", "-1", "1.5", "9" * 25, "9" * 5000))
#: What a parameter is about, by the beginning of its name.
_ABOUT = {
    "resources": st.tuples(st.sampled_from(CLASSES), _AMOUNTS).map("".join),
    "required": st.sampled_from(TRAITS),
    "root_required": st.sampled_from(TRAITS),
    "member_of": st.sampled_from((AGGREGATE, AGGREGATE, NOWHERE)),
    "in_tree": st.sampled_from(UUIDS),
    "same_subtree": st.sampled_from(("1", "2", "_A", "")),
    "limit": _NUMBERS,
    "group_policy": st.sampled_from(("none", "isolate")),
    "uuid": st.sampled_from(UUIDS),
    "name": st.sampled_from(("root", "child", *NAMES)),
    "associated": st.sampled_from(("true", "FALSE")),
    "project_id": st.sampled_from(("project", "nobody")),
    "user_id": st.sampled_from(("user", "nobody")),
    "consumer_type": st.sampled_from(("INSTANCE", "all", "unknown", "allfoo")),
}


@st.composite
def _pairs(draw: st.DrawFn, name: str) -> tuple[str, str]:
    """A parameter and a value that may be meant for it."""
    about = _ABOUT.get(name, ANY_TEXT)
    words = [draw(mostly(about, ANY_TEXT)) for _ in range(draw(st.sampled_from((1, 1, 2))))]
    suffix = draw(_SUFFIXES) if name in ("resources", "required", "member_of", "in_tree") else ""
    return name + suffix, draw(mostly(st.just(""), _SIGNS, 3)) + ",".join(words)


@st.composite
def _queries(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version) -> bytes:
    if endpoint.query is None and draw(st.integers(0, 7)):
        return b""
    rendered = endpoint.query.render(version) if endpoint.query else {}
    known = [*rendered.get("properties", {})] or list(_ABOUT)
    mandatory = rendered.get("required") or (["resources"] if "resources" in known else [])
    names = draw(st.lists(mostly(st.sampled_from(known), ANY_TEXT, 12), max_size=3))
    pairs = [draw(_pairs(name)) for name in [*names, *(mandatory if draw(st.integers(0, 5)) else [])]]
    encoded = urllib.parse.urlencode(pairs).encode()
    broken = st.sampled_from((b"&", b"&=", b"%88", b"&name=%88", b"\xff", b"&a;b", b"&%00=%00"))
    return encoded + draw(mostly(st.just(b""), broken, 12))


# --- the body --------------------------------------------------------------------------------------------------------

_AMOUNT = mostly(
    st.integers(1, 2), st.sampled_from((4, 0, -1, 2**31 - 1, 2**31, 2**63, 10**30, 1.0, 1.5, True, "1", None))
)
_RATIOS = st.sampled_from((1.0, 1.5, 0, -1.0, 1e-300, 3.4e38, 1e308, "1", None))
_ODD = st.sampled_from(
    (*TRAPS, "\ud800", "\udc00x", 10**400, -(2**63), 5e-324, 1.7e308, True, None, [], {}, [[[[[[]]]]]], {"": {"": {}}})
)
_MONSTERS = (
    *(
        b"",
        b" ",
        b"null",
        b"0",
        b'""',
        b"[]",
        b"{}",
        b"[",
        b"{",
        b'{"a"',
        b"nul",
        b"NaN",
        b"Infinity",
        b"\x00",
        b"\xff",
    ),
    *(b"\xef\xbb\xbf{}", '{"name": "é"}'.encode("latin-1"), '{"name": "x"}'.encode("utf-16"), b"{} {}", b"{'name': 1}"),
    *(b'{"name": "\\ud800"}', b'{"name": "\\u0000"}', b'{"name": 1, "name": "x"}', b"1" * 5000, b"1e999", b"-"),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"[" * 3000 + b"]" * 3000, b'{"a":' * 900 + b"1" + b"}" * 900),
    *(b'"' + b"x" * 300_000 + b'"', b"[" + b"0," * 50_000 + b"0]"),
)


def _familiar(draw: st.DrawFn, value: Any, key: str = "") -> Any:
    """The value with what there is in the place of what was made up, mostly."""
    if isinstance(value, dict):
        return {_familiar(draw, name): _familiar(draw, inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_familiar(draw, inner, key) for inner in value]
    if draw(st.integers(0, 15)) == 8:
        return value
    if isinstance(value, str):
        return _familiar_text(draw, value)
    if key.endswith("generation"):
        return draw(st.sampled_from(GENERATIONS)) if value is not None else None
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
def _json(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version) -> Any:
    """A value that the schema lets pass, or nearly."""
    value = _familiar(draw, draw(json_strategies.conforming(endpoint.body.render(version))))
    kind = draw(st.integers(0, 7))
    if kind == 3:
        return draw(json_strategies.nearly(st.just(value)))
    return _with_trap(draw, value) if kind == 4 else value


def _with_trap(draw: st.DrawFn, value: Any) -> Any:
    """The value with something odd in one place, be it the name of something."""
    if not isinstance(value, dict | list) or not value:
        return draw(_ODD)
    if isinstance(value, dict):
        key = draw(st.sampled_from(list(value)))
        if draw(st.integers(0, 5)) == 3:
            return {**{name: inner for name, inner in value.items() if name != key}, draw(ANY_TEXT): value[key]}
        return {**value, key: _with_trap(draw, value[key])}
    return [_with_trap(draw, value[0]), *value[1:]]


@st.composite
def _bodies(draw: st.DrawFn, endpoint: Endpoint, version: mv.Version) -> bytes:
    if endpoint.body is None:
        return draw(mostly(st.just(b""), st.sampled_from(_MONSTERS)))
    kind = draw(st.integers(0, 15))
    if kind == 7:
        return draw(st.sampled_from(_MONSTERS) | st.binary(max_size=20))
    value = draw(json_strategies.json_values()) if kind == 8 else draw(_json(endpoint, version))
    content = json.dumps(value, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    if kind == 9:
        at = draw(st.integers(0, len(content)))
        return content[:at] + draw(st.binary(max_size=2)) + content[at + draw(st.integers(0, 2)) :]
    return content


# --- the headers -----------------------------------------------------------------------------------------------------

_ODD_VERSIONS = (
    None,
    "",
    "latest",
    "LATEST",
    "1.40",
    "0.9",
    "1",
    "1.2.3",
    "x.y",
    "-1.2",
    "1.-2",
    "१.२",
    "1." + "9" * 5000,
)
_WEIRD = st.sampled_from(("", " ", ",", ";", "é", "\xff\xfe", "a" * 9000, "q=", "*", "\t", "%", "a/b;q=x"))
_ODD_HEADERS = {
    "Content-Type": st.sampled_from(
        ("application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "application/json;", "json", None)
    ),
    "Content-Length": st.sampled_from(
        (None, "", "0", "-1", "+1", "1e3", "x", "²", " 2", "9" * 19, "9" * 30, "9" * 5000)
    ),
    "Accept": st.sampled_from(
        (
            "*/*",
            "text/html",
            "text/plain",
            "application/*",
            "application/json;q=0",
            "x",
            "text/html;q=0.1,*/*",
            "/",
            ";;",
        )
    ),
    "X-Auth-Token": st.sampled_from((None, "", "user", "admin:project", ":", "::", "admin:", "é", "a" * 3000)),
    "X-Roles": st.sampled_from(("", "reader", "member", "service", ",", "admin,admin", "é")),
    "X-Project-Id": st.sampled_from(("", "project", "é")),
    "OpenStack-System-Scope": st.sampled_from(("", "all", "é")),
    "X-Openstack-Request-Id": st.sampled_from(("req-x", f"req-{NOWHERE}")),
    "Host": st.sampled_from(("", "a b", "[::1]:80", "é", "x:y")),
    "X-Forwarded-Proto": st.sampled_from(("https", "x")),
}


@st.composite
def _headers(draw: st.DrawFn, version: str | None, length: int) -> dict[str, str]:
    headers: dict[str, str | None] = {
        "Host": "placement",
        "X-Auth-Token": "admin",
        "X-Roles": "admin,service",
        "Content-Type": "application/json",
        "Content-Length": str(length),
        "OpenStack-API-Version": version,
    }
    if draw(st.integers(0, 3)) == 2:
        name = draw(st.sampled_from(list(_ODD_HEADERS)))
        headers[name] = draw(mostly(_ODD_HEADERS[name], _WEIRD, 4))
    return {name: value for name, value in headers.items() if value is not None}


# --- all of it -------------------------------------------------------------------------------------------------------


class Sent(NamedTuple):
    """A request, as it goes over the wire but for the quoting of its path."""

    method: str
    path: bytes
    query: bytes
    headers: dict[str, str]
    body: bytes

    @property
    def environ(self) -> dict[str, Any]:
        """What a WSGI server makes of it."""
        names = {name: name.upper().replace("-", "_") for name in self.headers}
        told = {
            name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}": _as_latin_1(self.headers[header])
            for header, name in names.items()
        }
        return {
            "REQUEST_METHOD": _as_latin_1(self.method),
            "SCRIPT_NAME": "",
            "PATH_INFO": self.path.decode("latin-1"),
            "QUERY_STRING": self.query.decode("latin-1"),
            "SERVER_NAME": "placement",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(self.body),
            "wsgi.errors": io.StringIO(),
            **told,
        }


def _as_latin_1(text: str) -> str:
    """The text as WSGI hands it on: a character for each byte."""
    return text if all(char <= "\xff" for char in text) else text.encode().decode("latin-1")


@st.composite
def sent(draw: st.DrawFn) -> Sent:
    """Anything."""
    method, path, endpoint = draw(st.sampled_from(_ASKED))
    version = draw(_versions(endpoint))
    body = draw(_bodies(endpoint, version))
    said = draw(mostly(st.just(f"placement {version}"), st.sampled_from(_ODD_VERSIONS).map(_said), 10))
    return Sent(
        method=draw(mostly(st.just(method), _METHODS, 12)),
        path=draw(_paths(path)),
        query=draw(_queries(endpoint, version)),
        headers=draw(_headers(said, len(body))),
        body=body,
    )


def _versions(endpoint: Endpoint) -> st.SearchStrategy[mv.Version]:
    """A version that has the endpoint, mostly."""
    last = endpoint.until.minor - 1 if endpoint.until else mv.LATEST.minor
    lifetime = st.integers(endpoint.since.minor, last)
    return mostly(lifetime, st.integers(0, mv.LATEST.minor), 10).map(lambda minor: mv.Version(1, minor))


def _said(version: str | None) -> str | None:
    return None if version is None else f"placement {version}"
