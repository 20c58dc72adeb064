"""Parsing of parameter values, and the messages about invalid values."""

from __future__ import annotations

import contextlib

import hypothesis
import pytest
from hypothesis import strategies as st
from oslo_utils import uuidutils

from placement import errors
from placement import microversion as mv
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.parse import TOO_MUCH
from placement.search.query.query import NameCondition

A, B, C = (
    "5d7e7ad0-8c8f-4b8e-9f5c-3f6f9d9ecb41",
    "B1A3B9C73C584F5A8A649D1E4F4C8A11",
    "{b1a3b9c73c584f5a8a649d1e4f4c8a12}",
)


def any_of(*sets):
    return tuple(frozenset(names.split()) for names in sets)


def refusal(parse, *arguments):
    with pytest.raises(errors.BadRequest) as raised:
        parse(*arguments)
    return str(raised.value)


# --- amounts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "amounts"),
    [
        ("VCPU:2", {"VCPU": 2}),
        ("VCPU:2,MEMORY_MB:1024", {"VCPU": 2, "MEMORY_MB": 1024}),
        ("VCPU:2,VCPU:3", {"VCPU": 3}),
        ("VCPU:+1,DISK_GB: 7 ,MEMORY_MB:007", {"VCPU": 1, "DISK_GB": 7, "MEMORY_MB": 7}),
        (" VCPU:1,:2", {" VCPU": 1, "": 2}),
        ("VCPU:2147483647", {"VCPU": 2147483647}),
        ("VCPU:2147483649", {"VCPU": TOO_MUCH}),
        ("VCPU:" + "9" * 10_000, {"VCPU": TOO_MUCH}),
        ("VCPU:" + "0" * 10_000 + "1", {"VCPU": 1}),
    ],
)
def test_resources_are_parsed_as_amounts_by_class(value, amounts):
    assert parse.resources(value, "resources") == amounts


def test_the_largest_amount_exceeds_every_inventory():
    assert TOO_MUCH > 2**31 - 1


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", "empty string"),
        ("  ", "empty string"),
        ("VCPU:1,", ""),
        ("VCPU", "VCPU"),
        ("VCPU:1:2", "VCPU:1:2"),
        ("VCPU:1;MEMORY_MB:2", "VCPU:1;MEMORY_MB:2"),
    ],
)
def test_malformed_resources_are_refused(value, quoted):
    assert refusal(parse.resources, value, "resources") == (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {quoted}."
    )


@pytest.mark.parametrize("amount", ["", "x", "1.0", "1_0", "--1", "- 1", "٣", "1e3", "0x1"])
def test_an_amount_that_is_not_an_integer_is_refused(amount):
    sentence = f"Requested resource VCPU expected positive integer amount. Got: {amount}."
    assert refusal(parse.resources, f"MEMORY_MB:1,VCPU:{amount}", "resources") == sentence


@pytest.mark.parametrize("amount", ["0", "-1", "-0", "000", "-" + "9" * 10_000])
def test_an_amount_below_one_is_refused(amount):
    sentence = f"Requested resource VCPU requires amount >= 1. Got: {amount}."
    assert refusal(parse.resources, f"VCPU:{amount},MEMORY_MB", "resources") == sentence


def test_a_long_amount_is_parsed_in_linear_time():
    """A pattern that backtracks over the zeros would take quadratic time or more."""
    zeros = "0" * 200_000
    assert refusal(parse.resources, f"VCPU:{zeros}x", "resources").endswith("0x.")
    assert parse.resources(f"VCPU:{zeros}7", "resources") == {"VCPU": 7}


def test_a_limit_may_have_any_length():
    assert parse.limit("17") == 17
    assert parse.limit("1" + "0" * 10_000) == TOO_MUCH


# --- traits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "values", "traits"),
    [
        (mv.REQUIRED_FILTER, ["A"], NameCondition(any_of("A"))),
        (mv.REQUIRED_FILTER, [" A , B"], NameCondition(any_of("A", "B"))),
        (mv.FORBIDDEN_TRAITS, ["A,!B"], NameCondition(any_of("A"), frozenset("B"))),
        (mv.FORBIDDEN_TRAITS, ["!!A"], NameCondition((), frozenset("A"))),
        (mv.FORBIDDEN_TRAITS, ["!in:A"], NameCondition((), frozenset({"in:A"}))),
        (mv.FORBIDDEN_TRAITS, [" in:A,IN:B"], NameCondition(any_of("in:A", "IN:B"))),
        (mv.ANY_TRAITS, ["in:A,B"], NameCondition(any_of("A B"))),
        (mv.ANY_TRAITS, ["in:A , B"], NameCondition(any_of("A B"))),
        (mv.ANY_TRAITS, ["in:A"], NameCondition(any_of("A"))),
        (mv.ANY_TRAITS, ["in:A,B", "C,!A", "in:C", "in:B,A"], NameCondition(any_of("A B", "C"), frozenset("A"))),
        (mv.ANY_TRAITS, [], NameCondition()),
    ],
)
def test_required_is_parsed_as_required_and_forbidden_traits(since, values, traits):
    assert parse.traits(values, since, "required") == traits
    assert parse.traits(values, mv.LATEST, "required") == traits


def test_below_1_39_only_the_last_required_counts():
    values = ["!,", "A", "!B"]
    assert parse.traits(values, mv.REPARENTING, "required") == NameCondition((), frozenset("B"))
    assert parse.traits(values[1:], mv.ANY_TRAITS, "required") == NameCondition(any_of("A"), frozenset("B"))
    assert "Got an empty trait in: !," in refusal(parse.traits, values, mv.ANY_TRAITS, "required")


PLAIN, FORBIDDING, ANY = (
    "HW_CPU_X86_VMX,CUSTOM_MAGIC",
    "HW_CPU_X86_VMX,!CUSTOM_MAGIC",
    "in:HW_CPU_X86_VMX,CUSTOM_MAGIC",
)


@pytest.mark.parametrize(
    ("version", "value", "sentence"),
    [
        *(
            (version, value, f"Expected 'required' parameter value of the form: {form}. Got an empty trait in: {value}")
            for version, form in [
                (mv.CANDIDATES_MEMBER_OF, PLAIN),
                (mv.FORBIDDEN_TRAITS, FORBIDDING),
                (mv.LATEST, FORBIDDING),
            ]
            for value in ["", ",", "A,", " ", "A, ,B", "!", "!!", "! ,A", "A,!B,"]
        ),
        (
            mv.CANDIDATES_MEMBER_OF,
            "A,!B",
            f"Expected 'required' parameter value of the form: {PLAIN}. Got: A,!B",
        ),
        (mv.CONSUMER_TYPES, "in:", f"The format '{ANY}' only supported since microversion 1.39. Got: in:"),
        (mv.CONSUMER_TYPES, "in:A,B", f"The format '{ANY}' only supported since microversion 1.39. Got: in:A,B"),
        (mv.LATEST, "in:A,!B", f"The format '{ANY}' does not support forbidden traits. Got: in:A,!B"),
        (mv.LATEST, "in:A, !", f"The format '{ANY}' does not support forbidden traits. Got: in:A, !"),
        *(
            (
                mv.LATEST,
                value,
                f"Expected 'required' parameter value of the form: {ANY}. Got an empty trait in: {value}",
            )
            for value in ["in:", "in:A,", "in: ,A", "in:!A,,B"]
        ),
    ],
)
def test_a_malformed_required_is_refused(version, value, sentence):
    assert refusal(parse.traits, [value], version, "required") == f"Invalid query string parameters: {sentence}"


def test_a_set_conflicts_if_all_its_traits_are_forbidden():
    traits = parse.traits(["in:A,B", "in:A,C", "B", "!A,!B"], mv.LATEST, "required")
    assert traits.conflicts == any_of("A B", "B")
    assert parse.traits(["in:A,B", "!B"], mv.LATEST, "required").conflicts == ()


def test_conflicts_are_reported_by_group():
    resources = [(f"resources{suffix}", "VCPU:1") for suffix in ("1", "", "_X")]
    required = [("required1", "in:D,C"), ("required1", "!C,!D"), ("required", "A,!A"), ("required_X", "A,!B")]
    policy = [("group_policy", "none")]
    assert refusal(parse.search_query, Parameters([*resources, *required, *policy]), mv.LATEST) == (
        "Conflicting required and forbidden traits found in the following traits keys: required1: (C, D), required: (A)"
    )
    assert parse.search_query(Parameters([*resources, *required[3:], *policy]), mv.LATEST)


def test_root_required_is_a_single_list_of_traits():
    assert parse.root_traits(["A, !B"]) == NameCondition(any_of("A"), frozenset("B"))


@pytest.mark.parametrize(
    ("values", "sentence", "code"),
    [
        (["A", "B"], "Query parameter 'root_required' may be specified only once.", errors.QUERY_DUPLICATE_KEY),
        (
            ["B,A,!A,!B,C"],
            "Conflicting required and forbidden traits found in root_required: A, B",
            errors.QUERY_BAD_VALUE,
        ),
        (
            ["in:A"],
            f"Invalid query string parameters: The format '{ANY}' only supported since microversion 1.39. Got: in:A",
            errors.UNDEFINED,
        ),
        (
            [""],
            "Invalid query string parameters: Expected 'required' parameter value of the form: "
            f"{FORBIDDING}. Got an empty trait in: ",
            errors.UNDEFINED,
        ),
    ],
)
def test_a_malformed_root_required_is_refused(values, sentence, code):
    with pytest.raises(errors.BadRequest) as raised:
        parse.root_traits(values)
    assert (str(raised.value), raised.value.code) == (sentence, code)


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "values", "membership"),
    [
        (mv.MEMBER_OF, [], NameCondition()),
        (mv.MEMBER_OF, [A], NameCondition(any_of(A))),
        (mv.MEMBER_OF, [f"in:{A}"], NameCondition(any_of(A))),
        (mv.MEMBER_OF, [f"in:{A},{B},{C}"], NameCondition(any_of(f"{A} {B} {C}"))),
        (mv.REPEATED_MEMBER_OF, [A, f"in:{B},{C}", A], NameCondition(any_of(A, f"{B} {C}"))),
        (mv.FORBIDDEN_AGGREGATES, [f"!{A}"], NameCondition((), frozenset({A}))),
        (mv.FORBIDDEN_AGGREGATES, [f"!in:{A},{B}", f"!{C}", B], NameCondition(any_of(B), frozenset({A, B, C}))),
    ],
)
def test_member_of_is_parsed_as_required_sets_and_forbidden_aggregates(since, values, membership):
    assert parse.aggregates(values, since) == membership
    assert parse.aggregates(values, mv.LATEST) == membership


@pytest.mark.parametrize("version", [mv.MEMBER_OF, mv.LATEST])
@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", ""),
        ("x", "x"),
        ("!x", "x"),
        ("!", ""),
        (f"!!{A}", f"!{A}"),
        (f" {A}", f" {A}"),
        ("in:", ""),
        ("!in:", ""),
        (f"in:{A},", ""),
        (f"in:{A},!{B}", f"!{B}"),
        (f"!in:{A},!{B}", f"!{B}"),
        (f"in:in:{A}", f"in:{A}"),
    ],
)
def test_an_aggregate_that_is_not_a_uuid_is_refused(version, value, quoted):
    assert refusal(parse.aggregates, [value], version) == (
        f"Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: {quoted}"
    )


@pytest.mark.parametrize("value", [f"{A},{B}", f"!{A},{B}", "x,", ","])
def test_several_aggregates_need_the_prefix_in(value):
    assert refusal(parse.aggregates, [value], mv.LATEST) == (
        "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
        f"microversion. Got: {value}"
    )


def test_member_of_can_be_repeated_and_forbidden_since_its_versions():
    repeated = "Multiple member_of1 parameters are not supported"
    forbidden = "Forbidden member_of1 parameters are not supported in the specified microversion"
    assert refusal(parse.aggregates, ["x", f"!{A}"], mv.ERROR_CODES, "1") == repeated
    assert refusal(parse.aggregates, [A, f"!{B}", "x"], mv.REPEATED_MEMBER_OF, "1") == forbidden
    assert refusal(parse.aggregates, [f"!in:{A},{B}"], mv.CANDIDATES_IN_TREE, "1") == forbidden


def test_the_last_in_tree_counts_and_every_in_tree_must_be_a_uuid():
    assert parse.in_tree([A, f" {B} "]) == B
    assert parse.in_tree([]) is None
    for wrong in ("", "x", f"in:{A}"):
        assert refusal(parse.in_tree, [wrong, A]) == (
            f"Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. Got: {wrong}"
        )


def test_same_subtree_is_parsed_as_distinct_sets_of_suffixes():
    assert parse.same_subtrees(["_A, _B", "_C", "_B,_A,_A"]) == any_of("_A _B", "_C")
    assert parse.same_subtrees([]) == ()


@pytest.mark.parametrize("value", ["", " ", "_A,", "_A,,_B"])
def test_the_unsuffixed_group_cannot_be_in_a_subtree(value):
    with pytest.raises(errors.UnsuffixedInSubtree) as raised:
        parse.same_subtrees(["_A", value])
    assert raised.value.code == errors.QUERY_BAD_VALUE
    assert str(raised.value) == "Empty string (unsuffixed group) can not be specified in `same_subtree` "


# --- generated text --------------------------------------------------------------------------------------------------

pieces = st.sampled_from(["in:", "!", ",", " ", ":", "A", "VCPU", "0", "7", "+", "-", "_", A, B, C, "\n", "é"])
texts = st.lists(pieces | st.text(max_size=3), max_size=8).map("".join)
versions = st.sampled_from([change.version for change in mv.HISTORY])


def parsed_amounts(values):
    return [amount for value in values for amount in parse.resources(value, "resources").values()]


def parsed_names(parse, *arguments):
    return parse(*arguments).names


@hypothesis.given(st.lists(texts, max_size=3), versions)
def test_any_text_is_parsed_or_refused(values, version):
    """A parsed value has no empty name, and no amount outside of the range of the index."""
    with contextlib.suppress(errors.BadRequest):
        assert all(1 <= amount <= TOO_MUCH for amount in parsed_amounts(values))
    with contextlib.suppress(errors.BadRequest):
        assert "" not in parsed_names(parse.traits, values, version, "required")
    with contextlib.suppress(errors.BadRequest):
        assert "" not in parsed_names(parse.root_traits, values)
    with contextlib.suppress(errors.BadRequest):
        assert all(uuidutils.is_uuid_like(uuid) for uuid in parsed_names(parse.aggregates, values, version))
    with contextlib.suppress(errors.BadRequest):
        assert uuidutils.is_uuid_like(parse.in_tree(values)) or not values
    with contextlib.suppress(errors.BadRequest):
        assert "" not in frozenset().union(*parse.same_subtrees(values))
