"""/console/api"""

from __future__ import annotations

import functools

from placement import microversion as mv
from placement import package, routes
from placement.console import pages
from placement.console.views.operation import Operation, operations
from placement.http.api import Api
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.openapi.document import describe
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.v1.api import V1
from placement.version_history import OLDEST, Version

_OF = Query(
    Object(
        Field("of", string(enum=["v1", "placement"]), since=OLDEST),
        Field("version", string(maxLength=20), since=OLDEST),
    )
)
#: Descriptions that are kept: each version of Placement has one.
_KEPT = 64


@endpoint(query=_OF, negotiates=False)
def show(req: Request) -> Reply:
    """Show the OpenAPI description of an API: its operations, what they take, and what they reply."""
    above = req.mount_path.removesuffix("/console")
    if req.parameters.get("of", "v1") == "v1":
        shown = _operations(V1, OLDEST)
        document, prefix, version = "/v1/openapi.json", V1.prefix, package.version()
    else:
        named = req.parameters.get("version") or str(mv.LATEST)
        chosen = mv.negotiate(f"{mv.SERVICE_TYPE} {named}")
        shown = _operations(routes.PLACEMENT, chosen)
        document, prefix, version = f"/v1/openapi-placement.json?version={chosen}", "", str(chosen)
    return pages.show(
        req,
        "reference.html",
        page="api",
        operations=shown,
        prefix=prefix,
        chosen_version=version,
        is_placement=not prefix,
        versions=[str(change.version) for change in reversed([*mv.HISTORY])],
        document=above + document,
    )


@functools.lru_cache(_KEPT)
def _operations(api: Api, version: Version) -> tuple[Operation, ...]:
    return tuple(operations(describe(api, version, label=str(version))))
