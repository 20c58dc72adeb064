"""The blocks of the pages: ``.. code-block:: LANGUAGE``, with a ``:caption:`` if the content is a file."""

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
#: Unsupported forms of blocks: without a language, or of another directive.
_OTHER = re.compile(r"^ *(?:(?!\.\. ).*::|\.\. (?:code|sourcecode|parsed-literal|code-block)::.*|>>> .*)$")


class Block(NamedTuple):
    line: int
    language: str
    caption: str
    text: str

    @property
    def kind(self) -> str:
        """The kind of content: the caption, or else the language."""
        return self.caption or self.language


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page, or of a section."""
    for match in _BLOCK.finditer(text):
        caption = re.search(r":caption: (.*)", match["options"])
        line = text.count("\n", 0, match.start()) + 1
        yield Block(
            line, match["language"], caption[1] if caption else "", textwrap.dedent(match["text"]).strip("\n") + "\n"
        )


def text_of(page: str, caption: str) -> str:
    """Return the text of the block with this caption."""
    (text,) = (block.text for block in blocks(PAGES[page]) if block.caption == caption)
    return text


def unsupported_lines(text: str) -> list[str]:
    """Return the lines of a page that begin a block in an unsupported form."""
    return [line for line in _BLOCK.sub("", text).splitlines() if _OTHER.match(line)]
