"""OpenAPI documents generated from declarations."""

from __future__ import annotations

import dataclasses

import jsonschema_rs
import pytest

from placement import errors
from placement import microversion as mv
from placement.extensions.v1 import failures
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi import examples
from placement.extensions.v1.openapi.components import Components
from placement.extensions.v1.openapi.document import describe
from placement.http.endpoint import endpoint
from placement.http.response import no_content
from placement.routes import PLACEMENT
from placement.schemas.declarations import Field, Object, PatternField, string
from placement.schemas.document import Body, Query
from placement.schemas.success import Success, ok
from placement.version_history import OLDEST, Version
from tests.reply_conformance import APIS, resolve_references

VERSIONS = [change.version for change in mv.HISTORY]
DOCUMENTS = [(PLACEMENT, version) for version in VERSIONS] + [(V1, OLDEST)]
each_document = pytest.mark.parametrize(
    ("api", "version"), DOCUMENTS, ids=lambda part: getattr(part, "name", str(part))
)


def operations(document):
    """Yield the method, the path and the object of each operation, with its references resolved."""
    for path, methods in resolve_references(document["paths"], document).items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def operation_of(declared, version=mv.LATEST, path="/things/{name}", method="GET"):
    """Return the operation of an endpoint in a Placement API whose only route is this one."""
    api = dataclasses.replace(PLACEMENT, routes={path: {method: declared}})
    document = describe(api, version, label="1")
    return resolve_references(document["paths"].get(path, {}).get(method.lower()), document)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_endpoint_declares_its_responses(api):
    endpoints = [
        (path, endpoint)
        for path, methods in api.routes.items()
        for declaration in methods.values()
        for endpoint in (declaration if isinstance(declaration, tuple) else (declaration,))
    ]
    assert [(path, endpoint.handler) for path, endpoint in endpoints if not endpoint.replies] == []


@each_document
def test_every_operation_has_a_unique_name_and_a_successful_response(api, version):
    all_operations = list(operations(describe(api, version, label="1")))
    names = [operation["operationId"] for _, _, operation in all_operations]
    assert len(set(names)) == len(names)
    successes = {"200", "201", "204"}
    assert [
        (method, path) for method, path, operation in all_operations if not successes & operation["responses"].keys()
    ] == []


@each_document
def test_examples_conform_to_their_schemas(api, version):
    def check(content):
        validator = jsonschema_rs.Draft202012Validator(content["schema"], validate_formats=True)
        for example in content.get("examples", {}).values():
            validator.validate(example["value"])

    for _, _, operation in operations(describe(api, version, label="1")):
        for parameter in operation["parameters"]:
            check(parameter)
        for response in [operation.get("requestBody", {}), *operation["responses"].values()]:
            for content in response.get("content", {}).values():
                check(content)


def test_every_body_of_the_newest_version_has_an_example():
    all_operations = operations(describe(PLACEMENT, mv.LATEST, label="1"))
    bodies = {
        (method, path): operation["requestBody"]
        for method, path, operation in all_operations
        if "requestBody" in operation
    }
    assert len(bodies) > 10
    assert [route for route, body in bodies.items() if "examples" not in body["content"]["application/json"]] == []


def test_examples_with_a_query_are_not_newer_than_the_document():
    """The schemas do not fully describe the values of parameters, so an older version may refuse a newer example."""

    def versions(path, method, version):
        declared = PLACEMENT.routes[path][method]
        return [example.version for example in examples.examples_of(PLACEMENT, version, method, path, declared)]

    for version in VERSIONS:
        assert max(versions("/allocation_candidates", "GET", version), default=version) <= version
    assert versions("/allocation_candidates", "GET", Version(1, 28)) == [Version(1, 28)] * 3
    assert max(versions("/resource_providers", "POST", Version(1, 0))) > Version(1, 0)


def test_an_operation_is_in_the_versions_of_its_endpoint():
    @endpoint(since=Version(1, 5), until=Version(1, 7), replies=(Success(204),))
    def show(_req, _name):
        """Show the thing."""
        return no_content()

    matches = [str(version) for version in VERSIONS if operation_of(show, version)]
    assert matches == ["1.5", "1.6"]
    assert operation_of(show, Version(1, 5))["summary"] == "Show the thing"


def test_responses_depend_on_the_version():
    replies = (
        Success(201, location=True, until=Version(1, 20)),
        Success(200, Object(Field("new", string(), since=Version(1, 30))), since=Version(1, 20)),
    )
    declared = endpoint(replies=replies)(lambda _req, _name: no_content())
    assert "location" in operation_of(declared, Version(1, 19))["responses"]["201"]["headers"]
    old, new = (operation_of(declared, Version(1, minor))["responses"] for minor in (29, 30))
    assert "201" not in old
    assert [
        by_status["200"]["content"]["application/json"]["schema"].get("properties") for by_status in (old, new)
    ] == [
        None,
        {"new": {"type": "string"}},
    ]


def test_parameters_of_groups_are_one_object_and_repeated_parameters_are_lists():
    need = PatternField("^need([1-9][0-9]*)?$", string(), repeated_since=Version(1, 10))
    query = Query(Object(Field("limit", string(), required=True), need))
    declared = endpoint(query=query, replies=ok(Object()))(lambda _req: no_content())
    version, limit, need, groups = operation_of(declared, path="/things")["parameters"]
    assert (version["in"], version["schema"]["enum"]) == ("header", ["placement 1.39"])
    assert (limit["name"], limit["required"], limit["schema"]) == ("limit", True, {"type": "string"})
    assert (need["name"], need["schema"]["type"], "required" in need) == ("need", "array", False)
    assert groups["schema"]["patternProperties"] == {"^need[1-9][0-9]*$": {"type": "string"}}
    assert (groups["style"], groups["explode"]) == ("form", True)
    assert operation_of(declared, Version(1, 9), "/things")["parameters"][2]["schema"] == {"type": "string"}


@pytest.mark.parametrize(
    ("declaration", "method", "path", "expected"),
    [
        ({}, "GET", "/", "400 406 500 503"),
        ({}, "GET", "/things", "400 401 403 406 429 500 503"),
        ({}, "GET", "/things/{name}", "400 401 403 404 406 429 500 503"),
        ({"query": Query(Object())}, "GET", "/things", "400 401 403 406 414 429 500 503"),
        ({"body": Body(Object())}, "POST", "/things", "400 401 403 406 409 413 415 429 500 503"),
    ],
)
def test_failures_follow_from_the_declaration_of_the_endpoint(declaration, method, path, expected):
    declared = endpoint(**declaration)(lambda _req: no_content())
    assert " ".join(operation_of(declared, path=path, method=method)["responses"]) == expected


@each_document
def test_every_parameter_of_a_query_has_a_description(api, version):
    parameters = [
        (path, parameter["name"], parameter.get("description", ""))
        for _, path, operation in operations(describe(api, version, label="1"))
        for parameter in operation["parameters"]
        if parameter["in"] == "query"
    ]
    assert [parameter for parameter in parameters if not parameter[2].endswith(".")] == []


def test_a_write_that_supports_dry_runs_describes_their_parameters_and_response():
    declared = endpoint(replies=(Success(204),), dry_run=lambda _req: ())(lambda _req: no_content())
    operation = operation_of(declared, path="/things", method="PUT")
    assert {parameter["name"] for parameter in operation["parameters"]} >= {"dry_run", "placement-dry-run"}
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]["required"] == ["dry_run", "room"]


@pytest.mark.parametrize(("api", "version", "open_"), [(V1, OLDEST, True), (PLACEMENT, mv.LATEST, False)])
def test_records_of_an_api_without_versions_may_have_further_fields(api, version, open_):
    """Such an API may add fields, and a client generated earlier must accept them."""

    def records(schema):
        if isinstance(schema, dict):
            if "properties" in schema:
                yield schema
            for value in schema.values():
                yield from records(value)
        elif isinstance(schema, list):
            for item in schema:
                yield from records(item)

    schemas = describe(api, version, label="1")["components"]["schemas"]
    reply_records = [*records([schema for name, schema in schemas.items() if name.endswith("Reply")])]
    assert len(reply_records) > 10
    assert {record.get("additionalProperties", True) for record in reply_records} == {open_}


def test_two_schemas_with_the_same_name_are_refused():
    components = Components()
    first = components.add_schema("Thing", {"type": "string"})
    assert components.add_schema("Thing", {"type": "string"}) == first == {"$ref": "#/components/schemas/Thing"}
    with pytest.raises(ValueError, match="Thing"):
        components.add_schema("Thing", {"type": "integer"})


def test_errors_have_codes_since_the_version_that_introduced_them():
    def fields(version):
        schema = describe(PLACEMENT, version, label="1")["components"]["schemas"]["Errors409"]
        return schema["properties"]["errors"]["items"]["properties"]

    assert "code" not in fields(Version(1, 22))
    codes = fields(Version(1, 23))["code"]["enum"]
    assert {"placement.concurrent_update", "placement.inventory.inuse"} <= set(codes)


def test_an_api_lists_the_codes_of_its_own_failures():
    """The codes do not depend on which other APIs have been imported."""

    def codes(api, status):
        schema = describe(api, mv.LATEST, label="1")["components"]["schemas"][f"Errors{status}"]
        items = schema["properties"]["errors"]["items"]
        return items["properties"]["code"]["enum"]

    assert codes(PLACEMENT, 404) == ["placement.undefined_code"]
    own_codes = ["placement.v1.nothing_held", "placement.v1.nothing_known"]
    assert codes(V1, 404) == [errors.PROVIDER_NOT_FOUND, "placement.undefined_code", *own_codes]
    declared = {
        kind for kind in vars(failures).values() if isinstance(kind, type) and kind.__module__ == failures.__name__
    }
    assert {*V1.failures} == declared


def test_a_refused_version_has_the_supported_versions_and_no_code():
    schema = describe(PLACEMENT, mv.LATEST, label="1")["components"]["schemas"]["Errors406"]
    valid = jsonschema_rs.Draft202012Validator(schema).is_valid
    common = {"status": 406, "title": "Not Acceptable", "detail": "", "request_id": "req-1"}
    versions = {"max_version": "1.39", "min_version": "1.0"}
    assert valid({"errors": [common | versions]})
    assert valid({"errors": [common | {"code": "placement.undefined_code"}]})
    assert not valid({"errors": [common]})
    assert not valid({"errors": [common | versions | {"code": "placement.undefined_code"}]})
