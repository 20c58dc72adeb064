"""Violations of every schema of the extensions' APIs are explained in one line, not only by a regular expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.baremetal import versions
from placement.extensions.baremetal.api import BAREMETAL
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi.document import endpoints_at
from placement.schemas.explanation import explain
from placement.schemas.validator import LENIENT, Validator
from placement.version_history import OLDEST
from tests.json_strategies import conforming, json_values, nearly


def schemas(schema):
    """Yield a schema and all schemas in it."""
    yield schema
    for key in ("properties", "patternProperties"):
        for inner in schema.get(key, {}).values():
            yield from schemas(inner)
    for inner in (schema.get("items"), *schema.get("anyOf", ())):
        if inner is not None:
            yield from schemas(inner)


DECLARED = {
    f"{endpoint.handler.__module__}.{endpoint.handler.__name__} {version}": document.render(version)
    for api, version in ((V1, OLDEST), (BAREMETAL, versions.HISTORY.latest))
    for methods in api.routes.values()
    for _, endpoint in endpoints_at(methods, version)
    for document in (endpoint.query, endpoint.body)
    if document is not None
}


@pytest.mark.parametrize("schema", DECLARED.values(), ids=[*DECLARED])
def test_every_regular_expression_has_a_description(schema):
    for inner in schemas(schema):
        assert "pattern" not in inner or inner.get("description"), inner
        assert "patternProperties" not in inner or inner.get("propertyNames"), inner


@given(st.data())
def test_every_violation_is_explained_in_one_line(data):
    schema = data.draw(st.sampled_from([*DECLARED.values()]))
    validator = Validator(schema, LENIENT)
    value = data.draw(nearly(conforming(schema)) | json_values())
    if not validator.is_valid(value):
        violation = explain(value, validator).violation
        assert "\n" not in str(violation)
        assert len(str(violation)) < 1000
        assert violation.expected
