"""A rendered schema compiled to plain functions: the judgement that every request pays for, in a few microseconds.

Only what ``shape`` renders is understood.  What is refused here is explained by ``violation``, with the jsonschema
library; a property test holds the two to one judgement.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from oslo_utils import uuidutils

from placement.schemas.shape import Rendered

#: Gives the value as the handler gets it, or raises Refused.
Check = Callable[[Any], Any]
Formats = Mapping[str, Callable[[str], bool]]

_DASHED_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: Bodies: any case, with or without dashes, braces, urn:uuid: (contract 1.12).
# Nearly all have dashes, and the pattern is five times as fast.
LENIENT: Formats = {"uuid": lambda text: _DASHED_UUID.fullmatch(text) is not None or uuidutils.is_uuid_like(text)}
#: Queries: the form with dashes only.
STRICT: Formats = {"uuid": lambda text: _DASHED_UUID.fullmatch(text) is not None}


class Refused(Exception):
    """The value does not conform."""


@functools.cache
def pattern(expression: str) -> re.Pattern[str]:
    """The pattern, whose ``$`` is the very end: a newline before it would end up in headers and columns."""
    return re.compile(expression.replace("$", r"\Z"))


def is_integer(value: Any) -> bool:
    """Whether this is a whole number; a boolean is not."""
    return type(value) is int or (type(value) is float and value.is_integer())


def is_number(value: Any) -> bool:
    """Whether this is a number that a double can hold; not a boolean, not an infinity, not a NaN."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def compiled(schema: Rendered, formats: Formats) -> Check:
    """The schema as one function."""
    if not schema:
        return _anything
    types = schema["type"]
    if isinstance(types, list):
        return _or_null(_COMPILERS[types[0]](schema, formats))
    return _COMPILERS[types](schema, formats)


def _anything(value: Any) -> Any:
    return value


def _or_null(inner: Check) -> Check:
    return lambda value: None if value is None else inner(value)


def _string(schema: Rendered, formats: Formats) -> Check:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", sys.maxsize)
    conditions: list[Callable[[str], Any]] = []
    if "pattern" in schema:
        conditions.append(pattern(schema["pattern"]).search)
    if "format" in schema:
        conditions.append(formats[schema["format"]])
    if "enum" in schema:
        conditions.append(frozenset(schema["enum"]).__contains__)

    def conform(value: Any) -> Any:
        if type(value) is not str or not shortest <= len(value) <= longest:
            raise Refused
        for condition in conditions:
            if not condition(value):
                raise Refused
        return value

    return conform


def _integer(schema: Rendered, _formats: Formats) -> Check:
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))

    def conform(value: Any) -> Any:
        if not is_integer(value) or not least <= value <= most:
            raise Refused
        return int(value)

    return conform


def _number(schema: Rendered, _formats: Formats) -> Check:
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))

    def conform(value: Any) -> Any:
        if not is_number(value) or not least <= value <= most:
            raise Refused
        return value

    return conform


def _array(schema: Rendered, formats: Formats) -> Check:
    item = compiled(schema["items"], formats)
    shortest, unique = schema.get("minItems", 0), schema.get("uniqueItems", False)

    def conform(value: Any) -> Any:
        if type(value) is not list or len(value) < shortest:
            raise Refused
        items = [item(element) for element in value]
        if unique and len(set(items)) != len(items):
            raise Refused
        return items

    return conform


def _object(schema: Rendered, formats: Formats) -> Check:
    named = {name: compiled(inner, formats) for name, inner in schema.get("properties", {}).items()}
    matching = [
        (pattern(expression).search, compiled(inner, formats))
        for expression, inner in schema.get("patternProperties", {}).items()
    ]
    mandatory = frozenset(schema.get("required", ()))
    smallest = schema.get("minProperties", 0)
    others = schema.get("additionalProperties", {})
    other = _never if others is False else compiled(others, formats)

    def find(name: str) -> Check:
        for matches, inner in matching:
            if matches(name):
                return inner
        return other

    def conform(value: Any) -> Any:
        if type(value) is not dict or len(value) < smallest or not mandatory <= value.keys():
            raise Refused
        return {name: (named.get(name) or find(name))(inner) for name, inner in value.items()}

    return conform


def _never(_value: Any) -> Any:
    raise Refused


_COMPILERS: Mapping[str, Callable[[Rendered, Formats], Check]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "array": _array,
    "object": _object,
}
