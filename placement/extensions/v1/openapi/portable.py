"""Schemas rewritten for client generators."""

from __future__ import annotations

from typing import Any

#: Above it, an integer needs more than the 32 bits that generators give to one without a format.
_LARGEST = 2**31 - 1
#: Keywords whose value is data, and those whose value has a schema for each name.
_DATA = frozenset(("const", "default", "enum", "example", "examples"))
_BY_NAME = frozenset(("$defs", "dependentSchemas", "patternProperties", "properties"))


def portable(schema: Any) -> Any:
    """Return an equivalent schema that generators understand.

    Generators know no ``patternProperties``: an object whose names all match one expression has ``propertyNames`` and
    the schema of its values, so that it becomes a map of these.  And amounts can have more than 32 bits.
    """
    if isinstance(schema, list):
        return [portable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {keyword: _of_keyword(keyword, value) for keyword, value in schema.items()}
    if _is_map(changed):
        [(expression, value)] = changed.pop("patternProperties").items()
        names = {**changed.get("propertyNames", {}), "pattern": expression}
        changed |= {"propertyNames": names, "additionalProperties": value}
    if changed.get("type") in ("integer", ["integer", "null"]) and changed.get("maximum", _LARGEST + 1) > _LARGEST:
        changed["format"] = "int64"
    return changed


def _of_keyword(keyword: str, value: Any) -> Any:
    if keyword in _DATA:
        return value
    if keyword in _BY_NAME:
        return {name: portable(schema) for name, schema in value.items()}
    return portable(value)


def _is_map(schema: dict[str, Any]) -> bool:
    """Whether a schema has objects whose names all match the same expression, and no other."""
    named, closed = schema.get("patternProperties", {}), schema.get("additionalProperties") is False
    free = "properties" not in schema and "pattern" not in schema.get("propertyNames", {})
    return len(named) == 1 and closed and free
