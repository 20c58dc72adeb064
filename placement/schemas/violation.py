"""Describes an invalid value in one line: the field, the problem and what is expected (docs: v1-invalid)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from placement.errors import Violation
from placement.schemas.declarations import JSONSchema
from placement.schemas.validator import pattern

#: Characters of a value that are shown.
_SHOWN = 60
#: Names of members, and values of a choice, that are listed.
_LISTED = 12
_UUID = "a uuid, for example 7c1f2d34-9a5b-4e6f-8a7b-0c1d2e3f4a5b"


def violation(error: Any, above: Sequence[Any] = ()) -> Violation:
    """Return a validation error of the jsonschema library in one line.

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
            return Violation(name([*path, missing]), "is missing", expected(schema["properties"][missing]))
        case "additionalProperties":
            unknown = next(each for each in sorted(value) if not _is_known(each, schema))
            return Violation(name([*path, unknown]), "is unknown", _known(unknown, schema))
        case "minProperties" | "minItems":
            problem = "is empty"
        case "uniqueItems":
            problem = f"has {_shown(_repeated(value))} twice"
        case "minLength" | "maxLength" if value:
            problem = f"has {len(value)} characters"
        case _:
            problem = f"is {_shown(value)}"
    return Violation(name(path), problem, expected(schema))


def unexplained(path: Iterable[Any], schema: JSONSchema) -> Violation:
    """Return the violation in a value that is too large or too deep to be looked at."""
    return Violation(name(path), "is invalid, and too large or too deep to say more", expected(schema))


def name(path: Iterable[Any]) -> str:
    """Return the name of a field: ``["requests", 0, "consumer"]`` is ``requests[0].consumer``."""
    words = ""
    for step in path:
        if isinstance(step, str) and re.fullmatch(r"[\w-]+", step):
            words += f".{step}" if words else step
        else:
            words += f"[{_shown(step)}]"
    return words


def expected(schema: JSONSchema) -> str:
    """Return in words which values conform to a schema: its description, if it has one."""
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return f"one of {_listed(schema['enum'])}"
    if "anyOf" in schema:
        return ", or ".join(dict.fromkeys(expected(each) for each in _null_first(schema["anyOf"])))
    kinds = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    return " or ".join(_KINDS[kind](schema) for kind in sorted(kinds, key=lambda kind: kind != "null"))


def _null_first(schemas: Iterable[JSONSchema]) -> list[JSONSchema]:
    """Return schemas so that an example, which ends the words of one, is not followed by "or null"."""
    return sorted(schemas, key=lambda each: each.get("type") != "null")


def _text(schema: JSONSchema) -> str:
    if schema.get("format") == "uuid":
        return _UUID
    if "pattern" in schema:
        return f"a text that matches {schema['pattern']}"
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if most is not None:
        return f"a text of {least} to {most} characters" if least else f"a text of up to {most} characters"
    return "a text that is not empty" if least else "a text"


def _range(what: str, schema: JSONSchema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None:
        return what
    return f"{what} from {least}" if most is None else f"{what} from {least} to {most}"


def _items(schema: JSONSchema) -> str:
    least = "that is not empty, " if schema.get("minItems") else ""
    return f"a list {least}of which each is {expected(schema['items'])}"


def _members(schema: JSONSchema) -> str:
    if "propertyNames" in schema:
        return f"an object whose names are {schema['propertyNames']['description']}"
    names = schema.get("required") or schema.get("properties")
    return f"an object with {_listed(names)}" if names else "an object"


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
        pattern(each).search(property_name) for each in patterns
    )


def _known(unknown: str, schema: JSONSchema) -> str:
    """Return the name that was probably meant, or else all that an object may have."""
    if close := get_close_matches(unknown, schema.get("properties", ()), 1):
        return f"perhaps {close[0]}"
    if "propertyNames" in schema:
        return str(schema["propertyNames"]["description"])
    return f"one of {_listed(schema['properties'])}" if schema.get("properties") else "nothing"


def _listed(values: Iterable[Any]) -> str:
    """Return values as "a, b and c"."""
    words = [value if isinstance(value, str) else _shown(value) for value in values]
    if len(words) > _LISTED:
        words = [*words[:_LISTED], f"{len(words) - _LISTED} others"]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _repeated(values: Sequence[Any]) -> Any:
    seen: list[str] = []
    for value in values:
        text = json.dumps(value, sort_keys=True)
        if text in seen:
            return value
        seen.append(text)
    return values


def _shown(value: Any) -> str:
    """Return the beginning of a value as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
