"""Tables of text: columns as wide as needed, cut where the terminal is narrower."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from placement.ask.style import Style

_GAP = "  "
#: A column is not cut below this.
_NARROWEST = 6
_CUT = "…"


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    style: Style,
    bad: Callable[[Sequence[Any]], bool] = lambda _: False,
) -> Iterator[str]:
    """Yield the lines of a table.  Numbers are at the right of their column; without rows there are no lines.

    Args:
        header: The names of the columns.
        rows: A cell for each column; None is an empty one.
        bad: Whether a row has a problem, and is shown in that colour.
    """
    if not rows:
        return
    cells = [[plain("" if cell is None else cell) for cell in row] for row in rows]
    widths = _fitted([max(map(width, column)) for column in zip(header, *cells, strict=True)], style.width)
    numbers = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(header))]
    align: list[Callable[[str, int], str]] = [_at_right if number else _at_left for number in numbers]

    def line(texts: Sequence[str]) -> str:
        aligned = (align[at](_cut(text, widths[at]), widths[at]) for at, text in enumerate(texts))
        return _GAP.join(aligned).rstrip()

    yield style.bold(line(header))
    for row, texts in zip(rows, cells, strict=True):
        yield style.bad(line(texts)) if bad(row) else line(texts)


def name_of(provider: Mapping[str, Any]) -> str:
    """Return the name of a provider in a document, or its uuid if it has no name."""
    return str(provider["name"] or provider["uuid"])


def plain(value: object) -> str:
    """Return a text that is safe in a terminal: control characters, which names may contain, are replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in str(value))


def width(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _fitted(widths: list[int], available: int | None) -> list[int]:
    """Return the widths with the widest ones reduced until the line fits, or no column can be reduced."""
    if available is None:
        return widths
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - available
    while excess > 0 and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        second = max([*widths[:widest], *widths[widest + 1 :], _NARROWEST])
        by = min(excess, max(1, widths[widest] - second), widths[widest] - _NARROWEST)
        widths[widest] -= by
        excess -= by
    return widths


def _cut(text: str, most: int) -> str:
    if width(text) <= most:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > most - 1:
            break
        kept += character
    return kept + _CUT


def _at_left(text: str, wide: int) -> str:
    return text + " " * (wide - width(text))


def _at_right(text: str, wide: int) -> str:
    return " " * (wide - width(text)) + text
