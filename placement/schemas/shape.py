"""The words that schemas are declared with: shapes, and fields that know their lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from placement import microversion as mv
from placement.microversion import Version

#: A JSON schema.
Rendered = dict[str, Any]


class Shape(Protocol):
    """What a value may look like, at every version."""

    def render(self, version: Version, /) -> Rendered:
        """The JSON schema of this version."""


@dataclass(frozen=True)
class Leaf:
    """A value that looks the same at every version; the keywords are those of JSON schema."""

    type: str
    keywords: Mapping[str, Any]
    nullable: bool = False

    def render(self, _version: Version, /) -> Rendered:
        return {"type": [self.type, "null"] if self.nullable else self.type, **self.keywords}


def string(**keywords: Any) -> Leaf:
    """Text; lengths count characters, patterns are searched for unless anchored."""
    return Leaf("string", keywords)


def integer(**keywords: Any) -> Leaf:
    """A whole number, also when written as 8.0."""
    return Leaf("integer", keywords)


def number(**keywords: Any) -> Leaf:
    """Any number that a double can hold."""
    return Leaf("number", keywords)


def nullable(leaf: Leaf) -> Leaf:
    """The same, or null."""
    return replace(leaf, nullable=True)


@dataclass(frozen=True)
class Array:
    """A list of values of one shape."""

    items: Shape
    at_least: int = 0
    unique: bool = False

    def render(self, version: Version) -> Rendered:
        rendered: Rendered = {"type": "array"}
        if self.at_least:
            rendered["minItems"] = self.at_least
        rendered["items"] = self.items.render(version)
        if self.unique:
            rendered["uniqueItems"] = True
        return rendered


@dataclass(frozen=True)
class Field:
    """A property of an object, from version ``since`` on and before version ``until``."""

    name: str
    shape: Shape
    required: bool = False
    since: Version = mv.MINIMUM
    until: Version | None = None

    def lives(self, version: Version) -> bool:
        return self.since <= version and (self.until is None or version < self.until)


@dataclass(frozen=True)
class Fields(Field):
    """All properties whose name matches a regular expression, which stands in place of the name."""


def required(field: Field) -> Field:
    """The same field where it may not be left out."""
    return replace(field, required=True)


class Object:
    """A JSON object with these fields and no others.

    ``others`` gives the shape of properties that no field covers, ``ANYTHING`` lets them pass unseen.  Of several
    violations one is told: ``unknown_first`` where a property too many goes before one too few.
    """

    def __init__(
        self, *fields: Field, at_least: int = 0, others: Shape | None = None, unknown_first: bool = False
    ) -> None:
        self.fields = fields
        self.at_least = at_least
        self.others = others
        self.unknown_first = unknown_first

    def render(self, version: Version) -> Rendered:
        alive = [field for field in self.fields if field.lives(version)]
        names = {field.name: field.shape.render(version) for field in alive if not isinstance(field, Fields)}
        patterns = {field.name: field.shape.render(version) for field in alive if isinstance(field, Fields)}
        mandatory = [field.name for field in alive if field.required]
        others = self.others.render(version) if self.others else False
        keywords: Rendered = {
            "minProperties": self.at_least,
            "properties": names,
            "patternProperties": patterns,
            "required": mandatory,
        }
        rendered: Rendered = {"type": "object"} | {keyword: value for keyword, value in keywords.items() if value}
        if others != {}:
            rendered["additionalProperties"] = others
        if self.unknown_first and mandatory:
            rendered["required"] = rendered.pop("required")
        return rendered


@dataclass(frozen=True)
class Anything:
    """A value that nobody looks at."""

    def render(self, _version: Version, /) -> Rendered:
        return {}


@dataclass(frozen=True)
class Turning:
    """What had one shape before a version and has another from it on."""

    at: Version
    before: Shape
    after: Shape

    def render(self, version: Version) -> Rendered:
        return (self.before if version < self.at else self.after).render(version)


ANYTHING = Anything()
#: The name of a resource class in a body.
RESOURCE_CLASS_NAME = "^[A-Z0-9_]+$"
UUID = string(format="uuid")
#: A uuid as the key of an object: 36 hexadecimal digits and dashes in any arrangement (contract 1.12).
UUID_KEY = "^[0-9a-fA-F-]{36}$"
#: The name of a project, user or consumer type, as wide as its column.
IDENTIFIER = string(minLength=1, maxLength=255)
