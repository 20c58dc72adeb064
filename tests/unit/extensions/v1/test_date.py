"""Dates in documents and queries (docs: v1-dates)."""

from __future__ import annotations

import datetime

import pytest

from placement import errors
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.schemas import consumer
from placement.extensions.v1.schemas.date import timestamp
from placement.schemas.dates import date
from placement.version_history import OLDEST

NOW = datetime.datetime(2026, 11, 20, 8, 11, 35)


def validate(text):
    consumer.LIST.validate([("older_than", text)], OLDEST)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20", datetime.datetime(2026, 11, 20)),
        ("2026-11-20T08:11", datetime.datetime(2026, 11, 20, 8, 11)),
        ("2026-11-20T08:11:35", datetime.datetime(2026, 11, 20, 8, 11, 35)),
        ("2026-11-20T08:11:35Z", datetime.datetime(2026, 11, 20, 8, 11, 35)),
        ("0001-01-01", datetime.datetime(1, 1, 1)),
    ],
)
def test_a_date_is_utc(text, expected):
    validate(text)
    assert timestamp("older_than", text, lambda: NOW) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90m", 5400), ("12h", 43200), ("30d", 2592000), ("99999w", 99999 * 604800)]
)
def test_an_age_is_subtracted_from_now(text, seconds):
    validate(text)
    assert timestamp("older_than", text, lambda: NOW) == NOW - datetime.timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["2026-02-30", "2026-13-01", "0000-01-01", "2026-11-20T25:00"])
def test_a_date_that_does_not_exist_is_refused(text):
    validate(text)
    with pytest.raises(InvalidField, match=f"^older_than is {text}; a date in UTC, for example "):
        timestamp("older_than", text, lambda: NOW)


@pytest.mark.parametrize(
    "text",
    ["", "30", "d", "-1d", "1.5h", "100000s", "30D", "1y", "20261120", "2026-11-20 08:11", "2026-11-20Z", "1d\n"],
)
def test_a_date_in_another_format_is_invalid(text):
    with pytest.raises(errors.InvalidQuery):
        validate(text)


def test_a_date_is_shown_in_whole_seconds():
    assert date(datetime.datetime(2026, 11, 20, 8, 11, 35, 999999)) == "2026-11-20T08:11:35Z"
    assert date(None) is None
