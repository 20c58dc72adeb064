"""/v1"""

from __future__ import annotations

from placement import package
from placement.extensions.v1.schemas import root as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok

#: Paths linked from the root document, by relation.
_LINKS = {
    "capacity": "/capacity",
    "explain": "/explain",
    "overview": "/overview",
    "consumers": "/consumers",
    "events": "/events",
    "usage": "/usage",
    "openapi": "/openapi.json",
    "openapi-placement": "/openapi-placement.json",
}


@endpoint(replies=schema.SHOW)
def show(req: Request) -> Reply:
    """Show links to the resources of the API."""
    links = [{"rel": "self", "href": req.absolute_url("")}]
    links += [{"rel": rel, "href": req.absolute_url(path)} for rel, path in _LINKS.items()]
    return ok({"name": "placement", "version": package.version(), "links": links}, modified=NOW)
