"""The style of output lines: width, colours and block characters."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TextIO

#: Block characters from the lowest to the full block.
BLOCKS = "▁▂▃▄▅▆▇█"
#: The character for an unknown value among blocks.
UNKNOWN = " "


@dataclass(frozen=True, slots=True)
class Style:
    """The style of output lines.

    Attributes:
        width: Characters per line; None for no limit.
        colour: Whether to use colours.
        blocks: Whether to use the characters of ``BLOCKS``.
    """

    width: int | None = None
    colour: bool = False
    blocks: bool = False

    @classmethod
    def for_stream(cls, stream: TextIO, environment: Mapping[str, str]) -> Self:
        """Return the style for a stream: for a terminal, its width, and colours unless $NO_COLOR is set."""
        blocks = _encodes(stream, BLOCKS)
        if not stream.isatty():
            return cls(blocks=blocks)
        colour = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, colour, blocks)

    def bold(self, text: str) -> str:
        return self._in_colour("1", text)

    def dim(self, text: str) -> str:
        return self._in_colour("2", text)

    def bad(self, text: str) -> str:
        return self._in_colour("31", text)

    def good(self, text: str) -> str:
        return self._in_colour("32", text)

    def _in_colour(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeError):
        return False
    return True
