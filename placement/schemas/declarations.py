"""Declarations of schemas: types of values, and fields with the versions in which they exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from placement.version_history import OLDEST, Version

JSONSchema = dict[str, Any]


class SchemaType(Protocol):
    """A type of values, which may differ between versions."""

    def render(self, version: Version, /) -> JSONSchema:
        """Return the JSON schema of this version."""


@dataclass(frozen=True)
class Scalar:
    """A string, number or boolean, with keywords of JSON schema; the same in every version."""

    type: str
    keywords: Mapping[str, Any]
    nullable: bool = False

    def render(self, _version: Version, /) -> JSONSchema:
        return {"type": [self.type, "null"] if self.nullable else self.type, **self.keywords}


def string(**keywords: Any) -> Scalar:
    """Return a type of strings; lengths count characters, patterns match anywhere unless anchored."""
    return Scalar("string", keywords)


def integer(**keywords: Any) -> Scalar:
    """Return a type of whole numbers, including 8.0."""
    return Scalar("integer", keywords)


def number(**keywords: Any) -> Scalar:
    """Return a type of numbers in the range of a double."""
    return Scalar("number", keywords)


def boolean() -> Scalar:
    """Return the type of true and false."""
    return Scalar("boolean", {})


def nullable(scalar: Scalar) -> Scalar:
    """Return the type with null as an additional value."""
    return replace(scalar, nullable=True)


@dataclass(frozen=True)
class Array:
    """A list with items of one type."""

    items: SchemaType
    min_items: int = 0
    unique: bool = False

    def render(self, version: Version) -> JSONSchema:
        rendered: JSONSchema = {"type": "array"}
        if self.min_items:
            rendered["minItems"] = self.min_items
        rendered["items"] = self.items.render(version)
        if self.unique:
            rendered["uniqueItems"] = True
        return rendered


@dataclass(frozen=True)
class Field:
    """A property of an object, or a parameter of a query.

    Attributes:
        since: The first version with the property.
        until: The first later version without it; None if it still exists.
        text: The meaning of a parameter; not part of the schema, which errors quote.
        repeated_since: The first version in which all values of a repeated parameter count, rather than one; not part
            of the schema.
    """

    name: str
    type: SchemaType
    required: bool = False
    since: Version = OLDEST
    until: Version | None = None
    text: str = ""
    repeated_since: Version | None = None

    def covers(self, name: str) -> bool:
        """Whether this is the field of the property with this name."""
        return name == self.name

    def exists_at(self, version: Version) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


@dataclass(frozen=True)
class PatternField(Field):
    """All properties whose name matches the anchored regular expression ``name``."""

    def covers(self, name: str) -> bool:
        return re.search(self.name, name) is not None


def required(field: Field) -> Field:
    """Return the field as a mandatory one."""
    return replace(field, required=True)


class Object:
    """A JSON object with these fields only.

    Args:
        fields: The properties.
        min_properties: The smallest number of properties.
        additional: The type of properties without a field; None if they are invalid.
        names: A description of the valid names, if ``fields`` contains patterns.
        unknown_first: Whether an additional property is reported rather than a missing one; only one validation error
            is reported.
        title: The class name of such objects in generated clients.
    """

    def __init__(
        self,
        *fields: Field,
        min_properties: int = 0,
        additional: SchemaType | None = None,
        names: str = "",
        unknown_first: bool = False,
        title: str = "",
    ) -> None:
        self.fields = fields
        self.min_properties = min_properties
        self.additional = additional
        self.names = names
        self.unknown_first = unknown_first
        self.title = title

    def render(self, version: Version) -> JSONSchema:
        fields = [field for field in self.fields if field.exists_at(version)]
        named = {field.name: field.type.render(version) for field in fields if not isinstance(field, PatternField)}
        patterns = {field.name: field.type.render(version) for field in fields if isinstance(field, PatternField)}
        mandatory = [field.name for field in fields if field.required]
        additional = self.additional.render(version) if self.additional else False
        keywords: JSONSchema = {
            "title": self.title,
            "minProperties": self.min_properties,
            "properties": named,
            "patternProperties": patterns,
            "required": mandatory,
            "propertyNames": {"description": self.names} if self.names else {},
        }
        rendered: JSONSchema = {"type": "object"} | {keyword: value for keyword, value in keywords.items() if value}
        if additional != {}:
            rendered["additionalProperties"] = additional
        # Of errors at the same depth, the jsonschema library reports the one of the first keyword.
        if self.unknown_first and mandatory:
            rendered["required"] = rendered.pop("required")
        return rendered


@dataclass(frozen=True)
class OrNull:
    """Null, or a value of a type that is not a scalar."""

    type: SchemaType

    def render(self, version: Version) -> JSONSchema:
        return {"anyOf": [self.type.render(version), {"type": "null"}]}


@dataclass(frozen=True)
class OneOf:
    """A value of one of several disjoint types.

    Whole floats in it are not converted to integers, because the type of a value is not determined.
    """

    types: tuple[SchemaType, ...]

    def render(self, version: Version) -> JSONSchema:
        return {"anyOf": [type_.render(version) for type_ in self.types]}


@dataclass(frozen=True)
class Anything:
    """Any value, without validation."""

    def render(self, _version: Version, /) -> JSONSchema:
        return {}


@dataclass(frozen=True)
class ChangedAt:
    """A value of one type before a version, and of another type from that version on."""

    version: Version
    before: SchemaType
    after: SchemaType

    def render(self, version: Version) -> JSONSchema:
        return (self.before if version < self.version else self.after).render(version)


ANYTHING = Anything()
#: A pattern of the names of resource classes in a body.
RESOURCE_CLASS_NAME = "^[A-Z0-9_]+$"
UUID = string(format="uuid")
#: A pattern of uuids as names of properties: 36 hexadecimal digits and dashes, in any order (docs: api-bodies).
UUID_KEY = "^[0-9a-fA-F-]{36}$"
#: The name of a project, user or trait, at most as long as its column.
IDENTIFIER = string(minLength=1, maxLength=255)
