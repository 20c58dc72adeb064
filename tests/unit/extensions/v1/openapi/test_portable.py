"""Portable schemas: rewritten for client generators, but equivalent to the declared schemas."""

from __future__ import annotations

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies as st

from placement import microversion as mv
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi.document import describe
from placement.extensions.v1.openapi.portable import make_portable
from placement.routes import PLACEMENT
from placement.version_history import OLDEST
from tests import json_strategies

#: The declared schemas of all bodies, of requests and responses.
DECLARED = [
    schema.render(version)
    for api, version in ((V1, OLDEST), (PLACEMENT, mv.LATEST))
    for methods in api.routes.values()
    for declaration in methods.values()
    for endpoint in (declaration if isinstance(declaration, tuple) else (declaration,))
    for schema in (endpoint.body, *(success.document for success in endpoint.replies))
    if schema is not None
]


@hypothesis.given(st.data())
def test_portable_schemas_accept_the_same_values(data):
    schema = data.draw(st.sampled_from(DECLARED))
    value = data.draw(json_strategies.nearly(json_strategies.conforming(schema)) | json_strategies.json_values())
    is_valid, is_valid_after = (
        jsonschema.Draft202012Validator(form).is_valid(value) for form in (schema, make_portable(schema))
    )
    assert is_valid == is_valid_after


INTEGER = {"type": "integer"}
LARGE = {"type": "integer", "format": "int64"}
BY_EXPRESSION = {"patternProperties": {"^a": INTEGER}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("keyword", "data"),
    [("const", INTEGER), ("default", INTEGER), ("enum", [INTEGER]), ("example", INTEGER), ("examples", [INTEGER])],
)
def test_the_data_in_a_schema_is_not_rewritten(keyword, data):
    assert make_portable({keyword: data}) == {keyword: data}


def test_a_property_may_have_the_name_of_a_keyword():
    rewritten = make_portable(
        {"properties": {"default": INTEGER, "enum": BY_EXPRESSION, "format": {"maximum": 1} | INTEGER}}
    )
    enum_schema = {"propertyNames": {"pattern": "^a"}, "additionalProperties": LARGE}
    assert rewritten == {"properties": {"default": LARGE, "enum": enum_schema, "format": {"maximum": 1} | INTEGER}}


def test_an_existing_pattern_of_names_is_kept():
    schema = {**BY_EXPRESSION, "propertyNames": {"pattern": "z$"}}
    assert make_portable(schema) == {**schema, "patternProperties": {"^a": LARGE}}
    rewritten = make_portable({**BY_EXPRESSION, "propertyNames": {"description": "Classes."}})
    assert rewritten["propertyNames"] == {"description": "Classes.", "pattern": "^a"}


def subschemas(schema):
    """Yield a schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from subschemas(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from subschemas(part)


def test_the_documents_contain_maps_and_large_integers():
    for api, version in ((V1, OLDEST), (PLACEMENT, mv.LATEST)):
        schemas = describe(api, version, label="1")["components"]["schemas"]
        all_parts = [part for schema in schemas.values() for part in subschemas(schema)]
        closed = [part for part in all_parts if part.get("additionalProperties") is False]
        assert [part for part in closed if "patternProperties" in part and "properties" not in part] == []
        assert any("propertyNames" in part for part in all_parts)
        free = [part for part in all_parts if part.get("type") == "integer" and "maximum" not in part]
        assert free
        assert all(part["format"] == "int64" for part in free)


def test_a_map_is_distinguished_from_a_record():
    number = {"type": "integer", "minimum": 0}
    amounts = {"type": "object", "patternProperties": {"^[A-Z]+$": number}, "additionalProperties": False}
    assert make_portable(amounts) == {
        "type": "object",
        "propertyNames": {"pattern": "^[A-Z]+$"},
        "additionalProperties": {**number, "format": "int64"},
    }
    record = {**amounts, "properties": {"a": {"type": "integer", "maximum": 9}}}
    assert make_portable(record)["patternProperties"].keys() == {"^[A-Z]+$"}
    assert make_portable(record)["properties"] == record["properties"]
    with_description = {**amounts, "propertyNames": {"description": "classes"}}
    assert make_portable(with_description)["propertyNames"] == {"description": "classes", "pattern": "^[A-Z]+$"}
