"""Framed text tables, and text that is safe for terminals."""

from __future__ import annotations

from collections.abc import Sequence


def framed(*rows: Sequence[object]) -> str:
    """Return a framed table with centred cells; the first row is the header.

    >>> print(framed(("Migration", "Found"), ("set_root", 7)))
    +-----------+-------+
    | Migration | Found |
    +-----------+-------+
    |  set_root |   7   |
    +-----------+-------+
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {_centre(cell, width)} " for cell, width in zip(row, widths, strict=True)) + "|"
        for row in cells
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def stack(*blocks: Sequence[str]) -> str:
    """Return blocks of lines in one frame, separated by rules.

    >>> print(stack(["Results"], ["Check: roots", "Result: Success"]))
    +-----------------+
    | Results         |
    +-----------------+
    | Check: roots    |
    | Result: Success |
    +-----------------+
    """
    width = max(len(line) for block in blocks for line in block)
    rule = f"+{'-' * (width + 2)}+"
    return "\n".join(
        [rule, *(line for block in blocks for line in (*(f"| {text:<{width}} |" for text in block), rule))]
    )


def plain(value: object) -> str:
    """Return a value as text that is safe in a terminal, with control characters replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in str(value))


def _centre(cell: str, width: int) -> str:
    padding = (width - len(cell) + 1) // 2
    return " " * padding + cell + " " * (width - len(cell) - padding)
