"""The line that describes an invalid value: the field, the problem and the expected value."""

from __future__ import annotations

import pytest

from placement import errors
from placement.schemas.declarations import (
    UUID,
    Array,
    Field,
    Object,
    OneOf,
    OrNull,
    PatternField,
    boolean,
    integer,
    nullable,
    string,
)
from placement.schemas.document import Body, Query
from placement.version_history import OLDEST

THING = Object(
    Field("uuid", UUID, required=True),
    Field("count", nullable(integer(minimum=1, maximum=9))),
    Field("least", integer(minimum=2)),
    Field("names", Array(string(minLength=1, maxLength=3), min_items=1, unique=True)),
    Field("kind", string(enum=["host", "disk", "card"])),
    Field("flag", boolean()),
    Field("when", string(pattern="^[0-9]+$", description="a number of days, for example 3")),
    Field("place", OneOf((string(), Object(Field("row", integer(), required=True))))),
    Field("owner", OrNull(Object(Field("id", UUID, required=True)))),
    Field("amounts", Object(PatternField("^[A-Z]+$", integer(minimum=0)), names="classes, for example VCPU")),
)
SOME = "7c1f2d34-9a5b-4e6f-8a7b-0c1d2e3f4a5b"
A_UUID = f"a uuid, for example {SOME}"


def refusal(value):
    """Return the failure of an invalid body."""
    with pytest.raises(errors.InvalidBody) as raised:
        Body(Object(Field("things", Array(THING)))).validate(value, OLDEST)
    return raised.value


@pytest.mark.parametrize(
    ("value", "field", "problem", "expected"),
    [
        ([], "", "is []", "an object with things"),
        ({"things": [{}]}, "things[0].uuid", "is missing", A_UUID),
        ({"things": [{"uuid": "x"}]}, "things[0].uuid", 'is "x"', A_UUID),
        ({"things": [{"uuid": SOME, "count": 0}]}, "things[0].count", "is 0", "null or a whole number from 1 to 9"),
        ({"things": [{"uuid": SOME, "least": 1}]}, "things[0].least", "is 1", "a whole number from 2"),
        ({"things": [{"uuid": SOME, "names": []}]}, "things[0].names", "is empty", None),
        ({"things": [{"uuid": SOME, "names": ["ab", "ab"]}]}, "things[0].names", 'has "ab" twice', None),
        (
            {"things": [{"uuid": SOME, "names": ["abcd"]}]},
            *("things[0].names[0]", "has 4 characters", "a string of 1 to 3 characters"),
        ),
        ({"things": [{"uuid": SOME, "names": [""]}]}, "things[0].names[0]", 'is ""', "a string of 1 to 3 characters"),
        ({"things": [{"uuid": SOME, "kind": "vm"}]}, "things[0].kind", 'is "vm"', "one of host, disk and card"),
        ({"things": [{"uuid": SOME, "flag": 1}]}, "things[0].flag", "is 1", "true or false"),
        (
            {"things": [{"uuid": SOME, "when": "soon"}]},
            "things[0].when",
            'is "soon"',
            "a number of days, for example 3",
        ),
        ({"things": [{"uuid": SOME, "place": 5}]}, "things[0].place", "is 5", "a string, or an object with row"),
        ({"things": [{"uuid": SOME, "place": {}}]}, "things[0].place.row", "is missing", "a whole number"),
        ({"things": [{"uuid": SOME, "owner": {"id": 1}}]}, "things[0].owner.id", "is 1", A_UUID),
        ({"things": [{"uuid": SOME, "cuont": 1}]}, "things[0].cuont", "is unknown", "perhaps count"),
        (
            {"things": [{"uuid": SOME, "amounts": {"v c": 1}}]},
            'things[0].amounts["v c"]',
            "is unknown",
            "classes, for example VCPU",
        ),
        ({"things": [{"uuid": SOME, "amounts": {"A": -1}}]}, "things[0].amounts.A", "is -1", "a whole number from 0"),
    ],
)
def test_the_field_and_its_valid_values_are_named(value, field, problem, expected):
    failure = refusal(value)
    assert failure.field == field
    assert failure.line == f"{field or 'the body'} {problem}; {failure.expected}"
    assert expected is None or failure.expected == expected


def test_all_names_are_listed_if_none_is_similar():
    failure = refusal({"things": [{"uuid": SOME, "zzz": 1}]})
    assert failure.expected == ("one of uuid, count, least, names, kind, flag, when, place, owner and amounts")


def test_a_long_value_and_a_long_list_are_truncated():
    failure = refusal({"things": "x" * 10_000})
    assert len(failure.line) < 400
    query = Query(Object(Field("kind", string(enum=[f"k{number}" for number in range(100)]))))
    with pytest.raises(errors.InvalidQuery) as raised:
        query.validate([("kind", "x")], OLDEST)
    assert raised.value.expected.endswith("k11 and 88 others")


def test_a_value_too_large_to_validate_is_reported_with_its_field():
    failure = refusal({"things": [{"uuid": SOME, "names": ["x"] * 10_000 + [1]}]})
    assert failure.field == "things[0].names"
    assert "too large" in failure.line


def test_a_strict_query_contains_each_parameter_once_unless_all_values_count():
    query = Query(Object(Field("limit", string()), Field("id", UUID, repeated_since=OLDEST)))
    query.validate([("id", SOME), ("limit", "1"), ("id", SOME)], OLDEST, strict=True)
    query.validate([("limit", "1"), ("limit", "2")], OLDEST)
    with pytest.raises(errors.InvalidQuery) as raised:
        query.validate([("limit", "1"), ("limit", "2")], OLDEST, strict=True)
    assert raised.value.line == "limit is given 2 times; one value"
    with pytest.raises(errors.InvalidQuery) as raised:
        query.validate([("id", "x"), ("id", SOME)], OLDEST, strict=True)
    assert raised.value.line == f'id is "x"; {A_UUID}'
