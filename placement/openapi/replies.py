"""The replies of an operation: those that its endpoint declares, and failures that follow from its form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from placement import errors
from placement.http.api import Api
from placement.http.endpoint import Endpoint
from placement.http.error_list import ErrorList
from placement.http.failures import status_of
from placement.http.response import JSON
from placement.openapi.examples import Example
from placement.schemas.declarations import JSONSchema
from placement.schemas.replies.dry_run import DRY_RUN
from placement.schemas.success import Success
from placement.version_history import Version

#: Of every operation.
_ALWAYS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE})
#: Of an operation that needs to know the caller.
_OF_CALLERS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_OF_BODIES = frozenset({HTTPStatus(413), HTTPStatus.UNSUPPORTED_MEDIA_TYPE})
_OF_QUERIES = frozenset({HTTPStatus(414)})

_TEXT: JSONSchema = {"schema": {"type": "string"}}
_REQUEST_ID: dict[str, Any] = {
    "description": "The id of the request, which the log names.",
    "required": True,
    "schema": {"type": "string"},
}


def succeeding(
    api: Api, version: Version, endpoint: Endpoint, examples: Sequence[Example]
) -> dict[str, dict[str, Any]]:
    """Return the response of each status with which the endpoint succeeds in this version."""
    by_status = {
        success.status: _response(api, version, success, examples)
        for success in endpoint.replies
        if success.exists_at(version)
    }
    if endpoint.dry_run is not None:
        tried = _response(api, version, Success(200, DRY_RUN), ())
        written = by_status.setdefault(200, tried)
        if written is not tried:
            content = written["content"][JSON]
            content["schema"] = {"anyOf": [content["schema"], tried["content"][JSON]["schema"]]}
    return {str(status): response for status, response in sorted(by_status.items())}


def failing(api: Api, version: Version, path: str, method: str, endpoint: Endpoint) -> set[HTTPStatus]:
    """Return the statuses of the failures that an endpoint with this declaration can have."""
    statuses = set(_ALWAYS)
    if path not in api.open_paths:
        statuses |= _OF_CALLERS
    if "{" in path:
        statuses.add(HTTPStatus.NOT_FOUND)
    if endpoint.body is not None:
        statuses |= _OF_BODIES
    if endpoint.query is not None:
        statuses |= _OF_QUERIES
    if method != "GET":
        statuses.add(HTTPStatus.CONFLICT)
    if (method == "GET" and endpoint.negotiates) or api.versioning.headers(version):
        statuses.add(HTTPStatus.NOT_ACCEPTABLE)
    return statuses


def failure(api: Api, version: Version, status: HTTPStatus) -> dict[str, Any]:
    """Return the response of a status that reports failures; its form is what the client accepts."""
    content = {JSON: {"schema": _error_list(api, version, status)}, "text/html": _TEXT, "text/plain": _TEXT}
    return {"description": status.phrase, "headers": {"x-openstack-request-id": _REQUEST_ID}, "content": content}


def _response(api: Api, version: Version, success: Success, examples: Sequence[Example]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(success.status).phrase}
    response["headers"] = dict(_headers(api, version, success))
    if success.document is not None:
        content: dict[str, Any] = {"schema": success.document.render(version)}
        shown = {
            each.name: {"value": each.reply}
            for each in examples
            if each.status == success.status and each.reply is not None
        }
        if shown:
            content["examples"] = shown
        response["content"] = {JSON: content}
    return response


def _headers(api: Api, version: Version, success: Success) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "x-openstack-request-id", _REQUEST_ID
    for name, value in api.versioning.headers(version):
        yield name, {"required": True, "schema": {"type": "string", "const": value}}
    if success.location:
        yield (
            "location",
            {"description": "The absolute URL.", "required": True, "schema": {"type": "string", "format": "uri"}},
        )
    for name, text in success.headers:
        yield name, {"description": text, "schema": {"type": "string"}}


def _error_list(api: Api, version: Version, status: HTTPStatus) -> JSONSchema:
    """Return the schema of the error document of ``ErrorList``."""
    error: dict[str, JSONSchema] = {
        "status": {"const": status.value},
        "title": {"const": status.phrase},
        "detail": {"type": "string"},
        "request_id": {"type": ["string", "null"]},
    }
    required = [*error]
    form = api.error_documents
    if isinstance(form, ErrorList) and version >= form.codes_since:
        error["code"] = {"type": "string", "enum": _codes(status)}
        required.append("code")
    if status is HTTPStatus.NOT_ACCEPTABLE and api.versioning.headers(version):
        # A refusal of the version names those that there are, instead of a code.
        error |= {"max_version": {"type": "string"}, "min_version": {"type": "string"}}
        required = [name for name in required if name != "code"]
    item = {"type": "object", "properties": error, "required": required, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": item, "minItems": 1, "maxItems": 1}},
        "required": ["errors"],
        "additionalProperties": False,
    }


def _codes(status: HTTPStatus) -> list[str]:
    """Return the codes of all failures with this status."""
    return sorted({kind.code for kind in _kinds(errors.Failure) if status_of(kind.__new__(kind)) == status})


def _kinds(kind: type[errors.Failure]) -> Iterator[type[errors.Failure]]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)
