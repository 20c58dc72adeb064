"""/console/api"""

from __future__ import annotations

import functools

from placement import microversion as mv
from placement import package, routes
from placement.extensions.console import pages
from placement.extensions.console.views.operation import Operation, operations
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi import parameters
from placement.extensions.v1.openapi.document import describe, endpoints_at
from placement.http.api import Api
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST, Change, Version

_SHOW = Query(
    Object(
        Field("of", string(enum=["v1", "placement"]), since=OLDEST),
        Field("version", string(maxLength=20), since=OLDEST),
    )
)
#: Descriptions in the cache: enough for all versions of Placement.
_CACHE_SIZE = 64


@endpoint(query=_SHOW, negotiates=False)
def show(req: Request) -> Reply:
    """Show the reference of an API, generated from its OpenAPI document: operations with examples, and versions."""
    changes: tuple[Change, ...] = ()
    root = req.mount_path.removesuffix("/console")
    if req.parameters.get("of", "v1") == "v1":
        shown_operations = _operations(V1, OLDEST)
        document, version = "/v1/openapi.json", package.version()
    else:
        microversion = mv.HISTORY.by_name(req.parameters.get("version") or "latest")
        shown_operations = _operations(routes.PLACEMENT, microversion)
        changes = tuple(reversed([*mv.HISTORY]))
        document, version = f"/v1/openapi-placement.json?version={microversion}", str(microversion)
    return pages.show(
        req,
        "reference.html",
        page="api",
        operations=shown_operations,
        nouns=list(dict.fromkeys(operation.noun for operation in shown_operations)),
        chosen_version=version,
        changes=changes,
        document=root + document,
    )


@functools.lru_cache(_CACHE_SIZE)
def _operations(api: Api, version: Version) -> tuple[Operation, ...]:
    first_versions = _first_versions(api, version) if api.versioning.headers(version) else {}
    return tuple(operations(describe(api, version, label=str(version)), api.prefix, first_versions))


def _first_versions(api: Api, version: Version) -> dict[tuple[str, str, str], Version]:
    """Return the first version of each operation and query parameter in a version of Placement."""
    first_versions: dict[tuple[str, str, str], Version] = {}
    for older in (change.version for change in mv.HISTORY if change.version <= version):
        for path, methods in api.routes.items():
            for method, handler in endpoints_at(methods, older):
                first_versions.setdefault((path, method, ""), older)
                for parameter in parameters.of_query(handler, older, ()):
                    first_versions.setdefault((path, method, parameter["name"]), older)
    return first_versions
