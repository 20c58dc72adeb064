"""Dry runs of Placement's writes: a page sends what a client would send, to the same endpoints (docs: api-dry-run)."""

from __future__ import annotations

import io
import json
from http import HTTPStatus
from typing import Any

from placement import errors, routes
from placement import microversion as mv
from placement.console.views import commands
from placement.console.views.dry_run import DryRunAnswer
from placement.handlers import allocation
from placement.handlers import inventory as inventories
from placement.http import body, dry_run, urlencoded
from placement.http.endpoint import Endpoint
from placement.http.environ import API, ROUTE, VERSION
from placement.http.request import Request
from placement.http.response import JSON, encode
from placement.schemas.document import Parameters


def form_of(req: Request) -> Parameters:
    """Return the fields of the form that was sent.

    Raises:
        InvalidQuery: They are not UTF-8, or hold NUL.
    """
    content = body.read(req.environ, req.conf.api.max_request_body_size)
    return Parameters(urlencoded.pairs(content, "ascii", "field"))


def claim(req: Request, consumer: str, document: Any) -> DryRunAnswer:
    """Return what the service would answer to a claim.

    Args:
        consumer: The uuid of the consumer.
        document: The body.

    Raises:
        Forbidden: The policy does not let the caller claim.
        Failure: It was not tried: the database is away, or busy.
    """
    return _put(req, allocation.replace, "/allocations/{consumer_uuid}", document, consumer_uuid=consumer)


def inventory(req: Request, provider: str, resource_class: str, document: Any) -> DryRunAnswer:
    """Return what the service would answer to a change of one inventory; raises as ``claim`` does.

    Args:
        provider: The uuid of the provider.
        resource_class: The class of the inventory.
        document: The body.
    """
    route = "/resource_providers/{uuid}/inventories/{resource_class}"
    return _put(req, inventories.update, route, document, uuid=provider, resource_class=resource_class)


def _put(req: Request, endpoint: Endpoint, route: str, document: Any, **path_values: str) -> DryRunAnswer:
    """Return what Placement would answer to a PUT, in its newest version."""
    path = f"{route.format(**path_values)}?{dry_run.PARAMETER}=true"
    command = commands.curl_put(req.absolute_url("").removesuffix(req.environ[API].prefix) + path, document)
    try:
        reply = endpoint(_request(req, route, encode(document)), **path_values)
    except errors.BadRequest as refused:  # before anything was tried
        return DryRunAnswer(HTTPStatus.BAD_REQUEST, refused.sentence, (), command)
    return DryRunAnswer.of(json.loads(reply.body), req.index.current(), command)


def _request(req: Request, route: str, content: bytes) -> Request:
    """Return the request of the same caller that asks Placement for a dry run."""
    return Request({
        **req.environ,
        "REQUEST_METHOD": "PUT",
        "QUERY_STRING": "",
        "CONTENT_TYPE": JSON,
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.input": io.BytesIO(content),
        "HTTP_ACCEPT": JSON,
        dry_run.HEADER: "true",
        API: routes.PLACEMENT,
        ROUTE: route,
        VERSION: mv.LATEST,
    })  # fmt: skip
