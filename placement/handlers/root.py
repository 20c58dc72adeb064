"""/"""

from __future__ import annotations

from webob.acceptparse import create_accept_header

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import JSON, NOW, Reply, found, ok
from placement.schemas import root as schema

_VERSIONS = {
    "versions": [
        {
            "id": "v1.0",
            "max_version": str(mv.LATEST),
            "min_version": str(mv.MINIMUM),
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


@endpoint(negotiates=False, replies=schema.SHOW_REPLIES)
def show(req: Request) -> Reply:
    """Show the versions of the API, or redirect a browser to the pages of the service, if it has any."""
    pages = req.service.pages
    if pages and _prefers_pages(req.environ.get("HTTP_ACCEPT")):
        return found(req.absolute_url(pages))
    return ok(_VERSIONS, modified=NOW)


def _prefers_pages(accept: str | None) -> bool:
    """Whether the client prefers HTML to JSON, as browsers do; ``*/*`` is not a preference."""
    offers = create_accept_header(accept).acceptable_offers([JSON, "text/html"])
    return bool(offers) and offers[0][0] == "text/html"
