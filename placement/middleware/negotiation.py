"""Negotiates the version of a request (docs: api-microversions)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.http import failures
from placement.http.environ import API, VERSION
from placement.http.service import Service


class Negotiation:
    """The innermost layer of every API.  A reply that refuses a version states none."""

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application, with headers that state its version."""
        versioning = environ[API].versioning
        try:
            version = environ[VERSION] = versioning.negotiate(environ)
        except errors.Failure as failure:
            return failures.respond(failure, environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.extend(versioning.headers(version))
            return start_response(status, headers, *exc_info)

        return self._application(environ, start)
