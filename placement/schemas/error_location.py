"""Where a value is invalid, found in linear time: for values that are too large for the jsonschema library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from placement.schemas.declarations import JSONSchema
from placement.schemas.validator import Formats, Validator, pattern

#: A member of a value, and the validator of its schema.
_Member = tuple["Location", Validator]


class Location(NamedTuple):
    """A part of a value with the schema that it has to conform to, and the paths of both from the top."""

    value: Any
    schema: JSONSchema
    path: tuple[Any, ...] = ()
    schema_path: tuple[Any, ...] = ()

    def member(self, key: Any, schema: JSONSchema, *keywords: Any) -> Location:
        """Return the location of an item or a property; ``keywords`` lead to its schema."""
        return Location(self.value[key], schema, (*self.path, key), (*self.schema_path, *keywords))


def find_error(value: Any, schema: JSONSchema, formats: Formats) -> Location:
    """Return the first part of an invalid value, in document order, that is invalid while all its members are valid.

    Missing and additional properties of an object go before errors inside of its members.  At each level of the schema
    every value is validated at most once.
    """
    location = Location(value, schema)
    while (member := _first_invalid_member(location, formats)) is not None:
        location = member
    return location


def _first_invalid_member(location: Location, formats: Formats) -> Location | None:
    """Return the first invalid member; None if the error is at the location itself."""
    members = _members(location, formats)
    return next((member for member, validator in members if not validator.is_valid(member.value)), None)


def _members(location: Location, formats: Formats) -> Iterator[_Member]:
    """Yield the items or properties; none of an object that has missing or additional properties."""
    value, schema = location.value, location.schema
    if isinstance(value, list) and "items" in schema:
        yield from _items(location, formats)
    elif isinstance(value, dict) and schema.get("type") == "object" and not _has_wrong_names(value, schema):
        yield from _properties(location, formats)


def _has_wrong_names(value: dict[str, Any], schema: JSONSchema) -> bool:
    """Whether properties are missing, too few or additional."""
    if len(value) < schema.get("minProperties", 0) or any(name not in value for name in schema.get("required", ())):
        return True
    return schema.get("additionalProperties") is False and any(_keywords(name, schema) is None for name in value)


def _items(location: Location, formats: Formats) -> Iterator[_Member]:
    schema = location.schema["items"]
    validator = Validator(schema, formats)
    for number in range(len(location.value)):
        yield location.member(number, schema, "items"), validator


def _properties(location: Location, formats: Formats) -> Iterator[_Member]:
    validators: dict[tuple[str, ...], Validator] = {}
    for name in location.value:
        keywords = _keywords(name, location.schema) or ("additionalProperties",)
        schema = location.schema.get(keywords[0], {})
        if len(keywords) > 1:
            schema = schema[keywords[1]]
        if keywords not in validators:
            validators[keywords] = Validator(schema, formats)
        yield location.member(name, schema, *keywords), validators[keywords]


def _keywords(name: str, schema: JSONSchema) -> tuple[str, str] | None:
    """Return the keywords that lead to the schema of a property; None for an additional one."""
    if name in schema.get("properties", ()):
        return "properties", name
    expressions = schema.get("patternProperties", ())
    return next(
        (("patternProperties", expression) for expression in expressions if pattern(expression).search(name)), None
    )
