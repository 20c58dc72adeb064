"""Changes of each version in the OpenAPI documents of Placement, compared with a list written by hand.

``GET /x`` is an operation, ``?`` a parameter of the query (``*``: several values), ``<`` a field of the body, and ``>``
a field of a response.  ``!`` marks required parameters and fields, ``/*`` properties with any name, and ``[]`` the
items of a list.  An added or removed operation is listed without its parts.
"""

from __future__ import annotations

import itertools

import pytest

from placement import microversion as mv
from placement.extensions.v1.openapi.document import describe
from placement.routes import PLACEMENT
from tests.reply_conformance import resolve_references

CHANGES = """
1.1 + GET /resource_providers/{uuid}/aggregates
1.1 + PUT /resource_providers/{uuid}/aggregates
1.2 + DELETE /resource_classes/{name}
1.2 + GET /resource_classes
1.2 + GET /resource_classes/{name}
1.2 + POST /resource_classes
1.2 + PUT /resource_classes/{name}
1.3 + GET /resource_providers ?member_of
1.4 + GET /resource_providers ?resources
1.5 + DELETE /resource_providers/{uuid}/inventories
1.6 + DELETE /resource_providers/{uuid}/traits
1.6 + DELETE /traits/{name}
1.6 + GET /resource_providers/{uuid}/traits
1.6 + GET /traits
1.6 + GET /traits/{name}
1.6 + PUT /resource_providers/{uuid}/traits
1.6 + PUT /traits/{name}
1.7 + PUT /resource_classes/{name} 201 location
1.7 + PUT /resource_classes/{name} 204 location
1.7 - PUT /resource_classes/{name} 200
1.7 - PUT /resource_classes/{name} 200 >/links!
1.7 - PUT /resource_classes/{name} 200 >/links![]/href!
1.7 - PUT /resource_classes/{name} 200 >/links![]/rel!
1.7 - PUT /resource_classes/{name} 200 >/name!
1.7 - PUT /resource_classes/{name} </name!
1.8 + PUT /allocations/{consumer_uuid} </project_id!
1.8 + PUT /allocations/{consumer_uuid} </user_id!
1.9 + GET /usages
1.10 + GET /allocation_candidates
1.12 + GET /allocation_candidates 200 >/allocation_requests![]/allocations!/*
1.12 + GET /allocation_candidates 200 >/allocation_requests![]/allocations!/*/resources!
1.12 + GET /allocation_candidates 200 >/allocation_requests![]/allocations!/*/resources!/*
1.12 - GET /allocation_candidates 200 >/allocation_requests![]/allocations![]/resource_provider!
1.12 - GET /allocation_candidates 200 >/allocation_requests![]/allocations![]/resource_provider!/uuid!
1.12 - GET /allocation_candidates 200 >/allocation_requests![]/allocations![]/resources!
1.12 - GET /allocation_candidates 200 >/allocation_requests![]/allocations![]/resources!/*
1.12 + GET /allocations/{consumer_uuid} 200 >/project_id
1.12 + GET /allocations/{consumer_uuid} 200 >/user_id
1.12 + PUT /allocations/{consumer_uuid} </allocations!/*
1.12 + PUT /allocations/{consumer_uuid} </allocations!/*/generation
1.12 + PUT /allocations/{consumer_uuid} </allocations!/*/resources!
1.12 + PUT /allocations/{consumer_uuid} </allocations!/*/resources!/*
1.12 - PUT /allocations/{consumer_uuid} </allocations![]/resource_provider!
1.12 - PUT /allocations/{consumer_uuid} </allocations![]/resource_provider!/uuid!
1.12 - PUT /allocations/{consumer_uuid} </allocations![]/resources!
1.12 - PUT /allocations/{consumer_uuid} </allocations![]/resources!/*
1.13 + POST /allocations
1.14 + GET /resource_providers ?in_tree
1.14 + GET /resource_providers 200 >/resource_providers![]/parent_provider_uuid!
1.14 + GET /resource_providers 200 >/resource_providers![]/root_provider_uuid!
1.14 + GET /resource_providers/{uuid} 200 >/parent_provider_uuid!
1.14 + GET /resource_providers/{uuid} 200 >/root_provider_uuid!
1.14 + POST /resource_providers </parent_provider_uuid
1.14 + PUT /resource_providers/{uuid} </parent_provider_uuid
1.14 + PUT /resource_providers/{uuid} 200 >/parent_provider_uuid!
1.14 + PUT /resource_providers/{uuid} 200 >/root_provider_uuid!
1.16 + GET /allocation_candidates ?limit
1.17 + GET /allocation_candidates ?required
1.17 + GET /allocation_candidates 200 >/provider_summaries!/*/traits!
1.18 + GET /resource_providers ?required
1.19 + GET /resource_providers/{uuid}/aggregates 200 >/resource_provider_generation!
1.19 + PUT /resource_providers/{uuid}/aggregates 200 >/resource_provider_generation!
1.19 + PUT /resource_providers/{uuid}/aggregates </aggregates!
1.19 + PUT /resource_providers/{uuid}/aggregates </resource_provider_generation!
1.20 + POST /resource_providers 200 location
1.20 + POST /resource_providers 200 >/generation!
1.20 + POST /resource_providers 200 >/links!
1.20 + POST /resource_providers 200 >/links![]/href!
1.20 + POST /resource_providers 200 >/links![]/rel!
1.20 + POST /resource_providers 200 >/name!
1.20 + POST /resource_providers 200 >/parent_provider_uuid!
1.20 + POST /resource_providers 200 >/root_provider_uuid!
1.20 + POST /resource_providers 200 >/uuid!
1.20 - POST /resource_providers 201 location
1.21 + GET /allocation_candidates ?member_of
1.24 + GET /allocation_candidates ?member_of*
1.24 - GET /allocation_candidates ?member_of
1.24 + GET /resource_providers ?member_of*
1.24 - GET /resource_providers ?member_of
1.25 + GET /allocation_candidates ?^member_of[1-9][0-9]*$
1.25 + GET /allocation_candidates ?^required[1-9][0-9]*$
1.25 + GET /allocation_candidates ?^resources[1-9][0-9]*$
1.25 + GET /allocation_candidates ?group_policy
1.25 + GET /allocation_candidates ?resources
1.25 - GET /allocation_candidates ?resources!
1.28 + GET /allocations/{consumer_uuid} 200 >/consumer_generation
1.28 + GET /resource_providers/{uuid}/allocations 200 >/allocations!/*/consumer_generation!
1.28 + POST /allocations </*/consumer_generation!
1.28 + PUT /allocations/{consumer_uuid} </consumer_generation!
1.29 + GET /allocation_candidates 200 >/provider_summaries!/*/parent_provider_uuid!
1.29 + GET /allocation_candidates 200 >/provider_summaries!/*/root_provider_uuid!
1.30 + POST /reshaper
1.31 + GET /allocation_candidates ?^in_tree[1-9][0-9]*$
1.31 + GET /allocation_candidates ?in_tree
1.33 + GET /allocation_candidates ?^in_tree[a-zA-Z0-9_-]{1,64}$
1.33 + GET /allocation_candidates ?^member_of[a-zA-Z0-9_-]{1,64}$
1.33 + GET /allocation_candidates ?^required[a-zA-Z0-9_-]{1,64}$
1.33 + GET /allocation_candidates ?^resources[a-zA-Z0-9_-]{1,64}$
1.33 - GET /allocation_candidates ?^in_tree[1-9][0-9]*$
1.33 - GET /allocation_candidates ?^member_of[1-9][0-9]*$
1.33 - GET /allocation_candidates ?^required[1-9][0-9]*$
1.33 - GET /allocation_candidates ?^resources[1-9][0-9]*$
1.34 + GET /allocation_candidates 200 >/allocation_requests![]/mappings!
1.34 + GET /allocation_candidates 200 >/allocation_requests![]/mappings!/*
1.34 + POST /allocations </*/mappings
1.34 + POST /allocations </*/mappings/*
1.34 + POST /reshaper </allocations!/*/mappings
1.34 + POST /reshaper </allocations!/*/mappings/*
1.34 + PUT /allocations/{consumer_uuid} </mappings
1.34 + PUT /allocations/{consumer_uuid} </mappings/*
1.35 + GET /allocation_candidates ?root_required
1.36 + GET /allocation_candidates ?same_subtree*
1.38 + GET /allocations/{consumer_uuid} 200 >/consumer_type
1.38 + GET /usages ?consumer_type
1.38 + GET /usages 200 >/usages!/*/*
1.38 + GET /usages 200 >/usages!/*/consumer_count!
1.38 + POST /allocations </*/consumer_type!
1.38 + POST /reshaper </allocations!/*/consumer_type!
1.38 + PUT /allocations/{consumer_uuid} </consumer_type!
1.39 + GET /allocation_candidates ?required*
1.39 - GET /allocation_candidates ?required
1.39 + GET /resource_providers ?required*
1.39 - GET /resource_providers ?required
"""
DATED = {"cache-control", "last-modified"}


def operations(version):
    """Yield the name of each operation of a version, and the operation."""
    document = describe(PLACEMENT, version, label="1")
    for path, methods in resolve_references(document["paths"], document).items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def parts(operation):
    """Yield the parts of an operation, in the notation of the list above."""
    for parameter in operation["parameters"]:
        if parameter["in"] == "query":
            schema = parameter["schema"]
            mark = "!" if parameter.get("required") else "*" if schema["type"] == "array" else ""
            yield from (f"?{name}{mark}" for name in schema.get("patternProperties", [parameter["name"]]))
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield from (f"<{field}" for field in fields(content["schema"]))
    for status, response in operation["responses"].items():
        if status < "300":
            yield f"{status} location" if "location" in response["headers"] else status
            for content in response.get("content", {}).values():
                yield from (f"{status} >{field}" for field in fields(content["schema"]))


def fields(schema, path_of_schema=""):
    """Yield the paths of the fields in the values of a schema."""
    for alternative in schema.get("anyOf", ()):
        yield from fields(alternative, path_of_schema)
    if "items" in schema:
        yield from fields(schema["items"], f"{path_of_schema}[]")
    for name, inner in schema.get("properties", {}).items():
        path_of_field = f"{path_of_schema}/{name}{'!' if name in schema.get('required', ()) else ''}"
        yield path_of_field
        yield from fields(inner, path_of_field)
    map_values = [schema["additionalProperties"]] if "propertyNames" in schema else []
    for inner in (*schema.get("patternProperties", {}).values(), *map_values):
        yield f"{path_of_schema}/*"
        yield from fields(inner, f"{path_of_schema}/*")


def changes(before, after):
    """Yield the differences between two versions, in the notation of the list above."""
    old, new = ({name: {*parts(operation)} for name, operation in operations(version)} for version in (before, after))
    for sign, present, absent in (("+", new, old), ("-", old, new)):
        for name, present_parts in present.items():
            if name not in absent:
                yield f"{after} {sign} {name}"
            else:
                yield from (f"{after} {sign} {name} {part}" for part in present_parts - absent[name])


def test_the_operations_of_the_first_version_are_listed():
    names = {name for name, _ in operations(mv.MINIMUM)}
    assert names == {
        "GET /",
        *(f"{method} /resource_providers" for method in ("GET", "POST")),
        *(f"{method} /resource_providers/{{uuid}}" for method in ("GET", "PUT", "DELETE")),
        *(f"{method} /resource_providers/{{uuid}}/inventories" for method in ("GET", "POST", "PUT")),
        *(
            f"{method} /resource_providers/{{uuid}}/inventories/{{resource_class}}"
            for method in ("GET", "PUT", "DELETE")
        ),
        "GET /resource_providers/{uuid}/usages",
        "GET /resource_providers/{uuid}/allocations",
        *(f"{method} /allocations/{{consumer_uuid}}" for method in ("GET", "PUT", "DELETE")),
    }


@pytest.mark.parametrize(("before", "after"), [*itertools.pairwise(change.version for change in mv.HISTORY)], ids=str)
def test_the_changes_of_each_version_are_listed(before, after):
    lines = {line for line in CHANGES.splitlines() if line.startswith(f"{after} ")}
    assert {*changes(before, after)} == lines


@pytest.mark.parametrize("version", [mv.NESTED, mv.CACHE_HEADERS, mv.LATEST], ids=str)
def test_responses_with_a_document_or_about_one_trait_have_cache_headers(version):
    """Responses that only a dry run returns have none."""
    for name, operation in operations(version):
        for status, response in operation["responses"].items():
            schemas = [content["schema"] for content in response.get("content", {}).values()]
            is_dated = any("dry_run" not in schema.get("required", ()) for schema in schemas)
            is_dated |= name in ("GET /traits/{name}", "PUT /traits/{name}")
            expected = DATED if version >= mv.CACHE_HEADERS and status < "300" and is_dated else set()
            assert DATED & response["headers"].keys() == expected, (name, status)
