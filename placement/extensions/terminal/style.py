"""How lines are shown: the width of the terminal, and colours, which only a terminal gets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TextIO

#: From the lowest to the full one.
BLOCKS = "▁▂▃▄▅▆▇█"
#: Stands among blocks where nothing is known.
UNKNOWN = " "


@dataclass(frozen=True, slots=True)
class Style:
    """How lines are shown.

    Attributes:
        width: The width of lines in characters; None for any.
        colour: Whether there are colours.
        blocks: Whether there are the characters of BLOCKS.
    """

    width: int | None = None
    colour: bool = False
    blocks: bool = False

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> Self:
        """Return what suits a stream: colours unless $NO_COLOR is set, and a width, if it is a terminal."""
        blocks = _encodes(stream, BLOCKS)
        if not stream.isatty():
            return cls(blocks=blocks)
        colour = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, colour, blocks)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def bad(self, text: str) -> str:
        return self._in("31", text)

    def good(self, text: str) -> str:
        return self._in("32", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeError):
        return False
    return True
