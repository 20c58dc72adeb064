"""The query of a command, from a query string, options, or both."""

from __future__ import annotations

import argparse
import doctest
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.terminal import query


def parse(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    query.add_arguments(parser)
    arguments = parser.parse_args(words)
    return query.query_string(arguments.query, arguments.terms)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["resources=VCPU:4"], "resources=VCPU:4"),
        (["?resources=VCPU:4"], "resources=VCPU:4"),
        (["--resource", "VCPU=4"], "resources=VCPU:4"),
        (["--resource", "VCPU:4", "--resource", "DISK_GB=1"], "resources=VCPU:4,DISK_GB:1"),
        (["--required", "A", "--required", "!B"], "required=A,!B"),
        (["--required", "A", "--required", "in:B,C", "--required", "D"], "required=A,D&required=in:B,C"),
        (["--member-of", "a", "--member-of", "in:b,c"], "member_of=a&member_of=in:b,c"),
        (["limit=1", "--resource", "VCPU=4"], "limit=1&resources=VCPU:4"),
        (["resources=VCPU:4&limit=1", "--resource", "DISK_GB=1"], "resources=VCPU:4,DISK_GB:1&limit=1"),
        (["required=in:A,B", "--required", "C"], "required=in:A,B&required=C"),
        (["resources1=VCPU:4", "--resource", "DISK_GB=1"], "resources1=VCPU:4&resources=DISK_GB:1"),
        (["--group", "1", "--resource", "VCPU=4", "--required", "A"], "resources1=VCPU:4&required1=A"),
        (
            ["--resource", "DISK_GB=1", "--group", "gpu", "--resource", "PGPU=1", "--group", "nic", "--in-tree", "x"],
            "resources=DISK_GB:1&resources_gpu=PGPU:1&in_tree_nic=x",
        ),
        (
            ["--group", "gpu", "--resource", "PGPU=1", "--same-subtree", "gpu,1,_a", "--group-policy", "none"],
            "resources_gpu=PGPU:1&same_subtree=_gpu,1,_a&group_policy=none",
        ),
        (["--group", "1", "--root-required", "A", "--root-required", "!B"], "root_required=A,!B"),
        (["required=A B&x=\u00e9#"], "required=A%20B&x=%C3%A9%23"),
        (["member_of=\udcff", "--in-tree", "\udcff"], "member_of=%FF&in_tree=%FF"),
        ([], ""),
    ],
)
def test_options_and_a_query_string_are_combined(words, expected):
    assert parse(*words) == expected


@pytest.mark.parametrize(
    "words", [["--resource", "VCPU"], ["--resource", "VCPU=x"], ["--group", "a b"], ["--same-subtree", "a,,b"]]
)
def test_a_malformed_option_is_refused(words):
    with pytest.raises(argparse.ArgumentError, match=r"is invalid: use <class>=<amount>|is not a valid group"):
        parse(*words)


@given(st.text())
def test_a_value_arrives_unchanged(value):
    text = parse(f"--required={value}")
    assert parse_qsl(text, keep_blank_values=True) == [("required", value)]
    assert text.isascii()


def test_the_example_in_the_docstring_is_valid():
    assert doctest.testmod(query).failed == 0
