"""Normalization and comparison of responses."""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import Any

from tools.baremetal.servers import Reply, Request, Server

#: Headers that clients read.
HEADERS = (
    "content-type",
    "location",
    "x-openstack-ironic-api-version",
    "x-openstack-ironic-api-minimum-version",
    "x-openstack-ironic-api-maximum-version",
)
#: Headers that must be present, with any value.
PRESENT = ("x-openstack-request-id", "openstack-request-id")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?")
#: Names that the original lists in the order of a set.
TRAITS = re.compile(r"(?<=have the requested traits )[^.]+(?=\.)")
#: Minimum length of a compared word, in characters; shorter words occur in texts by chance.
_MIN_WORD_LENGTH = 3

Comparable = dict[str, Any]


def comparable(reply: Reply, server: Server) -> Comparable:
    """Return the compared parts of a response: status, headers and body."""
    headers = {name: reply.headers.get(name) for name in HEADERS}
    if headers["content-type"]:
        headers["content-type"] = headers["content-type"].partition(";")[0].lower()
    if headers["location"]:
        headers["location"] = plain(headers["location"], server)
    headers |= {name: "there" if name in reply.headers else None for name in PRESENT}
    return {"status": reply.status, "headers": headers, "body": document(reply.text, server)}


def document(text: str, server: Server) -> Any:
    """Return a parsed body with dates, base URLs and generated uuids replaced."""
    try:
        parsed = json.loads(text) if text else None
    except ValueError:
        return f"not JSON: {text}"
    return error_document(parsed, server) if _is_error(parsed) else plain(parsed, server)


def _is_error(parsed: Any) -> bool:
    return isinstance(parsed, dict) and parsed.keys() == {"error_message"} and isinstance(parsed["error_message"], str)


def error_document(parsed: dict[str, str], server: Server) -> dict[str, Any]:
    """Return an error document with its embedded JSON parsed."""
    try:
        inner = json.loads(parsed["error_message"])
    except ValueError:
        inner = parsed["error_message"]
    return {"error_message": plain(inner, server)}


def plain(value: Any, server: Server) -> Any:
    """Return a document with dates, base URLs and generated uuids replaced."""
    if isinstance(value, dict):
        parts = {name: sorted(part) if name.startswith("enabled_") else part for name, part in value.items()}
        return {plain(name, server): plain(part, server) for name, part in parts.items()}
    if isinstance(value, list):
        return [plain(part, server) for part in value]
    if not isinstance(value, str):
        return value
    if DATE.fullmatch(value):
        return "<date>"
    value = TRAITS.sub(lambda names: ", ".join(sorted(names[0].split(", "))), value.replace(server.base, "<base>"))
    for symbol, uuid in server.symbols.items():
        value = value.replace(uuid, symbol)
    return value


def error_text(reply: Comparable) -> str | None:
    """Return the message of an error; None for other responses."""
    body = reply["body"]
    if not isinstance(body, dict) or "error_message" not in body:
        return None
    inner = body["error_message"]
    return str(inner.get("faultstring", inner.get("description"))) if isinstance(inner, dict) else str(inner)


def without_sentences(request: Request, a: Comparable, b: Comparable) -> None:
    """Replace the messages of errors by marks, since B may word them differently.

    For 404 and 409 the marks contain the names in the message, so that B must name the same objects as A.  For 400 they
    do not: each service may report a different mistake of the request.
    """
    texts = error_text(a), error_text(b)
    if None in texts:
        return
    named = [word for word in words(request) if word in str(texts[0])] if a["status"] in (404, 409) else []
    marks = ["<sentence>" + "".join(f" {word}" for word in named if word in str(text)) for text in texts]
    for reply, mark in zip((a, b), marks, strict=True):
        inner = reply["body"]["error_message"]
        if isinstance(inner, dict):
            inner[next(name for name in ("faultstring", "description") if name in inner)] = mark


def words(request: Request) -> list[str]:
    """Return the distinct strings that a request contains as values."""
    values = [urllib.parse.unquote(segment) for segment in request.route[1:]]
    values += [value for _, value in request.query]
    values += _strings(request.body)
    return [word for word in dict.fromkeys(values) if _MIN_WORD_LENGTH <= len(word) <= 80]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for part in value.values() for word in _strings(part)]
    if isinstance(value, list):
        return [word for part in value for word in _strings(part)]
    return [value] if isinstance(value, str) else []


def differences(a: Any, b: Any, at: str = "") -> list[str]:
    """Return a line for each place at which two documents differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        lines = []
        for name in sorted(a.keys() | b.keys()):
            place = f"{at}.{name}" if at else name
            if name not in b:
                lines.append(f"{place}: only in A: {short(a[name])}")
            elif name not in a:
                lines.append(f"{place}: only in B: {short(b[name])}")
            else:
                lines += differences(a[name], b[name], place)
        return lines
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for n, pair in enumerate(zip(a, b, strict=True)) for line in differences(*pair, f"{at}[{n}]")]
    return [] if a == b and isinstance(a, bool) == isinstance(b, bool) else [f"{at}: A={short(a)} B={short(b)}"]


def short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 200 else f"{text[:200]}..."
