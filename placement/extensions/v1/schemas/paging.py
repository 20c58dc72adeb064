"""Pages of lists: their size, the mark after which they begin, and the link to the next one (docs: v1-pages)."""

from __future__ import annotations

from urllib.parse import urlencode

from placement.extensions.v1.schemas import numeral
from placement.http.request import Request
from placement.schemas.declarations import Field, string

#: The most consumers of a page, and their number where the client states none.
MAX_CONSUMERS, DEFAULT_CONSUMERS = 1000, 100
#: An id; every database can compare it, also if it is no id of a row.
ID = "[0-9]{1,18}"
AFTER = "The mark of the page before, as in its field next."
#: What a mark is, where another text was sent.
MARK = "the mark that the page before has in its field next"
#: What a list of consumers takes.
OF_CONSUMERS = (
    Field("limit", numeral.up_to(MAX_CONSUMERS), text="The most consumers of a page."),
    Field("after", string(pattern=f"^{ID}$", description=MARK), text=AFTER),
)


def consumers_of_page(req: Request) -> tuple[int, int]:
    """Return how many consumers a client asks for, and the id after which they begin."""
    return int(req.parameters.get("limit", DEFAULT_CONSUMERS)), int(req.parameters.get("after", 0))


def next_page(req: Request, path: str, mark: str | int | None, **fixed: str | None) -> str | None:
    """Return the URL of the page that follows: the same query, with another mark.

    Args:
        req: The request for this page.
        path: The path of the list, below the prefix of the API.
        mark: The place after which it begins; None if there is no other page.
        fixed: Parameters that have another value from here on, such as a date in the place of an age.
    """
    if mark is None:
        return None
    repeated = {name: fixed.get(name) or req.parameters.get(name) for name in req.parameters if name != "after"}
    return f"{req.absolute_url(path)}?{urlencode({**repeated, 'after': mark}, safe=':')}"
