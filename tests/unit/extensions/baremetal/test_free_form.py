"""Limits of values that clients choose freely."""

from __future__ import annotations

import functools

import pytest

from placement.extensions.baremetal.schemas import free_form
from placement.extensions.baremetal.schemas.free_form import KeyTooLong, NestedTooDeeply, NumberTooLarge, ValueTooLarge


def nested_value(depth, inner=1):
    """Return nested objects and lists, ``depth`` levels deep."""
    return functools.reduce(lambda value, number: [value] if number % 2 else {"a": value}, range(depth), inner)


@pytest.mark.parametrize(
    "value",
    [
        {},
        nested_value(30),
        {"a": [1.5, -(2**63), 2**64 - 1, True, None, "\N{SNOWMAN}"]},
        {"a": "x" * (2**18 - len('{"a": ""}'))},
        {"\N{SNOWMAN}" * (2**16 // 3): 1},
    ],
    ids=["empty", "deep", "numbers", "long", "long key"],
)
def test_valid_values_are_accepted(value):
    free_form.check("extra", value)


@pytest.mark.parametrize(
    ("value", "failure"),
    [
        (nested_value(31), NestedTooDeeply),
        (nested_value(100_000), NestedTooDeeply),
        ({"a": [{"\N{SNOWMAN}" * (2**16 // 3) + "x": 1}]}, KeyTooLong),
        ({"a": float("inf")}, NumberTooLarge),
        ({"a": [2**64]}, NumberTooLarge),
        ({"a": [{"b": -(2**63) - 1}]}, NumberTooLarge),
        ({"a": "x" * (2**18 - len('{"a": ""}') + 1)}, ValueTooLarge),
        ({"a": "\N{SNOWMAN}" * (2**18 // len("\\u2603"))}, ValueTooLarge),
    ],
    ids=["deep", "very deep", "long key", "infinite", "large", "small", "long", "long when escaped"],
)
def test_invalid_values_are_refused(value, failure):
    with pytest.raises(failure, match="extra"):
        free_form.check("extra", value)
