"""The id of a request under the second name that clients of this API know (docs: baremetal-versions)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.http.environ import REQUEST_ID
from placement.http.service import Service


class RequestIds:
    """Sends ``openstack-request-id`` beside the ``x-openstack-request-id`` that all replies have."""

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application."""

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append(("openstack-request-id", environ[REQUEST_ID]))
            return start_response(status, headers, *exc_info)

        return self._application(environ, start)
