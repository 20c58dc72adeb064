"""Tables, which are at most as wide as the terminal and contain no control characters."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import Style
from placement.extensions.terminal.tables import name_of, table, width

UUID = "c2ce6f44-7ed4-457b-9e2f-eb89414c343c"
PLAIN, COLOUR = Style(), Style(None, True)


def shown_lines(rows, style=PLAIN, **options):
    return list(table(("name", "used"), rows, style, **options))


def test_columns_are_as_wide_as_their_cells_and_numbers_are_right_aligned():
    assert shown_lines([("host1", 5), ("h", 10), ("x", None)]) == ["name   used", "host1     5", "h        10", "x"]


def test_a_table_without_rows_is_empty():
    assert shown_lines([]) == []


def test_a_narrow_terminal_folds_the_widest_column():
    lines = shown_lines([("one two-three,four", "b" * 8), ("a" * 15, "c")], Style(18))
    assert lines == ["name      used", "one two-  bbbbbbbb", "three,", "four", "aaaaaaaa  c", "aaaaaaa"]
    assert shown_lines([(f"a {'b' * 8}", "c" * 8)], Style(18)) == ["name      used", "a         cccccccc", "bbbbbbbb"]


def test_a_folded_text_keeps_its_indentation():
    assert shown_lines([("  host1-numa0", 1)], Style(16)) == ["name        used", "  host1-       1", "  numa0"]


def test_numbers_and_uuids_are_never_folded():
    """If they do not fit, no table is printed."""
    assert shown_lines([(UUID, 2**31), (None, 10)], Style(47)) == [f"name: {UUID}", "used: 2147483648", "", "used: 10"]
    assert shown_lines([(UUID, 2**31)], Style(48)) == [f"name{' ' * 32}        used", f"{UUID}  2147483648"]


def test_a_terminal_that_is_too_narrow_gets_a_line_for_each_cell():
    """Empty cells are left out."""
    rows = [("a" * 30, "b" * 30), (None, "c")]
    assert shown_lines(rows, Style(17)) == [
        "name:",
        "aaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaa",
        "used:",
        "bbbbbbbbbbbbbbbbb",
        "bbbbbbbbbbbbb",
        "",
        "used: c",
    ]


def test_characters_may_be_two_columns_wide():
    assert shown_lines([("日本語", 1), ("abc", 2)]) == ["name    used", "日本語     1", "abc        2"]


def test_control_characters_are_replaced():
    (_, line) = shown_lines([("a\x1b[2Jb\nc\u202ed", 1)])
    assert line.split() == ["a\ufffd[2Jb\ufffdc\ufffdd", "1"]


def test_only_terminals_get_colours():
    assert shown_lines([("a", 1)], COLOUR, bad=lambda row: row[1] > 0) == [
        "\x1b[1mname  used\x1b[0m",
        "\x1b[31ma        1\x1b[0m",
    ]
    assert shown_lines([("a", 1)], bad=lambda row: row[1] > 0) == ["name  used", "a        1"]
    assert Style.for_stream(io.StringIO(), {"TERM": "xterm"}) == Style(None, False)


CELLS = st.tuples(st.text(), st.text(max_size=40), st.none() | st.integers())


@given(st.lists(CELLS, min_size=1), st.integers(1, 80))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(rows, columns):
    """All characters are printed; only spaces may disappear where a text is folded."""
    lines = list(table(("a", "b", "c"), rows, Style(columns)))
    assert all(width(line) <= max(columns, 8) for line in lines)
    assert all(line.isprintable() for line in lines)
    characters = Counter("".join(lines)) - Counter(" ")
    cells = [plain("" if cell is None else cell) for row in rows for cell in row]
    assert not (Counter("".join(cells)) - Counter({" ": 10**6})) - characters


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ({"uuid": "u", "name": "host1"}, "host1"),
        ({"uuid": "u", "name": None}, "u"),
        ({"uuid": "u", "name": "u", "node": "machine"}, "machine"),
    ],
)
def test_a_provider_is_shown_by_its_node_name_or_else_its_name_or_its_uuid(provider, name):
    assert name_of(provider) == name
