"""The JSON schema of the format, and findings for values that do not conform to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import jsonschema_rs

from placement import microversion as mv
from placement.extensions.loading.yaml_source import FileFinding, InvalidFile, YamlSource
from placement.schemas.declarations import RESOURCE_CLASS_NAME, JSONSchema, Object
from placement.schemas.inventory import RECORD
from placement.schemas.validator import pattern

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_TOTAL = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 255}, "uniqueItems": True}


def _describe(schema: JSONSchema, description: str) -> JSONSchema:
    return {"description": description, **schema}


_PROVIDER: JSONSchema = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _describe(
            {"type": "string", "minLength": 1},
            "The name, 1 to 200 characters. host[1-3] describes three providers, host1 to host3, with the same values; "
            "host[01-20,30] keeps the zeros. In a child's name, {parent} is the name of its parent.",
        ),
        "uuid": _describe(
            {"type": "string", "pattern": _UUID},
            "Identifies the provider, so that it can be renamed. Without a uuid, the name identifies the provider, "
            "and a new provider gets a random uuid.",
        ),
        "parent": _describe(
            {"type": ["string", "null"]},
            "The name or the uuid of the parent, in this file or in the database; null for a root.",
        ),
        "inventories": _describe(
            {
                "type": "object",
                "patternProperties": {RESOURCE_CLASS_NAME: {"anyOf": [_TOTAL, {"$ref": "#/$defs/inventory"}]}},
                "additionalProperties": False,
            },
            "The inventories by resource class: the total, or an object. Missing classes that begin with CUSTOM_ are "
            "created.",
        ),
        "traits": _describe(_NAMES, "All traits of the provider. Missing traits that begin with CUSTOM_ are created."),
        "aggregates": _describe(
            _NAMES, "All aggregates of the provider: uuids, or names defined at the top of the file."
        ),
        "children": _describe(
            {"type": "array", "items": {"$ref": "#/$defs/provider"}}, "Child providers, in the same form."
        ),
    },
}

SCHEMA: JSONSchema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A file for placement-manage load",
    "type": "object",
    "required": ["providers"],
    "additionalProperties": False,
    "properties": {
        "aggregates": _describe(
            {
                "type": "object",
                "propertyNames": {"minLength": 1},
                "additionalProperties": {"type": "string", "pattern": _UUID},
            },
            "Aggregate uuids by name, for use in this file.",
        ),
        "providers": {"type": "array", "items": {"$ref": "#/$defs/provider"}},
    },
    "$defs": {"provider": _PROVIDER, "inventory": Object(*RECORD).render(mv.HISTORY.latest)},
}

#: Sentences that replace the library's, which quote the whole value.
_SENTENCES = {
    "uniqueItems": "This list contains duplicate items.",
}
#: JSON types in words that authors of YAML know.
_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "string": "a string (in quotes if it could be read as another type)",
    "integer": "an integer",
    "number": "a number",
    "null": "null",
}
_IS_VALID = jsonschema_rs.Draft202012Validator(SCHEMA).is_valid
_EXPLAIN = jsonschema.Draft202012Validator(SCHEMA)
#: Maximum number of characters shown of a sentence of the library.
_MAX_LENGTH = 200


def is_uuid(text: str) -> bool:
    """Whether the text is a uuid with dashes."""
    return re.fullmatch(_UUID, text) is not None


def check(source: YamlSource) -> None:
    """Raise InvalidFile, with a finding for each mistake, unless the file conforms to the schema."""
    if not _IS_VALID(source.value):
        raise InvalidFile(
            finding for error in _EXPLAIN.iter_errors(source.value) for finding in _findings(source, error)
        )


def _findings(source: YamlSource, error: jsonschema.ValidationError) -> Iterator[FileFinding]:
    """Yield the findings for an error of the library: a single one, or one for each unknown property."""
    while error.context:  # the errors of the two forms of an inventory
        error = max(error.context, key=_preference)
    path: list[str | int] = list(error.absolute_path)
    names = ".".join(step for step in path if isinstance(step, str))
    prefix = f"{names}: " if names else ""
    if error.validator == "additionalProperties":
        for name in _additional_properties(error):
            yield FileFinding(source.line([*path, name]), f"{prefix}{_unknown_message(error, name)}")
    else:
        yield FileFinding(source.line(path), prefix + _sentence(error))


def _preference(error: jsonschema.ValidationError) -> tuple[bool, bool]:
    """Return the rank of an error of one form; an error inside a value outranks a value of the wrong type."""
    return error.validator != "type" or len(error.path) > 0, error.validator == "additionalProperties"


def _additional_properties(error: jsonschema.ValidationError) -> list[str]:
    """Return the properties that the schema does not define."""
    schema: Any = error.schema
    patterns = [pattern(expression) for expression in schema.get("patternProperties", {})]
    properties = schema.get("properties", {})
    instance: Any = error.instance
    return [
        name
        for name in instance
        if name not in properties and not any(expression.search(name) for expression in patterns)
    ]


def _unknown_message(error: jsonschema.ValidationError, name: str) -> str:
    schema: Any = error.schema
    if "patternProperties" in schema:
        return f"{name!r} is not a resource class: names consist of A-Z, 0-9 and _."
    return f"{name!r} is unknown here; use one of {', '.join(sorted(schema['properties']))}."


def _sentence(error: jsonschema.ValidationError) -> str:
    schema: Any = error.schema
    if error.validator == "type":
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        return f"This must be {' or '.join(_TYPES[name] for name in types)}."
    if error.validator == "pattern" and error.validator_value == _UUID:
        return f"{error.instance!r} is not a uuid."
    text = _SENTENCES.get(str(error.validator)) or error.message
    if len(text) > _MAX_LENGTH:
        text = f"{text[:_MAX_LENGTH]}..."
    return text if text.endswith(".") else f"{text}."
