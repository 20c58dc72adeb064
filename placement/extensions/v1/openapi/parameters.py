"""Parameters of an operation in its path, query and headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from placement.extensions.v1.openapi.examples import Example
from placement.http import dry_run
from placement.http.api import Api
from placement.http.endpoint import Endpoint
from placement.schemas.declarations import JSONSchema
from placement.version_history import Version

_IN_PATH = re.compile(r"\{(\w+)\}")
#: A pattern of parameter names with the suffix of a group: the name, and the pattern of suffixes.
_GROUPED = re.compile(r"\^(\w+)\((.+)\)\?\$")


def of_versions(api: Api, version: Version) -> Iterator[dict[str, Any]]:
    """Yield the header that selects the version; nothing for an API without versions."""
    for name, value in api.versioning.headers(version):
        if name != "vary":
            # Client generators do not support ``const`` in a header.
            schema = {"type": "string", "enum": [value], "default": value}
            yield {"name": name, "in": "header", "required": True, "schema": schema}


def of_path(path: str, examples: Sequence[Example]) -> Iterator[dict[str, Any]]:
    """Yield the parameters in the path.

    They accept any text, because the handler validates them, mostly with 404.
    """
    for name in _IN_PATH.findall(path):
        schema = {"type": "string", "minLength": 1}
        values = {example.name: {"value": example.path[name]} for example in examples}
        yield {"name": name, "in": "path", "required": True, "schema": schema, **_examples(values)}


def of_query(endpoint: Endpoint, version: Version, examples: Sequence[Example]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of the query.

    Parameters of suffixed groups have no fixed names.  They are described as properties of one object, and sent as
    separate parameters.
    """
    if endpoint.query is None:
        return
    schema, fields = endpoint.query.render(version), endpoint.query.fields(version)
    named: JSONSchema = dict(schema.get("properties", {}))
    suffixed: JSONSchema = {}
    for expression, value in schema.get("patternProperties", {}).items():
        if grouped := _GROUPED.fullmatch(expression):
            named[grouped[1]], fields[grouped[1]] = value, fields[expression]
            suffixed[f"^{grouped[1]}{grouped[2]}$"] = value
    for name, value in named.items():
        since = fields[name].repeated_since
        repeated = since is not None and version >= since
        rendered = {"type": "array", "items": value, "minItems": 1} if repeated else value
        required = {"required": True} if name in schema.get("required", ()) else {}
        values = {}
        for example in examples:
            if texts := example.values(name):
                values[example.name] = {"value": texts if repeated else texts[-1]}
        meaning = {"description": fields[name].text} if fields[name].text else {}
        yield {"name": name, "in": "query", **meaning, **required, "schema": rendered, **_examples(values)}
    if suffixed:
        groups = {"type": "object", "patternProperties": suffixed, "additionalProperties": False}
        text = (
            "Parameters of suffixed groups, such as resources1: each property is a separate parameter. "
            "A parameter that may be repeated without a suffix may also be repeated with one."
        )
        shape = {"style": "form", "explode": True, "schema": groups}
        yield {"name": "groups", "in": "query", "description": text, **shape, **_examples(_groups(suffixed, examples))}


def _groups(suffixed: Iterable[str], examples: Sequence[Example]) -> dict[str, Any]:
    """Return the parameters of suffixed groups in examples, by the name of the example."""
    values = {}
    for example in examples:
        groups = {name: value for name, value in example.query if any(re.search(pattern, name) for pattern in suffixed)}
        if groups:
            values[example.name] = {"value": groups}
    return values


def of_dry_runs(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    """Yield the parameter and the header that request a dry run, if the endpoint supports it."""
    if endpoint.dry_run is not None:
        text = "Whether to check the write and roll it back instead of committing it."
        schema = {"type": "string", "enum": ["true", "false"]}
        yield {"name": dry_run.PARAMETER, "in": "query", "description": text, "schema": schema}
        yield {"name": dry_run.HEADER_NAME, "in": "header", "description": text, "schema": schema}


def _examples(values: dict[str, Any]) -> dict[str, Any]:
    return {"examples": values} if values else {}
