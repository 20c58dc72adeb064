"""Validation of values against a rendered schema.

The jsonschema-rs library decides whether a value is valid, because it is fast and every request is validated.
``explanation`` composes the sentence about an invalid value with the jsonschema library; a property test checks that
both agree.  ADR 21 compares the libraries.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonschema_rs

from placement import uuids
from placement.schemas.declarations import JSONSchema

Formats = Mapping[str, Callable[[str], bool]]
Conversion = Callable[[Any], Any]
#: Types that no conversion changes; nearly all values of a body have one of them.
_UNCONVERTED = frozenset({int, str})

#: Formats in bodies and in queries of the v1 API: uuids in any case, with or without dashes, braces, urn:uuid:
#: (docs: api-bodies).
LENIENT: Formats = {"uuid": uuids.is_uuid}
#: Formats in queries of the Placement API: uuids with dashes only.
STRICT: Formats = {"uuid": lambda text: uuids.DASHED.fullmatch(text) is not None}

#: The range of a double.  Numbers in JSON have any size, and 1e400 is parsed as infinity.
_DOUBLE = {"minimum": -sys.float_info.max, "maximum": sys.float_info.max}


@functools.cache
def pattern(expression: str) -> re.Pattern[str]:
    """Return the compiled expression; ``$`` matches only at the very end, as in jsonschema-rs.

    In Python, ``$`` also matches before a trailing newline, which would reach headers and columns.
    """
    return re.compile(expression.replace("$", r"\Z"))


class Validator:
    """A compiled schema.

    Attributes:
        schema: The JSON schema, for explanations.
        formats: The functions that check the ``format`` of strings, by name.
    """

    def __init__(self, schema: JSONSchema, formats: Formats) -> None:
        self.schema = schema
        self.formats = formats
        self._validator = jsonschema_rs.Draft7Validator(
            _bound_numbers(schema),
            formats=dict(formats),
            validate_formats=True,
            # An engine without backtracking, which takes linear time for every text.
            pattern_options=jsonschema_rs.RegexOptions(),
        )
        self._conversion = _conversion(schema)

    def is_valid(self, value: Any) -> bool:
        """Whether the value conforms to the schema; the time is linear in its size."""
        try:
            return self._validator.is_valid(value)
        except ValueError:  # the name of a property contains half of a surrogate pair
            return False

    def first_error(self, value: Any) -> tuple[Sequence[Any], Sequence[str]]:
        """Return the paths to the first error in an invalid value, and to the violated keyword in the schema."""
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return error.instance_path, [str(keyword) for keyword in error.schema_path]
        except ValueError:  # as in is_valid
            pass
        return (), ()

    def with_integers(self, value: Any) -> Any:
        """Return a valid value, with whole floats converted to integers where the schema requires integers.

        Lists and dictionaries are changed in place.
        """
        return value if self._conversion is None else self._conversion(value)


def _bound_numbers(schema: JSONSchema) -> JSONSchema:
    """Return the schema with every number limited to the range of a double."""
    bounds = _DOUBLE if schema.get("type") == "number" else {}
    return bounds | {key: _bound_numbers(inner) if isinstance(inner, dict) else inner for key, inner in schema.items()}


# --- integers --------------------------------------------------------------------------------------------------------


def _conversion(schema: JSONSchema) -> Conversion | None:
    """Return the function that converts whole floats in a valid value; None for a schema without integers."""
    match schema.get("type"):
        case "integer":
            return int
        case ["integer", "null"]:
            return lambda value: None if value is None else int(value)
        case "array":
            return _items_conversion(schema)
        case "object":
            return _properties_conversion(schema)
    return None


def _items_conversion(schema: JSONSchema) -> Conversion | None:
    convert = _conversion(schema["items"])
    return None if convert is None else lambda items: [convert(item) for item in items]


def _properties_conversion(schema: JSONSchema) -> Conversion | None:
    named = {name: _conversion(inner) for name, inner in schema.get("properties", {}).items()}
    matching = [
        (pattern(expression).search, _conversion(inner))
        for expression, inner in schema.get("patternProperties", {}).items()
    ]
    additional = _conversion(schema.get("additionalProperties") or {})
    if not any([*named.values(), *(conversion for _, conversion in matching), additional]):
        return None

    # In a valid value, all remaining names match the only pattern.
    if len(matching) == 1 and schema.get("additionalProperties") is False:
        matching, additional = [], matching[0][1]

    def find(name: str) -> Conversion | None:
        return next((conversion for matches, conversion in matching if matches(name)), additional)

    def convert(properties: dict[str, Any]) -> dict[str, Any]:
        for name, value in properties.items():
            if type(value) in _UNCONVERTED:
                continue
            conversion = named[name] if name in named else find(name)
            if conversion is not None:
                properties[name] = conversion(value)
        return properties

    return convert
