"""Colours for the examples, ``.. code-block:: http``: request lines have no ``HTTP/1.1``, and JSON may hold ``...``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.lexers.data import JsonLexer
from pygments.token import Error, Keyword, Name, Number, Operator, Text


def _json(_lexer: RegexLexer, match: Any) -> Iterator[tuple[int, Any, str]]:
    for offset, token, text in JsonLexer().get_tokens_unprocessed(match.group()):
        yield match.start() + offset, Text if token is Error else token, text


class HTTPExamples(RegexLexer):
    """A request or a reply: its first line, its headers, an empty line, a body of JSON."""

    name = "HTTP examples"
    tokens: ClassVar = {
        "root": [
            (r"(HTTP/[\d.]+)( +)(\d+)( *)([^\n]*)(\n)", bygroups(Keyword, Text, Number, Text, Name, Text), "headers"),
            (r"([A-Z]+)( +)([^\n]+)(\n)", bygroups(Keyword, Text, Name.Namespace, Text), "headers"),
        ],
        "headers": [
            (r"([\w-]+)(:)([^\n]*)(\n)", bygroups(Name.Attribute, Operator, Text, Text)),
            (r"[ \t]+[^\n]*\n", Text),
            (r"\.\.\.\n", Text),
            (r"\n", Text, "body"),
        ],
        "body": [(r"(?s).+", _json)],
    }


def setup(app: Any) -> dict[str, bool]:
    """Register the lexer in place of that of Pygments."""
    app.add_lexer("http", HTTPExamples)
    return {"parallel_read_safe": True}
