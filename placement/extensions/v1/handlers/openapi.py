"""/openapi.json, /openapi-placement.json"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from placement import microversion as mv
from placement import package
from placement.extensions.v1.openapi.document import describe
from placement.extensions.v1.schemas import openapi as schema
from placement.http.api import Api
from placement.http.endpoint import Endpoint, endpoint
from placement.http.environ import API
from placement.http.request import Request
from placement.http.response import JSON, UNDATED, Reply, encode, page
from placement.version_history import Version

#: Cached documents; each version of Placement has one.
_MAX_DOCUMENTS = 64


@endpoint(replies=schema.SHOW)
def show(req: Request) -> Reply:
    """Show the OpenAPI document of this API."""
    return _present(_document(req.environ[API], req.version, package.version()), req.mount_path)


def description_endpoint(placement: Api) -> Endpoint:
    """Return the endpoint that describes the Placement API.

    Args:
        placement: The API.  It is a parameter because the handlers of one API do not import another API.
    """

    @endpoint(query=schema.VERSION, replies=schema.SHOW)
    def show_placement(req: Request) -> Reply:
        """Show the OpenAPI document of the Placement API at one version, by default the newest."""
        version = mv.HISTORY.by_name(req.parameters.get("version", "latest"))
        service_path = req.mount_path.removesuffix(req.environ[API].prefix)
        return _present(_document(placement, version, str(version)), service_path)

    return show_placement


@functools.lru_cache(_MAX_DOCUMENTS)
def _document(api: Api, version: Version, label: str) -> dict[str, Any]:
    return describe(api, version, label=label)


def _present(document: dict[str, Any], mount_path: str) -> Reply:
    """Return the response with the document of an API mounted at a path; 304 if the client sends its ETag."""
    content = encode({**document, "servers": [{"url": mount_path or "/"}]})
    reply = page(content, JSON)
    reply.etag = hashlib.sha256(content).hexdigest()
    reply.conditional_response = True
    reply.modified = UNDATED
    return reply
