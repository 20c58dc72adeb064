"""The operations of an OpenAPI document, flat: what a page shows of each."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

JSONObject = Mapping[str, Any]

#: The keywords of a schema that are shown beside its type.
_SHOWN = ("enum", "const", "format", "pattern", "minimum", "maximum", "minLength", "maxLength", "default")


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A parameter: its name, where it is sent, and what its values are, in words."""

    name: str
    place: str
    is_required: bool
    values: str
    description: str


@dataclass(frozen=True, slots=True)
class OperationReply:
    """A reply: its status, what it means, and its JSON schema as text, if it has one."""

    status: str
    description: str
    schema: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    Args:
        rule: The rule of the policy; empty for none.
        body: The JSON schema of the body as text; None for no body.
    """

    method: str
    path: str
    summary: str
    rule: str
    parameters: tuple[OperationParameter, ...]
    body: str | None
    replies: tuple[OperationReply, ...]


def operations(document: JSONObject) -> Iterator[Operation]:
    """Yield the operations of an OpenAPI 3.1 document, in its order."""
    for path, methods in _resolved(document, document["paths"]).items():
        for method, operation in methods.items():
            yield Operation(
                method.upper(),
                path,
                operation["summary"],
                operation.get("x-policy-rule", ""),
                tuple(_taken(parameter) for parameter in operation["parameters"]),
                _schema(operation.get("requestBody", {})),
                tuple(_answered(status, reply) for status, reply in operation["responses"].items()),
            )


def _taken(parameter: JSONObject) -> OperationParameter:
    return OperationParameter(
        parameter["name"],
        parameter["in"],
        parameter.get("required", False),
        _in_words(parameter["schema"]),
        parameter.get("description", ""),
    )


def _answered(status: str, reply: JSONObject) -> OperationReply:
    return OperationReply(status, reply["description"], _schema(reply))


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
