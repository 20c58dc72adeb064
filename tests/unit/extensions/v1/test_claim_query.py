"""The query of a claim: its two forms, text and object, and the canonical text of equivalent queries."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import errors
from placement import microversion as mv
from placement.extensions.v1 import request_query
from placement.extensions.v1.schemas import claim as schema
from placement.search.query.parse import TOO_MUCH
from placement.search.query.query import Group
from tests import made
from tests.strategies import search_queries, worlds
from tests.world import World

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


def parse_query(given_query):
    snapshot, conf = World().snapshot(), made.configuration()
    if isinstance(given_query, str):
        return request_query.from_parameters(schema.query_parameters(given_query), snapshot, {}, conf)
    body = {"requests": [{"consumer": A, "consumer_type": "JOB", "project_id": "p", "user_id": "u"}]}
    body["requests"][0]["query"] = given_query
    valid = schema.CREATE.validate(body, mv.LATEST)["requests"][0]["query"]
    return request_query.from_document(valid, snapshot, {}, conf)


def group(**fields):
    return {"groups": {"": {"resources": {"VCPU": 2}, **fields}}}


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("resources=VCPU:2", group()),
        ("?resources=VCPU:2", group(resources={"VCPU": 2.0})),
        ("resources=VCPU:2&required=T,!U&required=in:V,W", group(required=["T", "!U", "in:V,W"])),
        ("resources=VCPU:2&required=T,!U", group(required=["T,!U"])),
        (f"resources=VCPU:2&member_of=in:{A},{B}&member_of=!{B}", group(member_of=[f"in:{A},{B}", f"!{B}"])),
        (f"resources=VCPU:2&in_tree={A}", group(in_tree=A)),
        ("resources=VCPU:9999999999999999", group(resources={"VCPU": 10**30})),
        ("resources=VCPU:2&root_required=T,!U", {**group(), "root_required": ["T", "!U"]}),
        (
            "resources_A=VCPU:2&resources_B=VCPU:1&group_policy=isolate&same_subtree=_A,_B",
            {
                "groups": {"_A": {"resources": {"VCPU": 2}}, "_B": {"resources": {"VCPU": 1}}},
                "group_policy": "isolate",
                "same_subtree": [["_A", "_B"]],
            },
        ),
    ],
)
def test_the_text_and_the_object_are_equivalent_queries(text, document):
    assert parse_query(text) == parse_query(document)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("resources=VCPU:2&required=A,", group(required=["A,"])),
        ("resources=VCPU:2&required=in:A,!B&in_tree=x", group(required=["in:A,!B"], in_tree="x")),
        (f"resources=VCPU:2&member_of={A},{B}", group(member_of=[f"{A},{B}"])),
        ("resources=VCPU:2&required=A,!A", group(required=["A", "!A"])),
        ("resources=VCPU:2&root_required=A,!A", {**group(), "root_required": ["A", "!A"]}),
        ("resources=VCPU:2&root_required=A,,B", {**group(), "root_required": ["A,", "B"]}),
        ("resources=VCPU:2&same_subtree=1,", {**group(), "same_subtree": [["1", ""]]}),
        ("resources=VCPU:2&same_subtree=1", {**group(), "same_subtree": [["1"]]}),
        ("required=A", {"groups": {"": {"required": ["A"]}}}),
        ("same_subtree=", {"groups": {"": {"resources": {}}}, "same_subtree": [[""]]}),
        (
            "resources=VCPU:1&resources1=VCPU:1&required1=A,&required2=in:",
            {"groups": {"": {"resources": {"VCPU": 1}}, "1": {"required": ["A,"]}, "2": {"required": ["in:"]}}},
        ),
        (
            "resources1=VCPU:1&resources2=VCPU:1",
            {"groups": {"1": {"resources": {"VCPU": 1}}, "2": {"resources": {"VCPU": 1}}}},
        ),
        (
            "&".join(f"resources{number}=VCPU:1" for number in range(1, 258)) + "&group_policy=none",
            {
                "groups": {f"{number}": {"resources": {"VCPU": 1}} for number in range(1, 258)},
                "group_policy": "none",
            },
        ),
    ],
)
def test_both_forms_are_refused_with_the_same_sentence(text, document):
    with pytest.raises(errors.BadRequest) as of_text:
        parse_query(text)
    with pytest.raises(type(of_text.value)) as of_document:
        parse_query(document)
    assert of_document.value.sentence == of_text.value.sentence


def test_an_object_may_contain_any_amount_and_empty_groups():
    document = {"groups": {"": {"resources": {"VCPU": 10**30}}, "1": {}, "2": {"resources": {}, "required": []}}}
    assert parse_query(document).groups == (Group("", {"VCPU": TOO_MUCH}),)


@pytest.mark.parametrize(
    "given_query", ["resources=VCPU:1&limit=1", "resources=VCPU:1&color=red", "resources=%00", "resources=%ff"]
)
def test_an_unknown_parameter_and_invalid_text_are_refused(given_query):
    with pytest.raises(errors.InvalidQuery):
        schema.query_parameters(given_query)


@given(worlds().flatmap(search_queries), st.randoms(use_true_random=False))
def test_only_equivalent_queries_have_the_same_canonical_text(query, order):
    """The order of groups and classes and the limit do not matter; resources, trees and constraints do."""
    shuffled = dataclasses.replace(query, groups=_shuffle_groups(query.groups, order), limit=7)
    assert shuffled.canonical == query.canonical
    first = query.groups[0]
    larger_group = dataclasses.replace(first, resources={**first.resources, "CUSTOM_MORE": 1})
    for different_query in (
        dataclasses.replace(query, groups=(larger_group, *query.groups[1:])),
        dataclasses.replace(query, isolate=not query.isolate),
        dataclasses.replace(query, same_subtrees=(*query.same_subtrees, frozenset({"_X"}))),
        dataclasses.replace(query, groups=(dataclasses.replace(first, in_tree="another"), *query.groups[1:])),
    ):
        assert different_query.canonical != query.canonical


def _shuffle_groups(groups, order: random.Random):
    groups = [dataclasses.replace(group, resources=dict(_shuffle(group.resources.items(), order))) for group in groups]
    return tuple(_shuffle(groups, order))


def _shuffle(items, order):
    items = [*items]
    order.shuffle(items)
    return items


@pytest.mark.parametrize(("length", "status"), [(28 * 1024, "valid"), (28 * 1024 + 1, "too long")])
def test_a_query_text_is_limited_to_the_length_of_a_url(length, status):
    request = {"consumer": A, "consumer_type": "JOB", "project_id": "p", "user_id": "u"}
    document = {"requests": [request | {"query": ("resources=VCPU:2&" + "a&" * length)[:length]}]}
    if status == "valid":
        assert schema.CREATE.validate(document, mv.LATEST)
    else:
        with pytest.raises(errors.BadRequest):
            schema.CREATE.validate(document, mv.LATEST)
