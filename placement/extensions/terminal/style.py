"""How lines are shown: the width of the terminal, and colours, which only a terminal gets."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TextIO


@dataclass(frozen=True, slots=True)
class Style:
    """The width of lines in characters, None for any, and whether there are colours."""

    width: int | None = None
    colour: bool = False

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> Self:
        """Return what suits a stream: colours unless $NO_COLOR is set, and a width, if it is a terminal."""
        if not stream.isatty():
            return cls()
        colour = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size().columns, colour)

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
