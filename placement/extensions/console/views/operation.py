"""The operations of an OpenAPI document, flattened for display."""

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
#: The first version of each operation, by path, method and "", and of each parameter, by path, method and name.
FirstVersions = Mapping[tuple[str, str, str], Version]

#: Spelling of tags that are not capitalized like other words.
_NOUNS = {"openapi": "OpenAPI"}
#: Keywords of a schema shown beside its type.
_KEYWORDS = ("enum", "const", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "default")


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter of an operation.

    Attributes:
        place: Location in the request, as ``in`` of OpenAPI.
        values: Type and bounds, in words.
        since: First version with the parameter; None if the operation always had it.
    """

    name: str
    place: str
    is_required: bool
    values: str
    description: str
    since: Version | None


@dataclass(frozen=True, slots=True)
class OperationReply:
    """A response: its status, its meaning, and its JSON schema as text; None without a schema."""

    status: str
    description: str
    schema: str | None


@dataclass(frozen=True, slots=True)
class ShownExample:
    """An example of a request and its response.

    Attributes:
        request: The method and the URL.
        body: The JSON body of the request as text; None without a body.
        status: The status of the response; empty if not part of the example.
        reply: The JSON body of the response as text; None if not part of the example.
    """

    request: str
    body: str | None
    status: str
    reply: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    Attributes:
        ident: An identifier that is unique among the operations, without spaces.
        noun: The kind of object; operations are grouped by it.
        rule: The policy rule; empty without one.
        since: The first version with the operation; None in an unversioned API.
        body: The JSON schema of the body as text; None without a body.
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


def operations(document: JSONObject, prefix: str, first_versions: FirstVersions) -> Iterator[Operation]:
    """Yield the operations of an OpenAPI 3.1 document, in its order.

    Args:
        document: The document.
        prefix: Prefix of the paths.
        first_versions: First versions of the operations and parameters; empty for an unversioned API.
    """
    for path, methods in _resolve_references(document, document["paths"]).items():
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
                since=first_versions.get((path, method, "")),
                parameters=tuple(
                    _parameter(parameter, path, method, first_versions) for parameter in operation["parameters"]
                ),
                body=_schema(operation.get("requestBody", {})),
                replies=tuple(
                    OperationReply(status, response["description"], _schema(response))
                    for status, response in responses.items()
                ),
                examples=tuple(_examples(method, prefix + path, operation, responses)),
            )


def _parameter(parameter: JSONObject, path: str, method: str, first_versions: FirstVersions) -> OperationParameter:
    since = first_versions.get((path, method, parameter["name"]))
    return OperationParameter(
        parameter["name"],
        parameter["in"],
        parameter.get("required", False),
        _in_words(parameter["schema"]),
        parameter.get("description", ""),
        None if since == first_versions.get((path, method, "")) else since,
    )


def _resolve_references(document: JSONObject, part: Any) -> Any:
    """Return a part of the document with each ``$ref`` replaced by its target."""
    if isinstance(part, list):
        return [_resolve_references(document, item) for item in part]
    if not isinstance(part, Mapping):
        return part
    if "$ref" in part:
        names = part["$ref"].removeprefix("#/").split("/")
        return _resolve_references(document, functools.reduce(operator.getitem, names, document))
    return {key: _resolve_references(document, value) for key, value in part.items()}


def _schema(element: JSONObject) -> str | None:
    """Return the schema of the first content type as text; None without a schema."""
    for content in element.get("content", {}).values():
        return json.dumps(content["schema"], indent=2) if "schema" in content else None
    return None


def _in_words(schema: JSONObject) -> str:
    """Return the type and the bounds of a value on one line."""
    kind = schema.get("type", "any")
    words = [" or ".join(kind) if isinstance(kind, list) else str(kind)]
    words += [f"{name} {json.dumps(schema[name])}" for name in _KEYWORDS if name in schema]
    if "items" in schema:
        words.append(f"of {_in_words(schema['items'])}")
    return ", ".join(words)


def _examples(
    method: str, path: str, operation: JSONObject, responses: Mapping[str, JSONObject]
) -> Iterator[ShownExample]:
    """Yield the examples of an operation, first the examples with a response.

    The parameters, body and response of an example share its name.  Examples without a value for each part of the path
    are skipped.

    Args:
        path: The path with its prefix, and with the names of values in braces.
        responses: The responses of the operation, by status.
    """
    bodies = _values(operation.get("requestBody", {}))
    replies = {
        name: (status, value) for status, response in responses.items() for name, value in _values(response).items()
    }
    values = [(parameter, _example_values(parameter)) for parameter in operation["parameters"]]
    names = dict.fromkeys(
        name for by_name in (*(by_name for _, by_name in values), bodies, replies) for name in by_name
    )
    for name in sorted(names, key=lambda name: name not in replies):
        status, reply = replies.get(name, ("", None))
        url = _url(path, [(parameter, by_name[name]) for parameter, by_name in values if name in by_name])
        if "{" not in url:
            yield ShownExample(f"{method} {url}", _text(bodies.get(name)), status, _text(reply))


def _values(element: JSONObject) -> dict[str, Any]:
    """Return the example bodies, by name."""
    contents = element.get("content", {}).values()
    return {name: example["value"] for content in contents for name, example in _named_examples(content)}


def _example_values(parameter: JSONObject) -> dict[str, Any]:
    return {name: example["value"] for name, example in _named_examples(parameter)}


def _named_examples(element: JSONObject) -> list[tuple[str, JSONObject]]:
    return [*element.get("examples", {}).items()]


def _url(path: str, arguments: list[tuple[JSONObject, Any]]) -> str:
    query: list[tuple[str, str]] = []
    for parameter, value in arguments:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(value))
        elif parameter["in"] == "query":
            query += _pairs(parameter["name"], value)
    return f"{path}?{query_text.text(query)}" if query else path


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    """Return a parameter as query pairs: one per list value, one per property of an object."""
    if isinstance(value, list):
        return [(name, item) for item in value]
    if isinstance(value, Mapping):
        return [pair for key, item in value.items() for pair in _pairs(key, item)]
    return [(name, value)]


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, indent=2, ensure_ascii=False)
