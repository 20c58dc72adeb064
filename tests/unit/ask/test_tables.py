"""Tables are as wide as the terminal at most, and show nothing that a terminal would obey."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from placement.ask.style import Style
from placement.ask.tables import table, width

PLAIN, COLOUR = Style(), Style(None, True)


def shown(rows, style=PLAIN, **options):
    return list(table(("name", "used"), rows, style, **options))


def test_columns_are_as_wide_as_needed_and_numbers_at_the_right():
    assert shown([("host1", 5), ("h", 10), ("x", None)]) == ["name   used", "host1     5", "h        10", "x"]


def test_without_rows_there_is_nothing():
    assert shown([]) == []


def test_a_narrow_terminal_cuts_the_widest_column():
    assert shown([("a" * 30, "b" * 8)], Style(20)) == ["name        used", f"{'a' * 9}…  {'b' * 8}"]


def test_characters_that_are_two_columns_wide():
    assert shown([("日本語", 1), ("abc", 2)]) == ["name    used", "日本語     1", "abc        2"]


def test_control_characters_are_replaced():
    (_, line) = shown([("a\x1b[2Jb\nc\u202ed", 1)])
    assert line.split() == ["a\ufffd[2Jb\ufffdc\ufffdd", "1"]


def test_colours_are_for_terminals():
    assert shown([("a", 1)], COLOUR, bad=lambda row: row[1] > 0) == [
        "\x1b[1mname  used\x1b[0m",
        "\x1b[31ma        1\x1b[0m",
    ]
    assert shown([("a", 1)], bad=lambda row: row[1] > 0) == ["name  used", "a        1"]
    assert Style.of(io.StringIO(), {"TERM": "xterm"}) == Style(None, False)


@given(st.lists(st.tuples(st.text(), st.text(max_size=40), st.none() | st.integers()), min_size=1), st.integers(22, 80))
def test_no_line_is_wider_than_the_terminal(rows, columns):
    lines = list(table(("a", "b", "c"), rows, Style(columns)))
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= columns for line in lines)
    assert all(line.isprintable() for line in lines)
