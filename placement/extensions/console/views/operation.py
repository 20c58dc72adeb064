"""The operations of an OpenAPI document, flat: what a page shows of each."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from placement.extensions.v1 import query_text
from placement.version_history import Version

JSONObject = Mapping[str, Any]
#: The first version that has an operation, by path and method, and an empty name; or a parameter of it, by its name.
FirstVersions = Mapping[tuple[str, str, str], Version]

#: Tags that are names.
_NOUNS = {"openapi": "OpenAPI"}
#: The keywords of a schema that are shown beside its type.
_SHOWN = ("enum", "const", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "default")


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter: its name, where it is sent, and what its values are, in words.

    Args:
        since: The first version that has it; None if that is the first of the operation.
    """

    name: str
    place: str
    is_required: bool
    values: str
    description: str
    since: Version | None


@dataclass(frozen=True, slots=True)
class OperationReply:
    """A reply: its status, what it means, and its JSON schema as text, if it has one."""

    status: str
    description: str
    schema: str | None


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


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    Args:
        ident: Unlike that of every other operation, and without blanks.
        noun: What it is about: operations of the same noun belong together.
        rule: The rule of the policy; empty for none.
        since: The first version that has it; None in an API without versions.
        body: The JSON schema of the body as text; None for no body.
    """

    ident: str
    noun: str
    method: str
    path: str
    summary: str
    rule: str
    since: Version | None
    parameters: tuple[OperationParameter, ...]
    body: str | None
    replies: tuple[OperationReply, ...]
    examples: tuple[ShownExample, ...]


def operations(document: JSONObject, prefix: str, first: FirstVersions) -> Iterator[Operation]:
    """Yield the operations of an OpenAPI 3.1 document, in its order.

    Args:
        document: The document.
        prefix: What goes before its paths.
        first: Since when there are the operations and their parameters; empty for an API without versions.
    """
    for path, methods in _resolved(document, document["paths"]).items():
        for verb, operation in methods.items():
            method = verb.upper()
            responses = operation["responses"]
            yield Operation(
                ident=operation["operationId"],
                noun=_NOUNS.get(noun := operation["tags"][0], noun.replace("_", " ").capitalize()),
                method=method,
                path=prefix + path,
                summary=operation["summary"],
                rule=operation.get("x-policy-rule", ""),
                since=first.get((path, method, "")),
                parameters=tuple(_taken(parameter, path, method, first) for parameter in operation["parameters"]),
                body=_schema(operation.get("requestBody", {})),
                replies=tuple(
                    OperationReply(status, of["description"], _schema(of)) for status, of in responses.items()
                ),
                examples=tuple(_examples(method, prefix + path, operation, responses)),
            )


def _taken(parameter: JSONObject, path: str, method: str, first: FirstVersions) -> OperationParameter:
    since = first.get((path, method, parameter["name"]))
    return OperationParameter(
        parameter["name"],
        parameter["in"],
        parameter.get("required", False),
        _in_words(parameter["schema"]),
        parameter.get("description", ""),
        None if since == first.get((path, method, "")) else since,
    )


def _resolved(document: JSONObject, part: Any) -> Any:
    """Return a part of the document, with what each ``$ref`` in it names in place of the reference."""
    if isinstance(part, list):
        return [_resolved(document, each) for each in part]
    if not isinstance(part, Mapping):
        return part
    if "$ref" in part:
        names = part["$ref"].removeprefix("#/").split("/")
        return _resolved(document, functools.reduce(operator.getitem, names, document))
    return {key: _resolved(document, value) for key, value in part.items()}


def _schema(holder: JSONObject) -> str | None:
    """Return the schema of the first content, as text."""
    for content in holder.get("content", {}).values():
        return json.dumps(content["schema"], indent=2) if "schema" in content else None
    return None


def _in_words(schema: JSONObject) -> str:
    """Return the type and the bounds of the values in one line."""
    kind = schema.get("type", "any")
    words = [" or ".join(kind) if isinstance(kind, list) else str(kind)]
    words += [f"{name} {json.dumps(schema[name])}" for name in _SHOWN if name in schema]
    if "items" in schema:
        words.append(f"of {_in_words(schema['items'])}")
    return ", ".join(words)


def _examples(
    method: str, path: str, operation: JSONObject, responses: Mapping[str, JSONObject]
) -> Iterator[ShownExample]:
    """Yield the examples of an operation, those with a reply first; one without a value of the path is left out.

    The document has the parts of an example in different places, under the same name.

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
    return f"{path}?{query_text.text(query)}" if query else path


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    """Return a parameter as it is sent: each value of a list by itself, each property of an object as a parameter."""
    if isinstance(value, list):
        return [(name, each) for each in value]
    if isinstance(value, Mapping):
        return [pair for key, each in value.items() for pair in _pairs(key, each)]
    return [(name, value)]


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, indent=2, ensure_ascii=False)
