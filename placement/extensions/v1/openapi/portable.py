"""Schemas rewritten for client generators."""

from __future__ import annotations

from typing import Any

#: The largest integer of 32 bits, the type that generators use for integers without a format.
_MAX_INT32 = 2**31 - 1
#: Keywords whose value is data, and keywords whose value maps names to schemas.
_DATA = frozenset(("const", "default", "enum", "example", "examples"))
_BY_NAME = frozenset(("$defs", "dependentSchemas", "patternProperties", "properties"))


def make_portable(schema: Any) -> Any:
    """Return an equivalent schema that client generators understand.

    Generators do not support ``patternProperties``: an object whose names match a single pattern is described by
    ``propertyNames`` and ``additionalProperties`` instead, so that it becomes a map.  Amounts may exceed 32 bits, so
    they have the format ``int64``.
    """
    if isinstance(schema, list):
        return [make_portable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {keyword: _convert_value(keyword, value) for keyword, value in schema.items()}
    if _is_map(changed):
        [(pattern, value)] = changed.pop("patternProperties").items()
        names = {**changed.get("propertyNames", {}), "pattern": pattern}
        changed |= {"propertyNames": names, "additionalProperties": value}
    if changed.get("type") in ("integer", ["integer", "null"]) and changed.get("maximum", _MAX_INT32 + 1) > _MAX_INT32:
        changed["format"] = "int64"
    return changed


def _convert_value(keyword: str, value: Any) -> Any:
    if keyword in _DATA:
        return value
    if keyword in _BY_NAME:
        return {name: make_portable(schema) for name, schema in value.items()}
    return make_portable(value)


def _is_map(schema: dict[str, Any]) -> bool:
    """Whether a schema describes objects whose names all match a single pattern."""
    patterns, closed = schema.get("patternProperties", {}), schema.get("additionalProperties") is False
    unnamed = "properties" not in schema and "pattern" not in schema.get("propertyNames", {})
    return len(patterns) == 1 and closed and unnamed
