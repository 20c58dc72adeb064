"""Links to pages that are named by their files, and to decisions that are named by their numbers.

The pages are read as files, too.  There ``docs/policy.rst`` between backquotes, or a link to it in the README, leads to
the file; in HTML it becomes a link to the page.  So does the number in "ADR 7".  A few pages include files of the root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

_PAGE = re.compile(r"docs/((?:\w+/)*[\w-]+)\.rst")
#: The pages that include files of the root.
_OF_THE_ROOT = {"README.rst": "readme", "CONTRIBUTING.rst": "contributing", "CHANGELOG.rst": "changelog"}
_DECISIONS = re.compile(r"\bADR \d+(?:, \d+)*")


def link(app: Any, document: nodes.document) -> None:
    """Replace the names of pages by references to them, and other links into the repository by the path alone."""
    for literal in list(document.findall(nodes.literal)):
        page = _page(literal.astext())
        if page and not isinstance(literal.parent, nodes.reference | addnodes.pending_xref):
            literal.replace_self(_reference(app, page, literal.deepcopy(), explicit=False))
    for outward in list(document.findall(nodes.reference)):
        target = outward.get("refuri", "")
        if page := _page(target):
            outward.replace_self(_reference(app, page, nodes.inline("", outward.astext()), explicit=True))
        elif target and "://" not in target and not target.startswith(("#", "mailto:")):
            outward.replace_self(nodes.literal("", target))
    for text in [found for found in document.findall(nodes.Text) if _DECISIONS.search(found)]:
        if isinstance(text.parent, nodes.paragraph):
            text.parent.replace(text, list(_with_decisions(app, text)))


def _page(path: str) -> str | None:
    """Return the name of the page that shows a file of the repository; None if there is none."""
    found = _PAGE.fullmatch(path)
    return found[1] if found else _OF_THE_ROOT.get(path)


class Pictures(SphinxTransform):
    """Replaces the path of a picture in the repository, which the README has, by that below docs/."""

    default_priority = 10

    def apply(self, **_: Any) -> None:
        """Change the document."""
        for picture in self.document.findall(nodes.image):
            if picture["uri"].startswith("docs/"):
                picture["uri"] = picture["uri"].removeprefix("docs")


def _with_decisions(app: Any, text: str) -> Iterator[nodes.Node]:
    """The text with each number of a decision as a reference."""
    pages = {int(page[4:8]): page for page in app.env.found_docs if page.startswith("adr/")}
    end = 0
    for listed in _DECISIONS.finditer(text):
        for number in re.finditer(r"\d+", listed.group()):
            start = listed.start() + number.start()
            yield nodes.Text(text[end:start])
            end = start + len(number.group())
            yield _reference(app, pages[int(number.group())], nodes.inline("", number.group()), explicit=True)
    yield nodes.Text(text[end:])


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
    app.add_transform(Pictures)
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}
