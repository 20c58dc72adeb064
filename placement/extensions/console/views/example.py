"""The examples of an operation of an OpenAPI document: whole requests with their replies.

The document has the parts of an example in different places, under the same name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from placement.extensions.console.views.query_form import query_string

JSONObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A request, and the reply to it.

    Args:
        request: The method and the URL.
        body: The JSON document that is sent, as text; None for none.
        status: The status of the reply; empty if the example does not show it.
        reply: The JSON document of the reply, as text; None if the example does not show it.
    """

    request: str
    body: str | None
    status: str
    reply: str | None


def examples(
    method: str, path: str, operation: JSONObject, responses: Mapping[str, JSONObject]
) -> Iterator[ShownExample]:
    """Yield the examples of an operation, those with a reply first; one without a value of the path is left out.

    Args:
        method: Its method.
        path: Its path, as it is sent, with names of values in braces.
        operation: The operation.
        responses: Its responses, by status.
    """
    bodies = _values(operation.get("requestBody", {}))
    replies = {name: (status, value) for status, of in responses.items() for name, value in _values(of).items()}
    values = [(parameter, _given(parameter)) for parameter in operation["parameters"]]
    names = dict.fromkeys(name for given in (*(given for _, given in values), bodies, replies) for name in given)
    for name in sorted(names, key=lambda name: name not in replies):
        status, reply = replies.get(name, ("", None))
        url = _url(path, [(parameter, given[name]) for parameter, given in values if name in given])
        if "{" not in url:
            yield ShownExample(f"{method} {url}", _text(bodies.get(name)), status, _text(reply))


def _values(holder: JSONObject) -> dict[str, Any]:
    """Return the example values of a body, by name."""
    return {name: each["value"] for of in holder.get("content", {}).values() for name, each in _named(of)}


def _given(parameter: JSONObject) -> dict[str, Any]:
    return {name: each["value"] for name, each in _named(parameter)}


def _named(holder: JSONObject) -> list[tuple[str, JSONObject]]:
    return [*holder.get("examples", {}).items()]


def _url(path: str, given: list[tuple[JSONObject, Any]]) -> str:
    query: list[tuple[str, str]] = []
    for parameter, value in given:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(value))
        elif parameter["in"] == "query":
            query += _pairs(parameter["name"], value)
    return f"{path}?{query_string(query)}" if query else path


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    """Return a parameter as it is sent: each value of a list by itself, each property of an object as a parameter."""
    if isinstance(value, list):
        return [(name, each) for each in value]
    if isinstance(value, Mapping):
        return [pair for key, each in value.items() for pair in _pairs(key, each)]
    return [(name, value)]


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, indent=2, ensure_ascii=False)
