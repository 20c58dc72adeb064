"""/"""

from __future__ import annotations

from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok

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


@endpoint(negotiates=False)
def show(_req: Request) -> Reply:
    """Show the versions of the API."""
    return ok(_VERSIONS, modified=NOW)
