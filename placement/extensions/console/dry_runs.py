"""Dry runs of writes, sent to the endpoints that clients use (docs: api-dry-run)."""

from __future__ import annotations

import io
import json
from http import HTTPStatus
from typing import Any, NamedTuple

from placement import errors, routes
from placement import microversion as mv
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import commands
from placement.extensions.console.views.commands import Access
from placement.extensions.console.views.dry_run import DryRunResult
from placement.extensions.v1.api import V1
from placement.extensions.v1.handlers import claim as v1_claim
from placement.handlers import allocation
from placement.handlers import inventory as inventories
from placement.http import body, dry_run
from placement.http.api import Api
from placement.http.endpoint import Endpoint
from placement.http.environ import API, ROUTE, VERSION
from placement.http.request import Request
from placement.http.response import JSON, encode
from placement.schemas.document import Parameters


def form_of(req: Request) -> Parameters:
    """Return the fields of the submitted form.

    Raises:
        InvalidQuery: The fields are not UTF-8 or contain NUL.
        TooLarge: The body or the number of fields exceeds its limit.
    """
    options = req.conf.api
    content = body.read(req.environ, options.max_request_body_size)
    return Parameters(body.parse_form(content, options.max_request_body_values))


def claim(req: Request, consumer: str, document: Any) -> DryRunResult:
    """Return the result of the dry run of a claim.

    Args:
        consumer: The uuid of the consumer.
        document: The body.

    Raises:
        Forbidden: The policy does not allow the caller to claim.
        Failure: The dry run was not made, since the database is unreachable or busy.
    """
    route = "/allocations/{consumer_uuid}"
    return _try(req, _Write(allocation.replace, routes.PLACEMENT, "PUT", route), document, consumer_uuid=consumer)


def choice(req: Request, document: Any) -> DryRunResult:
    """Return the result of the dry run of a claim whose place the service chooses; failures as for ``claim``.

    Args:
        document: The body of POST /v1/claims.
    """
    return _try(req, _Write(v1_claim.create, V1, "POST", "/claims"), document)


def inventory(req: Request, provider: str, resource_class: str, document: Any) -> DryRunResult:
    """Return the result of the dry run of a change of one inventory; failures as for ``claim``.

    Args:
        provider: The uuid of the provider.
        resource_class: The class of the inventory.
        document: The body.
    """
    route = "/resource_providers/{uuid}/inventories/{resource_class}"
    write = _Write(inventories.update, routes.PLACEMENT, "PUT", route)
    return _try(req, write, document, uuid=provider, resource_class=resource_class)


class _Write(NamedTuple):
    """An endpoint and its place in the route tables."""

    endpoint: Endpoint
    api: Api
    method: str
    route: str


def access_of(req: Request) -> Access:
    """Return the address and authentication for shell commands, from the URL of this request."""
    return Access(req.absolute_url("").removesuffix(req.environ[API].prefix), req.conf.api.auth_strategy)


def _try(req: Request, write: _Write, document: Any, **path_values: str) -> DryRunResult:
    """Return the result of the dry run of a write, in the newest version of its API."""
    path = f"{write.api.prefix}{write.route.format(**path_values)}?{dry_run.PARAMETER}=true"
    command = commands.curl_json(access_of(req), write.method, path, document)
    try:
        reply = write.endpoint(_request(req, write, encode(document)), **path_values)
    except errors.BadRequest as failure:  # the body was refused before the dry run began
        return DryRunResult(HTTPStatus.BAD_REQUEST, failure.line, (), command)
    return DryRunResult.from_document(json.loads(reply.body), named_snapshot(req), command)


def _request(req: Request, write: _Write, content: bytes) -> Request:
    """Return the request for a dry run of a write on behalf of the same caller."""
    request = Request({
        **req.environ,
        "REQUEST_METHOD": write.method,
        "QUERY_STRING": "",
        "CONTENT_TYPE": JSON,
        "CONTENT_LENGTH": str(len(content)),
        "wsgi.input": io.BytesIO(content),
        "HTTP_ACCEPT": JSON,
        dry_run.HEADER: "true",
        API: write.api,
        ROUTE: write.route,
        VERSION: mv.LATEST,  # ignored by the v1 API
    })  # fmt: skip
    request.service, request.version, request.read = req.service, mv.LATEST, req.read
    request.mount_path = req.mount_path
    return request
