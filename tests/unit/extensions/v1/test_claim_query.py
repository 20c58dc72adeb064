"""The query of a claim has two forms, and a canonical text by which equal ones are known."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import errors
from placement import microversion as mv
from placement.extensions.v1.claims.request import canonical
from placement.extensions.v1.schemas import claim as schema
from placement.search.query import parse
from tests.strategies import search_queries, worlds

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


def parsed(given_query):
    return parse.search_query(schema.query_parameters(given_query), mv.LATEST)


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
def test_both_forms(text, document):
    assert parsed(text) == parsed(document)


@pytest.mark.parametrize(
    "given_query", ["resources=VCPU:1&limit=1", "resources=VCPU:1&color=red", "resources=%00", "resources=%ff"]
)
def test_what_is_no_parameter_is_refused(given_query):
    with pytest.raises(errors.InvalidQuery):
        schema.query_parameters(given_query)


@given(worlds().flatmap(search_queries), st.randoms(use_true_random=False))
def test_equal_queries_have_one_text_however_they_are_written(query, order):
    """The order of groups, classes and traits does not matter; everything else does."""
    shuffled = dataclasses.replace(query, groups=_shuffled(query.groups, order), limit=7)
    assert canonical(shuffled) == canonical(query)
    first = query.groups[0]
    more = dataclasses.replace(first, resources={**first.resources, "CUSTOM_MORE": 1})
    for other in (
        dataclasses.replace(query, groups=(more, *query.groups[1:])),
        dataclasses.replace(query, isolate=not query.isolate),
        dataclasses.replace(query, same_subtrees=(*query.same_subtrees, frozenset({"_X"}))),
        dataclasses.replace(query, groups=(dataclasses.replace(first, in_tree="another"), *query.groups[1:])),
    ):
        assert canonical(other) != canonical(query)


def _shuffled(groups, order: random.Random):
    groups = [dataclasses.replace(each, resources=dict(_any_order(each.resources.items(), order))) for each in groups]
    return tuple(_any_order(groups, order))


def _any_order(items, order):
    items = [*items]
    order.shuffle(items)
    return items


@pytest.mark.parametrize(("length", "status"), [(28 * 1024, "valid"), (28 * 1024 + 1, "too long")])
def test_a_text_is_as_long_as_in_an_address(length, status):
    request = {"consumer": A, "consumer_type": "JOB", "project_id": "p", "user_id": "u"}
    document = {"requests": [request | {"query": ("resources=VCPU:2&" + "a&" * length)[:length]}]}
    if status == "valid":
        assert schema.CREATE.validate(document, mv.LATEST)
    else:
        with pytest.raises(errors.BadRequest):
            schema.CREATE.validate(document, mv.LATEST)
