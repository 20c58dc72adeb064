"""One-line descriptions of invalid values: the field, the problem and the valid values (docs: v1-invalid)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from placement.errors import Violation
from placement.schemas.declarations import JSONSchema
from placement.schemas.validator import pattern

#: Maximum number of characters shown of a value.
_MAX_SHOWN = 60
#: Maximum number of names or values in a list.
_MAX_LISTED = 12
_UUID = "a uuid, for example 7c1f2d34-9a5b-4e6f-8a7b-0c1d2e3f4a5b"


def violation(error: Any, above: Sequence[Any] = ()) -> Violation:
    """Return the description of a validation error of the jsonschema library.

    Args:
        error: A ``jsonschema.ValidationError``.
        above: The path from the whole value to the one that was validated.

    Raises:
        ValueError, RecursionError: The value cannot be shown.
    """
    path, value, schema = [*above, *error.absolute_path], error.instance, error.schema
    match error.validator:
        case "required":
            missing = next(name for name in error.validator_value if name not in value)
            return Violation(_field_name([*path, missing]), "is missing", describe_valid(schema["properties"][missing]))
        case "additionalProperties":
            unknown = next(key for key in sorted(value) if not _is_known(key, schema))
            return Violation(_field_name([*path, unknown]), "is unknown", _suggestion(unknown, schema))
        case "minProperties" | "minItems":
            problem = "is empty"
        case "uniqueItems":
            problem = f"has {_json_text(_repeated_value(value))} twice"
        case "minLength" | "maxLength" if value:
            problem = f"has {len(value)} characters"
        case _:
            problem = f"is {_json_text(value)}"
    return Violation(_field_name(path), problem, describe_valid(schema))


def unexplained_violation(path: Iterable[Any], schema: JSONSchema) -> Violation:
    """Return the description of a value that is too large or too deep to be explained."""
    return Violation(_field_name(path), "is invalid, and too large or too deep to say more", describe_valid(schema))


def _field_name(path: Iterable[Any]) -> str:
    """Return the name of a field: ``["requests", 0, "consumer"]`` is ``requests[0].consumer``."""
    text = ""
    for step in path:
        if isinstance(step, str) and re.fullmatch(r"[\w-]+", step):
            text += f".{step}" if text else step
        else:
            text += f"[{_json_text(step)}]"
    return text


def describe_valid(schema: JSONSchema) -> str:
    """Return a description of the values that conform to a schema: its ``description``, if it has one."""
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return f"one of {_enumerate(schema['enum'])}"
    if "anyOf" in schema:
        return ", or ".join(dict.fromkeys(describe_valid(option) for option in _null_first(schema["anyOf"])))
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    return " or ".join(_KINDS[kind](schema) for kind in sorted(kinds, key=lambda kind: kind != "null"))


def _null_first(schemas: Iterable[JSONSchema]) -> list[JSONSchema]:
    """Return the schemas with null first, so that "or null" does not follow an example at the end of a description."""
    return sorted(schemas, key=lambda schema: schema.get("type") != "null")


def _text(schema: JSONSchema) -> str:
    if schema.get("format") == "uuid":
        return _UUID
    if "pattern" in schema:
        return f"a string that matches {schema['pattern']}"
    minimum, maximum = schema.get("minLength", 0), schema.get("maxLength")
    if maximum is not None:
        return (
            f"a string of {minimum} to {maximum} characters" if minimum else f"a string of up to {maximum} characters"
        )
    return "a non-empty string" if minimum else "a string"


def _range(kind: str, schema: JSONSchema) -> str:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if minimum is None:
        return kind
    return f"{kind} from {minimum}" if maximum is None else f"{kind} from {minimum} to {maximum}"


def _items(schema: JSONSchema) -> str:
    kind = "a non-empty list" if schema.get("minItems") else "a list"
    return f"{kind}, each item {describe_valid(schema['items'])}"


def _members(schema: JSONSchema) -> str:
    if "propertyNames" in schema:
        return f"an object whose names are {schema['propertyNames']['description']}"
    names = schema.get("required") or schema.get("properties")
    return f"an object with {_enumerate(names)}" if names else "an object"


_KINDS: Mapping[str | None, Callable[[JSONSchema], str]] = {
    "null": lambda _schema: "null",
    "string": _text,
    "integer": lambda schema: _range("a whole number", schema),
    "number": lambda schema: _range("a number", schema),
    "boolean": lambda _schema: "true or false",
    "array": _items,
    "object": _members,
    None: lambda _schema: "any value",
}


def _is_known(property_name: str, schema: JSONSchema) -> bool:
    patterns = schema.get("patternProperties", ())
    return property_name in schema.get("properties", ()) or any(
        pattern(expression).search(property_name) for expression in patterns
    )


def _suggestion(unknown: str, schema: JSONSchema) -> str:
    """Return the name that was probably meant, or else all valid names."""
    if close := get_close_matches(unknown, schema.get("properties", ()), 1):
        return f"perhaps {close[0]}"
    if "propertyNames" in schema:
        return str(schema["propertyNames"]["description"])
    return f"one of {_enumerate(schema['properties'])}" if schema.get("properties") else "nothing"


def _enumerate(values: Iterable[Any]) -> str:
    """Return values as "a, b and c"."""
    words = [value if isinstance(value, str) else _json_text(value) for value in values]
    if len(words) > _MAX_LISTED:
        words = [*words[:_MAX_LISTED], f"{len(words) - _MAX_LISTED} others"]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _repeated_value(values: Sequence[Any]) -> Any:
    seen: list[str] = []
    for value in values:
        text = json.dumps(value, sort_keys=True)
        if text in seen:
            return value
        seen.append(text)
    return values


def _json_text(value: Any) -> str:
    """Return a value as JSON, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
