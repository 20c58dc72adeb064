"""Settles which version of the API a request speaks, and tells the client (docs: api-microversions)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement import microversion as mv
from placement.http import faults
from placement.http.environ import VERSION
from placement.http.service import Service

_HEADER = "openstack-api-version"


class Microversion:
    """A version that does not exist is refused here, in an answer that names no version."""

    def __init__(self, application: Any, _service: Service) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application, with the version it is in."""
        try:
            version = mv.negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))
        except errors.Failure as failure:
            return faults.respond(failure, environ, start_response)
        environ[VERSION] = version

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append((_HEADER, f"{mv.SERVICE_TYPE} {version}"))
            headers.append(("vary", _HEADER))
            return start_response(status, headers, *exc_info)

        return self.application(environ, start)
