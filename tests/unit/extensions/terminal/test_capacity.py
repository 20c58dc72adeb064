"""The output for a count that is exact, between two bounds, or has only a lower bound."""

import argparse

import pytest

from placement.extensions.terminal import capacity
from placement.extensions.terminal.style import Style


def document(count, at_most):
    return {
        "count": count,
        "at_most": at_most,
        "exact": count == at_most,
        "why": "Because.",
        "limiting": None,
        "roots": [],
        "aggregates": [],
    }


@pytest.mark.parametrize(
    ("count", "at_most", "line"),
    [
        (1, 1, "This fits exactly 1 time."),
        (7, 7, "This fits exactly 7 times."),
        (1, 2, "This fits at least 1 and at most 2 times."),
        (5, None, "This fits at least 5 times."),
        (0, 0, "This fits nowhere."),
        (0, 3, "No place was found."),
    ],
)
def test_a_count_is_shown_with_its_upper_bound(count, at_most, line):
    reply = document(count, at_most)
    first, _, header, total = capacity.lines(reply, Style())
    assert (first, header.split()) == (line, [*capacity.COLUMNS])
    assert total.endswith("  Because.")
    assert dict(zip(capacity.COLUMNS, next(capacity.rows(reply)), strict=True))["at_most"] == at_most


def test_options_become_query_parameters():
    parser = argparse.ArgumentParser()
    capacity.add_options(parser)
    assert capacity.parameters(parser.parse_args(["--until", "30", "--count", "4"])) == "&until=30&count=4"
    assert capacity.parameters(parser.parse_args([])) == ""
