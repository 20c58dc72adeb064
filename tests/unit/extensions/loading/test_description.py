"""The entries of a description file, and the mistakes found without a database."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement import microversion as mv
from placement.extensions.loading.description import read_entries
from placement.extensions.loading.schema import SCHEMA
from placement.extensions.loading.yaml_source import InvalidFile, YamlSource
from placement.objects.inventory import AMOUNTS, Inventory
from placement.schemas import inventory
from tests.json_strategies import json_values

UUID = "5a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11"


def entries(text):
    return read_entries(YamlSource(text))


def names(text):
    return [entry.name for entry in entries(text)]


def findings(text):
    try:
        entries(text)
    except InvalidFile as raised:
        return [(finding.line, finding.text) for finding in raised.findings]
    return []


def test_omitted_fields_are_not_described():
    (entry,) = entries("providers: [{name: a}]")
    assert (entry.states_parent, entry.parent, entry.uuid) == (False, None, None)
    assert (entry.inventories, entry.traits, entry.aggregates) == (None, None, None)


def test_every_field_of_a_file_is_read():
    (entry,) = entries(
        f"""
aggregates: {{rack: {UUID}}}
providers:
  - name: a
    uuid: {UUID}
    parent: null
    inventories: {{VCPU: 16, MEMORY_MB: {{total: 2048.0, allocation_ratio: 2}}}}
    traits: [CUSTOM_A]
    aggregates: [rack]
"""
    )
    assert (entry.line, entry.name, entry.uuid) == (4, "a", UUID)
    assert (entry.states_parent, entry.parent) == (True, None)
    assert entry.inventories == {
        "VCPU": Inventory("VCPU", 16),
        "MEMORY_MB": Inventory("MEMORY_MB", 2048, allocation_ratio=2.0),
    }
    assert (entry.traits, entry.aggregates) == ({"CUSTOM_A"}, {UUID})


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", ["a"]),
        ("a[1-3]", ["a1", "a2", "a3"]),
        ("a[08-10]b", ["a08b", "a09b", "a10b"]),
        ("a[1,3,5-6]", ["a1", "a3", "a5", "a6"]),
        ("r[1-2]u[1-2]", ["r1u1", "r1u2", "r2u1", "r2u2"]),
        ("a[x]", ["a[x]"]),
        ("a[]", ["a[]"]),
    ],
)
def test_numbers_in_a_name_are_written_out(pattern, expected):
    assert names(json.dumps({"providers": [{"name": pattern}]})) == expected


def test_children_are_named_after_their_parents():
    cards = {"name": "{parent}-g"}
    nodes = {"name": "{parent}-n0", "children": [cards]}
    parsed = entries(json.dumps({"providers": [{"name": "h[1-2]", "children": [nodes]}]}))
    assert [(entry.name, entry.parent) for entry in parsed] == [
        *(("h1", None), ("h1-n0", "h1"), ("h1-n0-g", "h1-n0")),
        *(("h2", None), ("h2-n0", "h2"), ("h2-n0-g", "h2-n0")),
    ]


def test_parents_come_before_their_children():
    parsed = entries(f"providers: [{{name: c, parent: b}}, {{name: b, parent: {UUID}}}, {{name: a, uuid: {UUID}}}]")
    assert [(entry.name, entry.parent) for entry in parsed] == [("a", None), ("b", "a"), ("c", "b")]


@given(st.permutations(["a", "a1", "a11", "a12", "b", "b1"]))
def test_the_order_in_a_file_does_not_matter(order):
    """Each provider is a child of the provider whose name lacks its last character."""
    providers = [{"name": name, **({"parent": name[:-1]} if len(name) > 1 else {})} for name in order]
    parsed = entries(yaml.safe_dump({"providers": providers}))
    assert {entry.name: entry.parent for entry in parsed} == {name: name[:-1] or None for name in order}
    places = {entry.name: place for place, entry in enumerate(parsed)}
    assert all(places[name[:-1]] < places[name] for name in order if len(name) > 1)


def test_each_unknown_key_is_a_finding():
    text = "providers:\n- name: a\n  x: 1\n  traits: []\n  inventories: {VCPU: 1,\n    b: 1}\n  y: 1\nz: 1\n"
    assert [(line, words.partition(" is")[0]) for line, words in findings(text)] == [
        (3, "providers: 'x'"),
        (6, "providers.inventories: 'b'"),
        (7, "providers: 'y'"),
        (8, "'z'"),
    ]


def test_an_empty_file_is_a_mistake():
    assert findings("") == [(1, "This must be a mapping of keys to values.")]


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["- {}"], 2, "'name' is a required property"),
        (["- name: a", "  inventory: {}"], 3, "'inventory' is unknown here; use one of aggregates, children"),
        (["- name: 17"], 2, "name: This must be a string (in quotes"),
        (["- name: a", "  uuid: b"], 3, "'b' is not a uuid"),
        (["- name: a", "  inventories:", "    VCPU: 0"], 4, "VCPU: 0 is less than the minimum of 1"),
        (["- name: a", "  inventories:", "    VCPU: yes"], 4, "VCPU: This must be an integer."),
        (["- name: a", "  inventories:", "    vcpu: 1"], 4, "'vcpu' is not a resource class"),
        (["- name: a", "  inventories:", "    VCPU:", "      totl: 1"], 5, "'totl' is unknown here; use one of"),
        (["- name: a", "  inventories:", "    VCPU: {reserved: 1}"], 4, "'total' is a required property"),
        (["- name: a", "  inventories: {VCPU: {total: 1, reserved: 2}}"], 3, "reserved value is greater than total"),
        (["- name: a", "  traits: [B, B]"], 3, "duplicate items"),
        (["- name: a", "  aggregates:", "    - rack"], 4, "'rack' is neither a uuid nor a name in aggregates"),
        (["- name: a", "- name: a"], 3, "Line 2 already describes a provider with the name a."),
        (["- name: a[1-2]", "- name: a2"], 3, "Line 2 already describes a provider with the name a2."),
        (
            [f"- {{name: a, uuid: {UUID}}}", f"- {{name: b, uuid: {UUID}}}"],
            3,
            f"Line 2 already describes a provider with the uuid {UUID}.",
        ),
        (["- name: a", "  children:", "  - {name: b, parent: c}"], 4, "b is a child of a and must not state a"),
        (["- name: '{parent}-a'"], 2, "{parent} can only be used in the names of children"),
        (["- name: a[3-1]"], 2, "must ascend"),
        ([f"- name: a[1-{'9' * 5000}]"], 2, "more than 200 characters"),
        (["- name: a[1-99999,100000-199999]"], 2, "A file can describe at most 100,000 providers"),
        (["- {name: a, parent: 1}"], 2, "parent: This must be a string (in quotes"),
        (["- name: a[1-999999999]"], 2, "A file can describe at most 100,000 providers"),
        ([f"- name: {'a' * 201}"], 2, "more than 200 characters"),
        (["- {name: a, parent: b}", "- {name: b, parent: a}"], 2, "a is its own ancestor: a < b"),
    ],
)
def test_a_mistake_in_an_entry_is_reported_with_its_line(lines, line, words):
    (finding, *_) = findings("\n".join(["providers:", *lines]))
    assert finding[0] == line
    assert words in finding[1]


@pytest.mark.parametrize("text", ["", "null", "[]", "providers", "providers: {}", "providers: [1]", "a: 1"])
def test_values_of_other_types_are_refused(text):
    assert findings(text)


def test_all_mistakes_in_entries_are_found():
    text = "providers:\n- {name: a, x: 1}\n- {name: b, inventories: {VCPU: -1}}\n- {name: c, uuid: d}\n"
    assert [line for line, _ in findings(text)] == [2, 3, 4]


@given(st.dictionaries(st.sampled_from(["name", "uuid", "parent", "inventories", "traits", "children"]), json_values()))
def test_any_document_is_described_or_refused(document):
    findings(yaml.safe_dump({"providers": [document]}))


def test_the_schema_is_valid_and_has_the_bounds_of_the_api():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    api_properties = inventory.CREATE.render(mv.HISTORY.latest)["properties"]
    properties = SCHEMA["$defs"]["inventory"]["properties"]
    assert properties == {name: api_properties[name] for name in AMOUNTS}
