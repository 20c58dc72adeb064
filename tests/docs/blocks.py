"""The blocks of the pages: ``.. code-block:: LANGUAGE``, with a ``:caption:`` where it is the content of a file."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in [
        *(ROOT / name for name in ("README.rst", "CONTRIBUTING.rst", "client/README.rst")),
        *sorted((ROOT / "docs").rglob("*.rst")),
    ]
}
_BLOCK = re.compile(
    r"^(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n"
    r"(?P<options>(?:(?P=indent) +:\w+: .*\n)*)\n(?P<text>(?:(?P=indent) +.*(?:\n|\Z)|\n)+)",
    re.MULTILINE,
)
#: Other forms of blocks: without a language, or read by another directive.
_OTHER = re.compile(r"^ *(?:(?!\.\. ).*::|\.\. (?:code|sourcecode|parsed-literal|code-block)::.*|>>> .*)$")


class Block(NamedTuple):
    line: int
    language: str
    caption: str
    text: str

    @property
    def kind(self) -> str:
        """What is in it: its caption, or else its language."""
        return self.caption or self.language


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page, or of a part of one."""
    for match in _BLOCK.finditer(text):
        caption = re.search(r":caption: (.*)", match["options"])
        line = text.count("\n", 0, match.start()) + 1
        yield Block(
            line, match["language"], caption[1] if caption else "", textwrap.dedent(match["text"]).strip("\n") + "\n"
        )


def captioned(page: str, caption: str) -> str:
    """Return the text of the block of a page that has this caption."""
    (text,) = (block.text for block in blocks(PAGES[page]) if block.caption == caption)
    return text


def unclear(text: str) -> list[str]:
    """Return the lines of a page that begin a block in another form than this module reads."""
    return [line for line in _BLOCK.sub("", text).splitlines() if _OTHER.match(line)]
