"""An application whose responses are compared with its OpenAPI documents."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from placement import extension
from placement.http.api import Api
from placement.http.environ import API, ROUTE, VERSION
from placement.routes import PLACEMENT
from placement.version_history import Version

#: The APIs with a document; none if the extension that describes them is not installed.
APIS = (PLACEMENT, extension.installed_extensions()["v1"].api()) if "v1" in extension.installed_extensions() else ()
#: Statuses of operations added by a later version; some endpoints check the media types before the version.
_STATUSES_OF_LATER_VERSIONS = ("404", "405", "406", "415")
#: Headers that OpenAPI describes as content, and one for browsers only.
_CONTENT_HEADERS = {"content-length", "content-type", "x-content-type-options"}


class NotDescribed(AssertionError):
    """A response does not match the document of its API and version."""


class Described:
    """A WSGI application that compares each response of a described operation with the document.

    Raises:
        NotDescribed: In place of a response that does not match.

    Attributes:
        compared: The number of responses compared.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self.compared = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        heads: list[Any] = []
        pieces = self._application(environ, lambda *answer: heads.append(answer))
        content = b"".join(pieces)
        if close := getattr(pieces, "close", None):
            close()
        status, headers = heads[0][:2]
        self.compared += check(environ, status, _combine(headers), content)
        start_response(*heads[0])
        return [content]


def check(environ: dict[str, Any], status: str, headers: dict[str, str], content: bytes) -> bool:
    """Compare a response with the description of its operation, if there is one.

    Returns:
        Whether there is one.

    Raises:
        NotDescribed: Status, headers, content type or content differ, or an existing route is not described.
    """
    api, route, version = (environ.get(key) for key in (API, ROUTE, VERSION))
    if api not in APIS or route is None or version is None:
        return False
    # The path of a dry run contains a mark.
    path = route.partition("?")[0].removeprefix(api.prefix)
    operation = _operation(api, version, path, environ["REQUEST_METHOD"].lower())
    try:
        if operation is None:
            if status[:3] not in _STATUSES_OF_LATER_VERSIONS:
                raise NotDescribed("the operation is not described")
            return False
        _check_response(operation["responses"].get(status[:3]), headers, content)
    except NotDescribed as difference:
        text = f"{environ['REQUEST_METHOD']} {route} at {version}: {status}: {difference}\n{content[:2000].decode()}"
        raise NotDescribed(text) from None
    return True


def _combine(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers by lower-case name, with repeated ones combined (RFC 9110, 5.3)."""
    combined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        combined[key] = f"{combined[key]}, {value}" if key in combined else value
    return combined


def _check_response(response: dict[str, Any] | None, headers: dict[str, str], content: bytes) -> None:
    if response is None:
        raise NotDescribed("the status is not described")
    _check_headers(response["headers"], headers)
    described = response.get("content", {})
    content_type = headers.get("content-type", "").partition(";")[0]
    if bool(content) != bool(described) or (content and content_type not in described):
        raise NotDescribed(f"content of type {content_type!r}")
    mistake = _mistake(described[content_type]["schema"], content) if content_type == "application/json" else None
    if mistake:
        raise NotDescribed(mistake)


def _check_headers(described: dict[str, Any], headers: dict[str, str]) -> None:
    for name, header in described.items():
        if name not in headers:
            if header.get("required"):
                raise NotDescribed(f"no header {name}")
        elif not _validator(json.dumps(header["schema"], sort_keys=True)).is_valid(headers[name]):
            raise NotDescribed(f"header {name}: {headers[name]}")
    if unknown := headers.keys() - described.keys() - _CONTENT_HEADERS:
        raise NotDescribed(f"header {min(unknown)} is not described")


def _mistake(schema: Any, content: bytes) -> str | None:
    """Return the first mistake of a JSON text, if there is one."""
    validator = _validator(json.dumps(schema, sort_keys=True))
    errors = validator.iter_errors(json.loads(content))
    return next((f"{mistake.message} at {mistake.instance_path}" for mistake in errors), None)


@functools.cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator(json.loads(schema), validate_formats=True)


@functools.cache
def _operation(api: Api, version: Version, path: str, method: str) -> dict[str, Any] | None:
    """Return an operation, if it is described, closed against fields that only a later release may add.

    A document has dozens of operations, and resolving all of them takes longer than the requests of a test.
    """
    document = _document(api, version)
    return forbid_additional_properties(resolve_references(document["paths"].get(path, {}).get(method), document))


@functools.cache
def _document(api: Api, version: Version) -> dict[str, Any]:
    from placement.extensions.v1.openapi.document import describe

    return describe(api, version, label=str(version))


def resolve_references(part: Any, document: dict[str, Any]) -> Any:
    """Return a document, or part of it, with its references resolved."""
    if isinstance(part, list):
        return [resolve_references(item, document) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        _, *names = part["$ref"].split("/")
        return resolve_references(functools.reduce(operator.getitem, names, document), document)
    return {key: resolve_references(value, document) for key, value in part.items()}


def forbid_additional_properties(part: Any) -> Any:
    """Return the schemas of a document, or a schema, without additional properties."""
    if isinstance(part, list):
        return [forbid_additional_properties(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: False if key == "additionalProperties" and value is True else forbid_additional_properties(value)
        for key, value in part.items()
    }
