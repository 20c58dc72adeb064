"""/, /v1"""

from __future__ import annotations

from typing import Any

from placement.extensions.baremetal import versions
from placement.extensions.baremetal.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply, ok

#: Collections linked from /v1, and the first version of each.
_COLLECTIONS = (
    ("nodes", versions.INITIAL),
    ("drivers", versions.INITIAL),
    ("allocations", versions.ALLOCATIONS),
)
_DESCRIBED_BY = "https://docs.openstack.org/api-ref/baremetal/"


@endpoint()
def show(req: Request) -> Reply:
    """Show the only major version of the API."""
    v1 = _v1(req)
    return ok(
        {
            "name": "OpenStack Ironic API",
            "description": "Bare metal nodes and allocations, on the claims of OpenStack Placement.",
            "default_version": v1,
            "versions": [v1],
        }
    )


@endpoint()
def show_v1(req: Request) -> Reply:
    """Show the collections in the version of the request."""
    collections = {
        name: [
            {"href": req.absolute_url(f"/v1/{name}/"), "rel": "self"},
            {"href": req.absolute_url(f"/{name}/"), "rel": "bookmark"},
        ]
        for name, since in _COLLECTIONS
        if req.version >= since
    }
    described_by = {"href": _DESCRIBED_BY, "rel": "describedby", "type": "text/html"}
    return ok(
        {
            "id": "v1",
            "links": [_self(req), described_by],
            "media_types": {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"},
            **collections,
            "version": _v1(req),
        }
    )


def _v1(req: Request) -> dict[str, Any]:
    return {
        "id": "v1",
        "links": [_self(req)],
        "status": "CURRENT",
        "min_version": str(versions.MINIMUM),
        "version": str(versions.LATEST),
    }


def _self(req: Request) -> dict[str, str]:
    return {"href": req.absolute_url("/v1/"), "rel": "self"}
