"""Schemas of bodies and queries at every version, and the messages about invalid values.

Every rendered schema is recorded in ``schemas/*.json``, so that a change of the wire format is a visible diff.  After
an intended change, record them again from the root of the project and read the diff:

    PYTHONPATH=. python tests/unit/schemas/test_schemas.py
"""

from __future__ import annotations

import importlib
import itertools
import json
import pathlib
import pkgutil

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies as st
from oslo_utils import uuidutils

from placement import errors, schemas
from placement import microversion as mv
from placement.schemas import (
    aggregate,
    allocation,
    allocation_candidate,
    inventory,
    provider,
    reshaper,
    resource_class,
    trait,
    usage,
)
from placement.schemas.document import Body, Parameters, Query
from tests import json_strategies

RECORDS = pathlib.Path(__file__).parent
VERSIONS = [change.version for change in mv.HISTORY]

UUID = "5d7e7ad0-8c8f-4b8e-9f5c-3f6f9d9ecb41"
OTHER = "b1a3b9c7-3c58-4f5a-8a64-9d1e4f4c8a11"
CLAIM = {
    "allocations": {UUID: {"resources": {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


def documents():
    """Return each body and query by its name, such as ``provider.CREATE``."""
    documents = {}
    for module in sorted(module.name for module in pkgutil.iter_modules(schemas.__path__)):
        for name, value in vars(importlib.import_module(f"placement.schemas.{module}")).items():
            if isinstance(value, Body | Query):
                documents[f"{module}.{name}"] = value
    return documents


DOCUMENTS = documents()
BODIES = {name: document for name, document in DOCUMENTS.items() if isinstance(document, Body)}


def history(document):
    """Return each rendered schema, by its range of versions."""
    forms = []
    for version in VERSIONS:
        rendered = document.render(version)
        if not forms or forms[-1][2] != rendered:
            forms.append([version, version, rendered])
        forms[-1][1] = version
    return {f"{first} to {last}": rendered for first, last, rendered in forms}


def record():
    RECORDS.mkdir(exist_ok=True)
    for path in RECORDS.glob("*.json"):
        path.unlink()
    for name, document in DOCUMENTS.items():
        (RECORDS / f"{name}.json").write_text(json.dumps(history(document), indent=1) + "\n")


# --- rendered schemas ------------------------------------------------------------------------------------------------


def test_every_document_is_recorded_and_no_other():
    assert {path.stem for path in RECORDS.glob("*.json")} == set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_matches_its_record(name):
    recorded = json.loads((RECORDS / f"{name}.json").read_text())
    assert history(DOCUMENTS[name]) == recorded


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_is_a_json_schema(name):
    for version in VERSIONS:
        jsonschema.Draft7Validator.check_schema(DOCUMENTS[name].render(version))


def test_inventory_of_an_invalid_class_name_is_validated():
    body = {"resource_provider_generation": 0, "inventories": {"lower": {"total": 1}}}
    assert conforms(inventory.REPLACE, body, mv.LATEST)
    for invalid in (5, {}, {"total": "1"}):
        assert not conforms(inventory.REPLACE, body | {"inventories": {"lower": invalid}}, mv.LATEST)


def test_uuids_in_values_may_have_any_notation():
    for spelling in (UUID, UUID.upper(), UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}"):
        assert conforms(provider.CREATE, {"name": "n", "uuid": spelling, "parent_provider_uuid": spelling}, mv.LATEST)
    assert conforms(provider.CREATE, {"name": "n", "parent_provider_uuid": None}, mv.NESTED)
    assert not conforms(provider.CREATE, {"name": "n", "uuid": None}, mv.NESTED)
    assert not conforms(provider.CREATE, {"name": "n", "uuid": UUID[:-1]}, mv.NESTED)


def test_uuids_as_keys_are_36_hexadecimal_digits_or_hyphens():
    assert conforms(allocation.CREATE, {"-" * 36: CLAIM}, mv.LATEST)
    assert conforms(allocation.CREATE, {UUID.upper(): CLAIM}, mv.LATEST)
    assert not conforms(allocation.CREATE, {UUID.replace("-", ""): CLAIM}, mv.LATEST)
    assert not conforms(allocation.CREATE, {"g" * 36: CLAIM}, mv.LATEST)


# --- explanations ----------------------------------------------------------------------------------------------------

RECORD = {"resource_provider_generation": 0, "total": 8}


@pytest.mark.parametrize(
    ("schema", "version", "value", "message", "place"),
    [
        (provider.CREATE, mv.LATEST, [], "[] is not of type 'object'", "'type' in schema:"),
        (provider.CREATE, mv.LATEST, {}, "'name' is a required property", "'required' in schema:"),
        (
            provider.CREATE,
            mv.LATEST,
            {"name": "n", "b": 1, "a": 2},
            "Additional properties are not allowed ('a', 'b' were unexpected)",
            "'additionalProperties' in schema:",
        ),
        (
            provider.CREATE,
            mv.AGGREGATES,
            {"name": "n", "parent_provider_uuid": UUID},
            "Additional properties are not allowed ('parent_provider_uuid' was unexpected)",
            "'additionalProperties' in schema:",
        ),
        (
            provider.CREATE,
            mv.LATEST,
            {"name": "n" * 201},
            f"'{'n' * 201}' is too long",
            "'maxLength' in schema['properties']['name']:",
        ),
        (
            provider.CREATE,
            mv.LATEST,
            {"name": "n", "uuid": "x"},
            "'x' is not a 'uuid'",
            "'format' in schema['properties']['uuid']:",
        ),
        (
            inventory.UPDATE,
            mv.LATEST,
            RECORD | {"total": 0},
            "0 is less than the minimum of 1",
            "'minimum' in schema['properties']['total']:",
        ),
        (
            inventory.UPDATE,
            mv.LATEST,
            RECORD | {"max_unit": 2**31},
            "2147483648 is greater than the maximum of 2147483647",
            "'maximum' in schema['properties']['max_unit']:",
        ),
        (
            inventory.UPDATE,
            mv.LATEST,
            RECORD | {"allocation_ratio": 3.40282e39},
            "3.40282e+39 is greater than the maximum of 3.40282e+38",
            "'maximum' in schema['properties']['allocation_ratio']:",
        ),
        (
            inventory.UPDATE,
            mv.LATEST,
            RECORD | {"step_size": True},
            "True is not of type 'integer'",
            "'type' in schema['properties']['step_size']:",
        ),
        (
            inventory.UPDATE,
            mv.LATEST,
            RECORD | {"reserved": "1"},
            "'1' is not of type 'integer'",
            "'type' in schema['properties']['reserved']:",
        ),
        (
            inventory.CREATE,
            mv.LATEST,
            {"total": 1, "resource_class": "vcpu"},
            "'vcpu' does not match '^[A-Z0-9_]+$'",
            "'pattern' in schema['properties']['resource_class']:",
        ),
        (
            resource_class.NAME,
            mv.LATEST,
            {"name": "VCPU"},
            "'VCPU' does not match '^CUSTOM_[A-Z0-9_]+$'",
            "'pattern' in schema['properties']['name']:",
        ),
        (
            trait.REPLACE,
            mv.LATEST,
            {"traits": ["A", ""], "resource_provider_generation": 0},
            "'' should be non-empty",
            "'minLength' in schema['properties']['traits']['items']:",
        ),
        (
            aggregate.REPLACE,
            mv.AGGREGATES,
            [UUID, UUID],
            f"['{UUID}', '{UUID}'] has non-unique elements",
            "'uniqueItems' in schema:",
        ),
        (
            allocation.REPLACE,
            mv.ALLOCATIONS_BY_PROVIDER,
            {"allocations": {}, "project_id": "p", "user_id": "u"},
            "{} should be non-empty",
            "'minProperties' in schema['properties']['allocations']:",
        ),
        (
            allocation.REPLACE,
            mv.INITIAL,
            {"allocations": []},
            "[] should be non-empty",
            "'minItems' in schema['properties']['allocations']:",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            CLAIM | {"allocations": {"host": {}}},
            "'host' does not match any of the regexes: '^[0-9a-fA-F-]{36}$'",
            "'additionalProperties' in schema['properties']['allocations']:",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            CLAIM | {"consumer_type": "instance"},
            "'instance' does not match '^[A-Z0-9_]+$'",
            "'pattern' in schema['properties']['consumer_type']:",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            CLAIM | {"mappings": {"alpha": "beta"}},
            "'beta' is not of type 'array'",
            "'type' in schema['properties']['mappings']['patternProperties']['[a-zA-Z0-9_-]{1,64}']:",
        ),
        # Of several errors the one nearest to the root is reported; in a claim, unknown properties before missing ones.
        (
            provider.CREATE,
            mv.LATEST,
            {"uuid": "x", "b": 1},
            "'name' is a required property",
            "'required' in schema:",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            {"allocations": 5, "b": 1},
            "Additional properties are not allowed ('b' was unexpected)",
            "'additionalProperties' in schema:",
        ),
    ],
)
def test_explanation_has_the_form_that_clients_match(schema, version, value, message, place):
    with pytest.raises(errors.InvalidBody) as raised:
        schema.validate(value, version)
    sentence, failed, instance = str(raised.value).split("\n\n")
    assert sentence == f"JSON does not validate: {message}"
    assert failed.startswith(f"Failed validating {place}\n    {{")
    assert instance.startswith("On instance")


def test_explanation_shows_the_schema_and_then_the_value():
    with pytest.raises(errors.InvalidBody) as raised:
        resource_class.CREATE.validate({"name": "lower"}, mv.LATEST)
    assert str(raised.value) == (
        "JSON does not validate: 'lower' does not match '^CUSTOM_[A-Z0-9_]+$'\n"
        "\n"
        "Failed validating 'pattern' in schema['properties']['name']:\n"
        "    {'type': 'string', 'pattern': '^CUSTOM_[A-Z0-9_]+$', 'maxLength': 255}\n"
        "\n"
        "On instance['name']:\n"
        "    'lower'"
    )


def test_explanation_has_the_index_of_an_item():
    with pytest.raises(errors.InvalidBody, match=r"On instance\['traits'\]\[1\]:\n    5$"):
        trait.REPLACE.validate({"traits": ["A", 5], "resource_provider_generation": 0}, mv.LATEST)


@pytest.mark.parametrize("twice", [[1, 1.0], [{"a": [1], "b": 2}, {"b": 2, "a": [1]}], ["x", "x"], [None, None]])
def test_repeated_items_are_reported_before_errors_in_the_items(twice):
    with pytest.raises(errors.InvalidBody) as raised:
        aggregate.REPLACE.validate([UUID, *twice], mv.AGGREGATES)
    assert f"{[UUID, *twice]} has non-unique elements\n" in str(raised.value)


@pytest.mark.parametrize("once", [[1, True], [0, False], ["1", 1], [{"a": 1}, '{"a": 1}'], [[], {}]])
def test_equal_values_of_two_types_are_not_repetitions(once):
    assert "has non-unique elements" not in refusal(aggregate.REPLACE, [UUID, *once], mv.AGGREGATES)


# --- values for handlers ---------------------------------------------------------------------------------------------


def test_whole_floats_reach_the_handler_as_integers():
    raw = {"total": 8.0, "resource_class": "VCPU", "allocation_ratio": 4.0, "resource_provider_generation": 2.0}
    body = inventory.CREATE.validate(raw, mv.LATEST)
    assert body == raw
    assert {name: type(value) for name, value in body.items()} == {
        "total": int,
        "resource_class": str,
        "allocation_ratio": float,
        "resource_provider_generation": int,
    }


def floats(value):
    """Yield the names of all properties, at any depth, whose value is a float."""
    if isinstance(value, dict):
        yield from (name for name, inner in value.items() if isinstance(inner, float))
        yield from itertools.chain.from_iterable(map(floats, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(floats, value))


def test_whole_floats_become_integers_at_every_depth():
    record = {"total": 8.0, "allocation_ratio": 4.0, "resource_provider_generation": 2.0}
    inventories = {UUID: {"resource_provider_generation": 1.0, "inventories": {"VCPU": record, "lower": dict(record)}}}
    claims = {OTHER: CLAIM | {"allocations": {UUID: {"generation": 3.0, "resources": {"VCPU": 2.0}}}}}
    claims[OTHER]["consumer_generation"] = 1.0
    body = reshaper.CREATE.validate({"inventories": inventories, "allocations": claims}, mv.LATEST)
    assert set(floats(body)) == {"allocation_ratio"}
    old_body = {"allocations": [{"resource_provider": {"uuid": UUID}, "resources": {"VCPU": 1.0}}]}
    assert set(floats(allocation.REPLACE.validate(old_body, mv.INITIAL))) == set()


def test_values_without_a_schema_keep_their_floats():
    body = allocation.REPLACE.validate(CLAIM | {"mappings": {"A": [UUID], "$": {"b": 8.0}}}, mv.LATEST)
    assert list(floats(body)) == ["b"]


def test_a_valid_body_is_returned_unchanged():
    body = allocation.REPLACE.validate(CLAIM, mv.LATEST)
    assert body == CLAIM


def test_a_pattern_does_not_match_before_a_newline_at_the_end():
    """The newline would reach a Location header and a column of 36 characters."""
    with pytest.raises(errors.InvalidBody, match="does not match"):
        resource_class.CREATE.validate({"name": "CUSTOM_A\n"}, mv.LATEST)
    with pytest.raises(errors.InvalidBody, match="does not match any of the regexes"):
        allocation.CREATE.validate({UUID + "\n": CLAIM}, mv.LATEST)


def nested_lists(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("schema", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(
    "value",
    [
        nested_lists(5_000),
        {
            "name": nested_lists(5_000),
            "traits": nested_lists(900),
            "aggregates": [nested_lists(5_000)],
            "mappings": nested_lists(300),
        },
        [10**5_000] * 2,
        {"total": 10**5_000, "consumer_generation": -(10**5_000), "allocation_ratio": 10**400},
        {"total": float("inf"), "allocation_ratio": float("-inf"), "resource_provider_generation": float("nan")},
        [{"a": number} for number in range(30_000)],
        [{}] + [f"{number:032x}" for number in range(30_000)],
        {str(number): number for number in range(30_000)},
        "x" * 1_000_000,
        {"\ud800": 1},
    ],
    ids=[
        "deep",
        "deep inside",
        "long number",
        "long numbers",
        "infinite",
        "wide",
        "wide and mixed",
        "many keys",
        "long text",
        "half of a surrogate pair",
    ],
)
def test_hostile_values_are_refused(schema, value):
    for version in (mv.MINIMUM, mv.AGGREGATE_GENERATION, mv.LATEST):
        with pytest.raises(errors.InvalidBody):
            schema.validate(value, version)


@pytest.mark.parametrize("ratio", [float("inf"), float("-inf"), float("nan"), 10**400, -(10**400)])
def test_ratio_is_a_number_that_a_double_can_hold(ratio):
    with pytest.raises(errors.InvalidBody):
        inventory.UPDATE.validate(RECORD | {"allocation_ratio": ratio}, mv.LATEST)


def test_long_values_are_cut_in_explanations():
    with pytest.raises(errors.InvalidBody) as raised:
        resource_class.CREATE.validate({"name": "CUSTOM_" + "A" * 90_000}, mv.LATEST)
    message, _, shown_value = str(raised.value).split("\n\n")
    assert message.startswith("JSON does not validate: 'CUSTOM_AAA")
    assert message.endswith("AAA' is too long")
    assert len(message) < 6_000
    assert len(shown_value) < 11_000


A_CLAIM_OF_MANY = {UUID: {"resources": {f"CUSTOM_{number}": 1 for number in range(6_000)}}}


@pytest.mark.parametrize(
    ("schema", "version", "value", "sentence"),
    [
        (
            trait.REPLACE,
            mv.LATEST,
            {"traits": [*map(str, range(9_000)), 5, "a"], "resource_provider_generation": 0},
            r"5 is not of type 'string'\n\nFailed validating 'type' in schema\['properties'\]\['traits'\]\['items'\]:\n"
            r"(?s:.*)On instance\['traits'\]\[9000\]:\n    5$",
        ),
        (
            trait.REPLACE,
            mv.LATEST,
            {"traits": [*map(str, range(9_000)), 5], "b": 0},
            r"the value does not conform to the schema, and is too large or too deep to say more$",
        ),
        (
            aggregate.REPLACE,
            mv.AGGREGATES,
            [UUID] * 9_000,
            r"the value does not conform to the schema, and is too large or too deep to say more$",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            CLAIM | {"allocations": {**A_CLAIM_OF_MANY, OTHER: {"resources": {"VCPU": 0}}}},
            r"0 is less than the minimum of 1\n(?s:.*)"
            r"On instance\['allocations'\]\['b1a3(?s:.*)'\]\['resources'\]\['VCPU'\]:",
        ),
        (
            allocation.REPLACE,
            mv.LATEST,
            CLAIM | {"allocations": A_CLAIM_OF_MANY, "mappings": {"_A": []}},
            r"\[\] should be non-empty\n(?s:.*)On instance\['mappings'\]\['_A'\]:",
        ),
        (
            allocation.CREATE,
            mv.LATEST,
            {UUID: CLAIM, OTHER: CLAIM | {"allocations": A_CLAIM_OF_MANY, "project_id": None}},
            r"None is not of type 'string'\n(?s:.*)On instance\['b1a3(?s:.*)'\]\['project_id'\]:",
        ),
    ],
)
def test_location_of_an_error_in_a_large_value_is_found(schema, version, value, sentence):
    with pytest.raises(errors.InvalidBody, match="^JSON does not validate: " + sentence):
        schema.validate(value, version)


def test_a_missing_property_of_a_large_value_is_reported_before_an_error_inside_it():
    body = {"allocations": {UUID: {"resources": {**A_CLAIM_OF_MANY[UUID]["resources"], "CUSTOM_X": 0}}}}
    with pytest.raises(errors.InvalidBody, match=r"^JSON does not validate: the value does not conform"):
        allocation.REPLACE.validate(body, mv.LATEST)


def test_an_infinite_ratio_is_refused_as_not_a_number():
    records = {"VCPU": {"total": 1, "allocation_ratio": float("inf")}}
    with pytest.raises(errors.InvalidBody, match=r"^JSON does not validate: inf is not of type 'number'"):
        inventory.REPLACE.validate({"resource_provider_generation": 0, "inventories": records}, mv.LATEST)


# --- queries ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "version", "pairs", "message"),
    [
        (
            provider.LIST,
            mv.INITIAL,
            [("member_of", UUID)],
            "Additional properties are not allowed ('member_of' was unexpected)",
        ),
        (provider.LIST, mv.LATEST, [("uuid", UUID.replace("-", ""))], f"'{UUID.replace('-', '')}' is not a 'uuid'"),
        (provider.LIST, mv.LATEST, [("in_tree", f"urn:uuid:{UUID}")], f"'urn:uuid:{UUID}' is not a 'uuid'"),
        (provider.LIST, mv.LATEST, [("uuid", UUID), ("uuid", "")], "'' is not a 'uuid'"),
        (usage.LIST, mv.USAGES, [("user_id", "u")], "'project_id' is a required property"),
        (usage.LIST, mv.LATEST, [("project_id", "")], "'' should be non-empty"),
        (
            usage.LIST,
            mv.LATEST,
            [("project_id", "p"), ("consumer_type", "some")],
            "'some' does not match '^[A-Z0-9_]+$|^all|^unknown$'",
        ),
        (
            usage.LIST,
            mv.USAGES,
            [("project_id", "p"), ("consumer_type", "all")],
            "Additional properties are not allowed ('consumer_type' was unexpected)",
        ),
        (
            trait.LIST,
            mv.LATEST,
            [("nmae", "in:A")],
            "Additional properties are not allowed ('nmae' was unexpected)",
        ),
        (
            allocation_candidate.LIST,
            mv.ALLOCATION_CANDIDATES,
            [("limit", "1")],
            "'resources' is a required property",
        ),
        (
            allocation_candidate.LIST,
            mv.GRANULAR_GROUPS,
            [("resources01", "VCPU:1")],
            "'resources01' does not match any of the regexes: '^member_of([1-9][0-9]*)?$', "
            "'^required([1-9][0-9]*)?$', '^resources([1-9][0-9]*)?$'",
        ),
        (
            allocation_candidate.LIST,
            mv.LATEST,
            [("resources" + "x" * 65, "VCPU:1")],
            f"'resources{'x' * 65}' does not match any of the regexes: '^in_tree([a-zA-Z0-9_-]{{1,64}})?$', "
            "'^member_of([a-zA-Z0-9_-]{1,64})?$', '^required([a-zA-Z0-9_-]{1,64})?$', "
            "'^resources([a-zA-Z0-9_-]{1,64})?$'",
        ),
        (
            allocation_candidate.LIST,
            mv.LATEST,
            [("group_policy", "bogus")],
            "'bogus' is not one of ['none', 'isolate']",
        ),
        (allocation_candidate.LIST, mv.LATEST, [("limit", "1"), ("limit", "0")], "'0' does not match '^[1-9][0-9]*$'"),
        (allocation_candidate.LIST, mv.LATEST, [("limit", "x"), ("limit", "1")], "'x' does not match '^[1-9][0-9]*$'"),
        (
            allocation_candidate.LIST,
            mv.LATEST,
            [("group_policy", "x"), ("group_policy", "none")],
            "'x' is not one of ['none', 'isolate']",
        ),
    ],
)
def test_query_is_refused_with_an_explanation(schema, version, pairs, message):
    with pytest.raises(errors.InvalidQuery) as raised:
        schema.validate(pairs, version)
    assert str(raised.value).split("\n\n")[0] == f"Invalid query string parameters: {message}"


def test_consumer_type_of_usages_may_be_any_text_that_begins_with_all():
    """The pattern is not anchored at its end, as in OpenStack Placement."""
    assert usage.LIST.validate([("project_id", "p"), ("consumer_type", "allfoo")], mv.LATEST)


def test_the_last_value_counts_except_for_limit_and_group_policy():
    query = allocation_candidate.LIST.validate(
        [
            ("limit", "10"),
            ("resources", "VCPU:1"),
            ("group_policy", "isolate"),
            ("limit", "1"),
            ("resources", "VCPU:2"),
            ("group_policy", "none"),
        ],
        mv.LATEST,
    )
    assert {name: query.get(name) for name in query} == {
        "limit": "10",
        "resources": "VCPU:2",
        "group_policy": "isolate",
    }
    assert query.all("resources") == ["VCPU:1", "VCPU:2"]
    assert list(query.items())[3:5] == [("limit", "1"), ("resources", "VCPU:2")]


def test_parameters_have_defaults_for_absent_names():
    query = Parameters([("name", "")])
    assert "name" in query
    assert "uuid" not in query
    assert (query.get("name", "n"), query.get("uuid"), query.get("uuid", "u")) == ("", None, "u")
    assert query.all("uuid") == []
    assert [*query] == ["name"]


# --- generated values ------------------------------------------------------------------------------------------------


def refusal(schema, value, version):
    """Return the sentence of the refusal, or None for a value that conforms."""
    try:
        schema.validate(value, version)
    except (errors.InvalidBody, errors.InvalidQuery) as failure:
        return str(failure)
    return None


def conforms(schema, value, version):
    return refusal(schema, value, version) is None


def valid_for_jsonschema(schema, value):
    """Whether the value is valid for the jsonschema library, to which only the format of uuids is added."""
    formats = jsonschema.FormatChecker(formats=())
    formats.checks("uuid")(lambda value: not isinstance(value, str) or uuidutils.is_uuid_like(value))
    return jsonschema.Draft7Validator(schema, format_checker=formats).is_valid(value)


bodies_and_versions = st.tuples(st.sampled_from(sorted(BODIES)), st.sampled_from(VERSIONS))


@hypothesis.given(st.data(), bodies_and_versions)
def test_values_that_conform_are_accepted(data, body_and_version):
    name, version = body_and_version
    value = data.draw(json_strategies.conforming(BODIES[name].render(version)))
    assert BODIES[name].validate(value, version) == value


@hypothesis.given(st.data(), bodies_and_versions)
def test_a_generated_value_has_the_verdict_of_the_jsonschema_library(data, body_and_version):
    """The library makes the messages of refusals."""
    name, version = body_and_version
    schema = BODIES[name].render(version)
    value = data.draw(json_strategies.nearly(json_strategies.conforming(schema)) | json_strategies.json_values())
    sentence = refusal(BODIES[name], value, version)
    assert (sentence is None) == valid_for_jsonschema(schema, value)
    assert sentence is None or "Failed validating" in sentence


if __name__ == "__main__":
    record()
