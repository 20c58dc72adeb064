"""Text tables, folded to the width of the terminal."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import BLOCKS, UNKNOWN, Style

_GAP = "  "
#: Minimum width of a folded column, in characters; in a narrower terminal, each cell is on its own line.
_MIN_WIDTH = 8
#: Pieces between which a text is folded; a piece longer than a line is split.
_PIECES = re.compile(r"[^ ,&=/_-]*[ ,&=/_-]+|[^ ,&=/_-]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    style: Style,
    bad: Callable[[Sequence[Any]], bool] = lambda _: False,
) -> Iterator[str]:
    """Yield the lines of a table, with numbers aligned right; no lines without rows.

    Args:
        header: The names of the columns.
        rows: Rows with a cell for each column; None for an empty cell.
        bad: A function that returns whether to show a row in the colour of problems.
    """
    if not rows:
        return
    cells = [[plain("" if cell is None else cell) for cell in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    fixed = [all(map(_is_unfoldable, column)) for column in zip(*rows, strict=True)]
    widths = _fit([max(map(width, column)) for column in columns], fixed, style.width)
    if widths is None:
        yield from _records(header, cells, style)
        return
    numeric = [all(isinstance(cell, int | float | None) for cell in column) for column in zip(*rows, strict=True)]
    align: list[Callable[[str, int], str]] = [_at_right if is_numeric else _at_left for is_numeric in numeric]

    def lines(texts: Sequence[str]) -> Iterator[str]:
        pieces = [fold(text, column_width) for text, column_width in zip(texts, widths, strict=True)]
        for parts in itertools.zip_longest(*pieces, fillvalue=""):
            yield _GAP.join(align[index](part, widths[index]) for index, part in enumerate(parts)).rstrip()

    yield from map(style.bold, lines(header))
    for row, texts in zip(rows, cells, strict=True):
        yield from map(style.bad, lines(texts)) if bad(row) else lines(texts)


def name_of(provider: Mapping[str, Any]) -> str:
    """Return the display name of a provider: the name of its node, its own name, or its uuid."""
    return str(provider.get("node") or provider["name"] or provider["uuid"])


def seconds(date: str | None) -> str | None:
    """Return a date of a document, truncated to seconds."""
    return None if date is None else f"{date[:19]}Z"


def width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _is_unfoldable(cell: object) -> bool:
    """Whether a cell must not be folded: a number, a uuid, or a bar of block characters."""
    text = "" if cell is None else str(cell)
    return isinstance(cell, int | float) or {*text} <= {*BLOCKS, UNKNOWN} or _UUID.fullmatch(text) is not None


def _fit(widths: Sequence[int], fixed: Sequence[bool], available: int | None) -> list[int] | None:
    """Return the widths, with the widest columns reduced until the line fits; None if that is impossible.

    Args:
        fixed: Whether each column must keep its width.
    """
    fitted = list(widths)
    if available is None:
        return fitted
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - available
    while excess > 0:
        foldable = [index for index, size in enumerate(fitted) if not fixed[index] and size > _MIN_WIDTH]
        if not foldable:
            return None
        widest = max(foldable, key=fitted.__getitem__)
        second = max((fitted[index] for index in foldable if index != widest), default=_MIN_WIDTH)
        reduction = min(excess, max(1, fitted[widest] - second), fitted[widest] - _MIN_WIDTH)
        fitted[widest] -= reduction
        excess -= reduction
    return fitted


def _records(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Yield a line with the column name for each non-empty cell, and an empty line between rows."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, text in zip(header, row, strict=True):
            if text:
                yield from fold(f"{name}: {text.strip()}", max(style.width or 0, _MIN_WIDTH))


def fold(text: str, max_width: int) -> list[str]:
    """Return the text in lines of at most this width, each with the indentation of the first."""
    if width(text) <= max_width:
        return [text]
    bare = text.lstrip(" ")
    indentation = " " * min(len(text) - len(bare), max_width // 2)
    lines = []
    line = indentation
    for piece in _PIECES.findall(bare):
        if line != indentation and width(line + piece.rstrip()) > max_width:
            lines.append(line.rstrip())
            line = indentation
        line += piece
        while width(line.rstrip()) > max_width:
            first_line = _prefix(line, max_width)
            lines.append(first_line)
            line = indentation + line[len(first_line) :]
    return [*lines, line.rstrip()]


def _prefix(text: str, max_width: int) -> str:
    """Return the longest prefix of the text of at most this width."""
    prefix = ""
    for character in text:
        if width(prefix + character) > max_width:
            break
        prefix += character
    return prefix


def _at_left(text: str, column_width: int) -> str:
    return text + " " * (column_width - width(text))


def _at_right(text: str, column_width: int) -> str:
    return " " * (column_width - width(text)) + text
