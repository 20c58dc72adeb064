"""Tables of text: columns as wide as needed, folded where the terminal is narrower."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from placement.cmd.text_table import plain
from placement.extensions.terminal.style import BLOCKS, UNKNOWN, Style

_GAP = "  "
#: Texts are not folded below this; in a terminal that is too narrow for it, there is a line for each cell.
_NARROWEST = 8
#: A text is folded between these, and elsewhere only if one is too long.
_PIECES = re.compile(r"[^ ,&=/_-]*[ ,&=/_-]+|[^ ,&=/_-]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
    columns = list(zip(header, *cells, strict=True))
    whole = [all(map(_is_whole, column)) for column in zip(*rows, strict=True)]
    widths = _fitted([max(map(width, column)) for column in columns], whole, style.width)
    if widths is None:
        yield from _records(header, cells, style)
        return
    numbers = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(header))]
    align: list[Callable[[str, int], str]] = [_at_right if number else _at_left for number in numbers]

    def lines(texts: Sequence[str]) -> Iterator[str]:
        pieces = [folded(text, wide) for text, wide in zip(texts, widths, strict=True)]
        for parts in itertools.zip_longest(*pieces, fillvalue=""):
            yield _GAP.join(align[at](part, widths[at]) for at, part in enumerate(parts)).rstrip()

    yield from map(style.bold, lines(header))
    for row, texts in zip(rows, cells, strict=True):
        yield from map(style.bad, lines(texts)) if bad(row) else lines(texts)


def name_of(provider: Mapping[str, Any]) -> str:
    """Return the name of the node of a provider in a document, or else its own name, or else its uuid."""
    return str(provider.get("node") or provider["name"] or provider["uuid"])


def seconds(date: str | None) -> str | None:
    """Return a date of a document in whole seconds; None for none."""
    return None if date is None else f"{date[:19]}Z"


def width(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def _is_whole(cell: object) -> bool:
    """Return whether a cell stays on one line: a number, a uuid or blocks, which make no sense in parts."""
    text = "" if cell is None else str(cell)
    return isinstance(cell, int | float) or {*text} <= {*BLOCKS, UNKNOWN} or _UUID.fullmatch(text) is not None


def _fitted(widths: Sequence[int], whole: Sequence[bool], available: int | None) -> list[int] | None:
    """Return the widths with the widest ones reduced until the line fits; None if it cannot.

    Args:
        whole: Which columns keep their width.
    """
    fitted = list(widths)
    if available is None:
        return fitted
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - available
    while excess > 0:
        foldable = [at for at, wide in enumerate(fitted) if not whole[at] and wide > _NARROWEST]
        if not foldable:
            return None
        widest = max(foldable, key=fitted.__getitem__)
        second = max((fitted[at] for at in foldable if at != widest), default=_NARROWEST)
        by = min(excess, max(1, fitted[widest] - second), fitted[widest] - _NARROWEST)
        fitted[widest] -= by
        excess -= by
    return fitted


def _records(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> Iterator[str]:
    """Yield a line for each cell that is not empty, with the name of its column, and an empty line between rows."""
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, text in zip(header, row, strict=True):
            if text:
                yield from folded(f"{name}: {text.strip()}", max(style.width or 0, _NARROWEST))


def folded(text: str, most: int) -> list[str]:
    """Return the text in lines of at most this width; each has the indentation of the first."""
    if width(text) <= most:
        return [text]
    bare = text.lstrip(" ")
    indentation = " " * min(len(text) - len(bare), most // 2)
    lines = []
    line = indentation
    for piece in _PIECES.findall(bare):
        if line != indentation and width(line + piece.rstrip()) > most:
            lines.append(line.rstrip())
            line = indentation
        line += piece
        while width(line.rstrip()) > most:
            kept = _beginning(line, most)
            lines.append(kept)
            line = indentation + line[len(kept) :]
    return [*lines, line.rstrip()]


def _beginning(text: str, most: int) -> str:
    """Return as much of the text as has this width."""
    kept = ""
    for character in text:
        if width(kept + character) > most:
            break
        kept += character
    return kept


def _at_left(text: str, wide: int) -> str:
    return text + " " * (wide - width(text))


def _at_right(text: str, wide: int) -> str:
    return " " * (wide - width(text)) + text
