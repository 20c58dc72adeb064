"""The error documents of the Bare Metal API: JSON within a JSON string (docs: baremetal-errors)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.extensions.baremetal.versioning import VersionUnknown, VersionUnreadable
from placement.http.failures import MethodNotAllowed, NoSuchRoute
from placement.http.response import JSON

#: Failures raised before a handler runs, reported in the second form.  Handlers raise subclasses of the first two.
_BEFORE_HANDLERS = (NoSuchRoute, MethodNotAllowed, VersionUnknown, VersionUnreadable)

#: Maximum length of a sentence, in characters: it may quote a request of megabytes.
_MAX_LENGTH = 24_000


class Envelope:
    """``{"error_message": "<JSON text>"}`` in two forms: first for handlers, second for routing and versions."""

    def render(self, failure: errors.Failure, status: HTTPStatus, _environ: WSGIEnvironment) -> tuple[str, bytes]:
        """Return JSON, regardless of the Accept header."""
        sentence = failure.line
        if len(sentence) > _MAX_LENGTH:
            sentence = f"{sentence[:_MAX_LENGTH]} ..."
        inner: dict[str, Any]
        if type(failure) in _BEFORE_HANDLERS:
            inner = {"code": status.value, "title": status.phrase, "description": sentence}
        else:
            fault = "Server" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "Client"
            inner = {"faultcode": fault, "faultstring": sentence, "debuginfo": None}
        return JSON, json.dumps({"error_message": json.dumps(inner)}).encode()
