"""Ages in the arguments and the output of placement-manage consumers."""

from __future__ import annotations

import argparse
import datetime

import pytest

from placement.extensions.orphans import command as consumers
from placement.extensions.orphans import reports as consumer_reports


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", datetime.timedelta(seconds=90)),
        ("45m", datetime.timedelta(minutes=45)),
        ("12h", datetime.timedelta(hours=12)),
        ("30d", datetime.timedelta(days=30)),
        ("4w", datetime.timedelta(days=28)),
        ("36500d", datetime.timedelta(days=36500)),
    ],
)
def test_an_age_is_parsed(text, expected):
    assert consumers.age(text) == expected


@pytest.mark.parametrize(
    "text", ["", "d", "30", "0d", "-1d", "1.5h", "30 d", "30D", "1y", "30dd", "٣d", "36501d", "9" * 9 + "m"]
)
def test_an_invalid_age_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        consumers.age(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0m"), (59, "0m"), (60, "1m"), (3599, "59m"), (3600, "1h"), (86399, "23h"), (86400, "1d")]
)
def test_an_age_is_shown_in_its_largest_unit(seconds, text):
    assert consumer_reports.age_text(datetime.timedelta(seconds=seconds)) == text


def test_an_unknown_age_is_shown_as_a_question_mark():
    assert consumer_reports.age_text(None) == "?"
