"""Links to pages that are named by their files.

The pages are read as files, too.  There ``docs/policy.rst`` between backquotes, or a link to it in the README, leads to
the file; in HTML it becomes a link to the page.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

_PAGE = re.compile(r"docs/((?:\w+/)*[\w-]+)\.rst")


def link(app: Any, document: nodes.document) -> None:
    """Replace the names of pages by references to them, and other links into the repository by the path alone."""
    for literal in list(document.findall(nodes.literal)):
        page = _PAGE.fullmatch(literal.astext())
        if page and not isinstance(literal.parent, nodes.reference | addnodes.pending_xref):
            literal.replace_self(_reference(app, page[1], literal.deepcopy(), explicit=False))
    for outward in list(document.findall(nodes.reference)):
        target = outward.get("refuri", "")
        if page := _PAGE.fullmatch(target):
            outward.replace_self(_reference(app, page[1], nodes.inline("", outward.astext()), explicit=True))
        elif target and "://" not in target and not target.startswith(("#", "mailto:")):
            outward.replace_self(nodes.literal("", target))


def _reference(app: Any, page: str, shown: nodes.Node, *, explicit: bool) -> addnodes.pending_xref:
    return addnodes.pending_xref(
        "",
        shown,
        refdoc=app.env.docname,
        refdomain="std",
        reftype="doc",
        refexplicit=explicit,
        refwarn=True,
        reftarget=f"/{page}",
    )


def setup(app: Any) -> dict[str, bool]:
    """Connect to the pages as they are read."""
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}
