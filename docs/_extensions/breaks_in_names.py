"""Long names in tables, such as paths and rules of the policy, are broken after a colon or a slash, if at all."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

_END_OF_PART = re.compile(r"(?<=[\w}][:/])(?=[\w{])")


def allow(app: Any, document: nodes.document, _page: str) -> None:
    """Mark in the literals of tables where a line may end; the mark is no character, so a copied name is intact."""
    if app.builder.format != "html":
        return
    for entry in document.findall(nodes.entry):
        for literal in entry.findall(nodes.literal):
            first, *others = _END_OF_PART.split(literal.astext())
            literal.children = []
            literal += nodes.Text(first)
            for part in others:
                literal += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]


def setup(app: Any) -> dict[str, bool]:
    """Connect to the pages as they are written."""
    app.connect("doctree-resolved", allow)
    return {"parallel_read_safe": True}
