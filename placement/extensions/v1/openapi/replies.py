"""Responses of an operation: the declared successes, and the failures that its declaration implies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from placement import errors
from placement.extensions.v1.error_documents import ErrorLines
from placement.extensions.v1.openapi.components import Components
from placement.extensions.v1.openapi.examples import Example
from placement.http import failures
from placement.http.api import Api
from placement.http.endpoint import Endpoint
from placement.http.error_list import ErrorList
from placement.http.response import JSON
from placement.schemas.declarations import JSONSchema
from placement.schemas.dry_run import DRY_RUN
from placement.schemas.success import Dated, Success
from placement.version_history import Version

#: Statuses of every operation.
_ALWAYS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE})
#: Statuses of operations that authenticate the caller.
_OF_CALLERS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
_OF_BODIES = frozenset({HTTPStatus(413), HTTPStatus.UNSUPPORTED_MEDIA_TYPE})
_OF_QUERIES = frozenset({HTTPStatus(414)})

#: The modules whose failures every API can report.
_SHARED = (errors.__name__, failures.__name__)

_TEXT: JSONSchema = {"schema": {"type": "string"}}
_REQUEST_ID: dict[str, Any] = {
    "description": "The id of the request, as in the log.",
    "required": True,
    "schema": {"type": "string"},
}
_RETRY_AFTER: dict[str, Any] = {"description": "Seconds to wait before a retry.", **_TEXT}
#: Headers of failures, by status.
_OF_STATUS: dict[int, dict[str, Any]] = {
    401: {"www-authenticate": {"description": "How to authenticate.", **_TEXT}},
    429: {"retry-after": _RETRY_AFTER},
    503: {"retry-after": _RETRY_AFTER},
}


def success_responses(
    api: Api, version: Version, endpoint: Endpoint, examples: Sequence[Example], name: str, components: Components
) -> dict[str, dict[str, Any]]:
    """Return the response of each status with which the endpoint succeeds in this version.

    Args:
        name: The class name of the operation, for its schemas.
        components: The components of the document, to which the schemas are added.
    """
    by_status = {}
    for success in endpoint.replies:
        if success.exists_at(version):
            schema = _schema(api, version, success, f"{name}Reply", components)
            by_status[success.status] = _response(api, version, success, schema, examples)
            for media_type in endpoint.other_types:
                by_status[success.status]["content"][media_type] = _TEXT
    if endpoint.dry_run is not None:
        success = Success(200, DRY_RUN)
        of_dry_run = _response(api, version, success, _schema(api, version, success, "DryRun", components), ())
        by_status[200] = _either_response(by_status[200], of_dry_run) if 200 in by_status else of_dry_run
    return {str(status): response for status, response in sorted(by_status.items())}


def failure_statuses(api: Api, version: Version, path: str, method: str, endpoint: Endpoint) -> set[HTTPStatus]:
    """Return the statuses with which an endpoint with this declaration can fail."""
    statuses = set(_ALWAYS)
    if path not in api.open_paths:
        statuses |= _OF_CALLERS
    if "{" in path:
        statuses.add(HTTPStatus.NOT_FOUND)
    if endpoint.body is not None:
        statuses |= _OF_BODIES
    if endpoint.query is not None:
        statuses |= _OF_QUERIES
    if endpoint.may_be_gone:
        statuses.add(HTTPStatus.GONE)
    if method != "GET":
        statuses.add(HTTPStatus.CONFLICT)
    if (method == "GET" and endpoint.negotiates) or api.versioning.headers(version):
        statuses.add(HTTPStatus.NOT_ACCEPTABLE)
    return statuses


def conflict(
    api: Api, version: Version, endpoint: Endpoint, operation: str, components: Components
) -> dict[str, dict[str, Any]]:
    """Return the response with status 409 if the conflicts of the endpoint have further members; otherwise nothing.

    Args:
        operation: The class name of the operation, for the schema.
    """
    if endpoint.conflict is None:
        return {}
    members = _extensible(api, version, endpoint.conflict.render(version))
    return {"409": failure(api, version, components, HTTPStatus.CONFLICT, operation, members["properties"])}


def failure(
    api: Api,
    version: Version,
    components: Components,
    status: HTTPStatus,
    operation: str = "",
    members: JSONSchema | None = None,
) -> dict[str, Any]:
    """Return a reference to the response for failures with a status, in every form that a client may accept.

    Headers with the version are optional, because a failure may precede the negotiation of the version.

    Args:
        operation: The class name of the operation, if its failures have further members.
        members: The schemas of these members.
    """
    name = f"{operation}Errors{status.value}"
    errors_alone = _error_list(api, version, status)
    properties = {**(members or {}), **errors_alone["properties"]}
    schema = components.add_schema(name, {**errors_alone, "properties": properties})
    headers = {"x-openstack-request-id": _REQUEST_ID, **_OF_STATUS.get(status, {})}
    headers |= {name: {"schema": form} for name, form in _of_version(api, version)}
    content = {JSON: {"schema": schema}, "text/html": _TEXT, "text/plain": _TEXT}
    return components.add_response(name, {"description": status.phrase, "headers": headers, "content": content})


def _schema(api: Api, version: Version, success: Success, name: str, components: Components) -> JSONSchema | None:
    """Return a reference to the schema of the document; None if the response has no document."""
    if success.document is None:
        return None
    return components.add_schema(name, _extensible(api, version, success.document.render(version)))


def _extensible(api: Api, version: Version, schema: JSONSchema) -> JSONSchema:
    """Return the schema, which for an API without versions admits further fields.

    Such an API may add fields.  Objects that are keyed by names or uuids have no fields, and remain closed.
    """
    if api.versioning.headers(version):
        return schema
    return cast(JSONSchema, _allow_additions(schema))


def _allow_additions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_allow_additions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {keyword: _allow_additions(value) for keyword, value in schema.items()}
    if "properties" in schema and schema.get("additionalProperties") is False:
        changed["additionalProperties"] = True
    return changed


def _response(
    api: Api, version: Version, success: Success, schema: JSONSchema | None, examples: Sequence[Example]
) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(success.status).phrase}
    response["headers"] = dict(_headers(api, version, success))
    if schema is not None:
        content: dict[str, Any] = {"schema": schema}
        values = {
            example.name: {"value": example.reply}
            for example in examples
            if example.status == success.status and example.reply is not None
        }
        if values:
            content["examples"] = values
        response["content"] = {JSON: content}
    return response


def _either_response(of_write: dict[str, Any], of_dry_run: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a write that may be a dry run.

    Headers of the write that a dry run lacks are optional.
    """
    headers = {
        name: header if name in of_dry_run["headers"] else {**header, "required": False}
        for name, header in of_write["headers"].items()
    }
    content = of_write["content"][JSON]
    schemas = [content["schema"], of_dry_run["content"][JSON]["schema"]]
    return {**of_write, "headers": headers, "content": {JSON: {**content, "schema": {"anyOf": schemas}}}}


def _headers(api: Api, version: Version, success: Success) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "x-openstack-request-id", _REQUEST_ID
    for name, form in _of_version(api, version):
        yield name, {"required": True, "schema": form}
    if success.location:
        yield (
            "location",
            {"description": "The absolute URL.", "required": True, "schema": {"type": "string", "format": "uri"}},
        )
    if success.dated is not Dated.NEVER and version >= api.cache_headers_since:
        yield "cache-control", {"required": True, "schema": {"type": "string", "const": "no-cache"}}
        text = "When the shown objects last changed."
        yield "last-modified", {"description": text, "required": success.dated is Dated.ALWAYS, **_TEXT}
    for name, text in success.headers:
        yield name, {"description": text, **_TEXT}


def _of_version(api: Api, version: Version) -> Iterator[tuple[str, JSONSchema]]:
    """Yield the headers with the version, and their schemas."""
    for name, value in api.versioning.headers(version):
        # Other parts of the service may add names to ``vary``.
        yield name, {"type": "string", **({"pattern": f"(^|, ){value}(,|$)"} if name == "vary" else {"const": value})}


def _error_list(api: Api, version: Version, status: HTTPStatus) -> JSONSchema:
    """Return the schema of the error document of ``ErrorList``."""
    common: dict[str, JSONSchema] = {
        "status": {"const": status.value},
        "title": {"const": status.phrase},
        "detail": {"type": "string"},
        "request_id": {"type": ["string", "null"]},
    }
    form = api.error_documents
    has_code = isinstance(form, ErrorList) and version >= form.codes_since
    optional: dict[str, JSONSchema] = {}
    if isinstance(form, ErrorLines):
        optional = {"field": {"type": "string"}, "expected": {"type": "string"}}
    if has_code:
        common = {**common, "code": {"type": "string", "enum": _codes(api, status)}}
    items = [_record(common, optional)]
    if status is HTTPStatus.NOT_ACCEPTABLE and api.versioning.headers(version):
        # A refusal of the version contains the supported versions instead of a code.
        without_code = {name: kind for name, kind in common.items() if name != "code"}
        items.append(_record({**without_code, "max_version": {"type": "string"}, "min_version": {"type": "string"}}))
    item = items[0] if len(items) == 1 else {"anyOf": items}
    return _record({"errors": {"type": "array", "items": item, "minItems": 1, "maxItems": 1}})


def _record(fields: dict[str, JSONSchema], optional: Mapping[str, JSONSchema] = {}) -> JSONSchema:
    """Return the schema of an object with required and optional fields, which admits no further fields."""
    properties = {**fields, **optional}
    return {"type": "object", "properties": properties, "required": [*fields], "additionalProperties": False}


def _codes(api: Api, status: HTTPStatus) -> list[str]:
    """Return the codes of all failures with a status that the API can report."""
    shared = (kind for kind in _kinds(errors.Failure) if kind.__module__ in _SHARED)
    return sorted({kind.code for kind in (*shared, *api.failures) if failures.status_of(kind.__new__(kind)) == status})


def _kinds(kind: type[errors.Failure]) -> Iterator[type[errors.Failure]]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)
