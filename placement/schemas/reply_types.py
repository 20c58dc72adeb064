"""Types that the responses of several nouns share."""

from __future__ import annotations

from placement.schemas.declarations import (
    RESOURCE_CLASS_NAME,
    UUID_KEY,
    Array,
    Field,
    Object,
    PatternField,
    SchemaType,
    integer,
    string,
)

#: The generation of the provider in a response.
SHOWN_GENERATION = Field("resource_provider_generation", integer(minimum=0), required=True)
#: Amounts by resource class, in units of the class.
AMOUNTS = Object(PatternField(RESOURCE_CLASS_NAME, integer(minimum=0)))
TRAITS = Array(string())
LINKS = Array(Object(Field("rel", string(), required=True), Field("href", string(), required=True)))


def by_uuid(value: SchemaType) -> Object:
    """Return the type of an object whose properties are named by uuids."""
    return Object(PatternField(UUID_KEY, value))


def by_class(value: SchemaType) -> Object:
    """Return the type of an object whose properties are named by resource classes."""
    return Object(PatternField(RESOURCE_CLASS_NAME, value))
