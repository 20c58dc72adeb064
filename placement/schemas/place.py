"""Where a value does not conform, found in linear time: for values that are too large for the jsonschema library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from placement.schemas import check
from placement.schemas.shape import Rendered


class Place(NamedTuple):
    """A part of a value with the schema it is against, and the way to both from the top."""

    value: Any
    schema: Rendered
    path: tuple[Any, ...] = ()
    schema_path: tuple[Any, ...] = ()

    def below(self, step: Any, schema: Rendered, *keywords: Any) -> Place:
        """One step further down."""
        return Place(self.value[step], schema, (*self.path, step), (*self.schema_path, *keywords))


def offending(value: Any, schema: Rendered, formats: check.Formats) -> Place:
    """The first part, in the order of the value, that does not conform although what is right below it does.

    What an object has too much or too little goes before what is wrong inside of it.  Every level of the schema looks
    at its part of the value once.
    """
    place = Place(value, schema)
    while (below := _first_below(place, formats)) is not None:
        place = below
    return place


def _first_below(place: Place, formats: check.Formats) -> Place | None:
    """The first of the direct parts that does not conform; None if the fault is here."""
    return next((part for part, conform in _parts(place, formats) if _refuses(conform, part.value)), None)


def _refuses(conform: check.Check, value: Any) -> bool:
    try:
        conform(value)
    except check.Refused:
        return True
    return False


def _parts(place: Place, formats: check.Formats) -> Iterable[tuple[Place, check.Check]]:
    """The direct parts with what judges them; none, if something is wrong with the whole."""
    value, schema = place.value, place.schema
    if isinstance(value, list) and "items" in schema:
        inner = schema["items"]
        conform = check.compiled(inner, formats)
        return ((place.below(number, inner, "items"), conform) for number in range(len(value)))
    if isinstance(value, dict) and schema.get("type") == "object" and not _wrong_as_a_whole(value, schema):
        return _properties(place, formats)
    return ()


def _wrong_as_a_whole(value: dict[str, Any], schema: Rendered) -> bool:
    """Whether properties are missing or too many."""
    if len(value) < schema.get("minProperties", 0) or any(name not in value for name in schema.get("required", ())):
        return True
    return schema.get("additionalProperties") is False and any(_way(name, schema) is None for name in value)


def _properties(place: Place, formats: check.Formats) -> Iterable[tuple[Place, check.Check]]:
    conforms: dict[tuple[str, ...], check.Check] = {}
    for name in place.value:
        way = _way(name, place.schema) or ("additionalProperties",)
        inner = place.schema.get(way[0], {})
        if len(way) > 1:
            inner = inner[way[1]]
        if way not in conforms:
            conforms[way] = check.compiled(inner, formats)
        yield place.below(name, inner, *way), conforms[way]


def _way(name: str, schema: Rendered) -> tuple[str, str] | None:
    """The keywords under which the schema has the property; None if it is an additional one."""
    if name in schema.get("properties", ()):
        return "properties", name
    patterns = schema.get("patternProperties", ())
    return next(
        (("patternProperties", expression) for expression in patterns if check.pattern(expression).search(name)), None
    )
