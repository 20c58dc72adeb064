"""/"""

from __future__ import annotations

from placement import microversion as mv
from placement.endpoint import endpoint
from placement.reply import NOW, Reply, ok
from placement.request import Request

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
    """The versions that are spoken here."""
    return ok(_VERSIONS, modified=NOW)
