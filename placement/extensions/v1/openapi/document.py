"""The OpenAPI document of an API at one version."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from placement.extensions.v1.openapi import examples, parameters, replies
from placement.extensions.v1.openapi.components import Components
from placement.extensions.v1.openapi.examples import Example
from placement.http.api import Api, Methods
from placement.http.endpoint import Endpoint
from placement.http.response import JSON
from placement.version_history import Version

JSONObject = dict[str, Any]

#: Ways to authenticate; the configuration of the service decides which of them it accepts.
_SECURITY: dict[str, JSONObject] = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Auth-Token",
        "description": "A token of the Identity service, or any text if the service runs with noauth2.",
    },
    "basic": {"type": "http", "scheme": "basic", "description": "A user of the service's own password file."},
}


def describe(api: Api, version: Version, *, label: str) -> JSONObject:
    """Return the OpenAPI document of an API, without ``servers``.

    Args:
        api: The API; the paths in the document are relative to its prefix.
        version: The version of the API; ``OLDEST`` for an API without versions.
        label: The version of the document: the version of the API, or of the service for an API without versions.
    """
    paths: JSONObject = {}
    components = Components()
    failure = functools.cache(functools.partial(replies.failure, api, version, components))
    for path, methods in api.routes.items():
        for method, endpoint in endpoints_at(methods, version):
            relevant = examples.examples_of(api, version, method, path, endpoint)
            operation = _operation(api, version, path, endpoint, relevant, components)
            name = _class_name(operation["operationId"])
            statuses = sorted(replies.failure_statuses(api, version, path, method, endpoint))
            operation["responses"] = {
                **replies.success_responses(api, version, endpoint, relevant, name, components),
                **{str(status.value): failure(status) for status in statuses},
                **replies.conflict(api, version, endpoint, name, components),
            }
            paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": api.name, "version": label, "description": _introduction(api, version)},
        "paths": paths,
        "components": {"securitySchemes": _SECURITY, **components.render()},
    }


def _introduction(api: Api, version: Version) -> str:
    if not api.versioning.headers(version):
        return "This API has no versions: routes, parameters and fields may be added, but keep their meaning."
    return f"Version {version}.  Requests select it by a header; other versions have their own documents."


def endpoints_at(methods: Methods, version: Version) -> Iterator[tuple[str, Endpoint]]:
    """Yield each method that a path supports in a version, with its endpoint."""
    for method, served in methods.items():
        for endpoint in served if isinstance(served, tuple) else (served,):
            if endpoint.since <= version and (endpoint.until is None or version < endpoint.until):
                yield method, endpoint


def _operation(
    api: Api, version: Version, path: str, endpoint: Endpoint, relevant: list[Example], components: Components
) -> JSONObject:
    noun = endpoint.handler.__module__.rpartition(".")[2]
    sentence = (endpoint.handler.__doc__ or "").partition("\n")[0]
    operation: JSONObject = {
        "operationId": f"{noun}.{endpoint.handler.__name__}",
        "summary": sentence.rstrip("."),
        "tags": [noun],
        "parameters": [
            *parameters.of_versions(api, version),
            *parameters.of_path(path, relevant),
            *parameters.of_query(endpoint, version, relevant),
            *parameters.of_dry_runs(endpoint),
        ],
    }
    if endpoint.policy:
        operation["description"] = f"{sentence} Requires the policy rule `{endpoint.policy}`."
        operation["x-policy-rule"] = endpoint.policy
    if endpoint.body is not None:
        name = f"{_class_name(operation['operationId'])}Body"
        content: JSONObject = {"schema": components.add_schema(name, endpoint.body.render(version))}
        if bodies := {example.name: {"value": example.body} for example in relevant}:
            content["examples"] = bodies
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    operation["security"] = [] if path in api.open_paths else [{name: []} for name in _SECURITY]
    return operation


def _class_name(operation_id: str) -> str:
    """Return the class name of an operation, such as ``ResourceClassShow``."""
    return "".join(word.capitalize() for word in operation_id.replace(".", "_").split("_"))
