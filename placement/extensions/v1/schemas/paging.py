"""Pages of lists: limit, mark, and link to the next page (docs: v1-pages)."""

from __future__ import annotations

from urllib.parse import urlencode

from placement.extensions.v1.schemas import numeral
from placement.http.request import Request
from placement.schemas.declarations import Field, string

#: Consumers in a page: the maximum, and the default.
MAX_CONSUMERS, DEFAULT_CONSUMERS = 1000, 100
#: The pattern of ids; every database can compare numbers of this size with its ids.
ID = "[0-9]{1,18}"
#: The description of the parameter ``after``.
AFTER = "The mark in the field next of the previous page."
#: The description of a mark, for errors.
MARK = "the mark in the field next of the previous page"
#: Parameters of lists of consumers.
CONSUMER_PAGE = (
    Field("limit", numeral.up_to(MAX_CONSUMERS), text="The maximum number of consumers in a page."),
    Field("after", string(pattern=f"^{ID}$", description=MARK), text=AFTER),
)


def limit_and_mark(req: Request) -> tuple[int, int]:
    """Return the limit of a page of consumers, and the id after which it begins."""
    return int(req.parameters.get("limit", DEFAULT_CONSUMERS)), int(req.parameters.get("after", 0))


def next_page(req: Request, path: str, mark: str | int | None, **replaced: str | None) -> str | None:
    """Return the URL of the next page: the same query with another mark.

    Args:
        req: The request for this page.
        path: The path of the list, below the prefix of the API.
        mark: The mark of the next page; None if this is the last page.
        replaced: Parameters to replace, such as an age by its date.
    """
    if mark is None:
        return None
    parameters = {name: replaced.get(name) or req.parameters.get(name) for name in req.parameters if name != "after"}
    return f"{req.absolute_url(path)}?{urlencode({**parameters, 'after': mark}, safe=':')}"
