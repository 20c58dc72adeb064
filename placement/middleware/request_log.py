"""Gives every request an id, and writes one line about it when it is answered."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from oslo_context.context import RequestContext, generate_request_id

from placement.reply import JSON
from placement.request import GLOBAL_REQUEST_ID, REQUEST_ID, VERSION, Environ, Service

LOG = logging.getLogger(__name__)

_GLOBAL_ID = re.compile(r"req-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


class RequestLog:
    """The outermost layer that always exists: ids, the Accept header, the log (contract 1.3, 1.9, 5.2)."""

    def __init__(self, application: Any, _service: Service) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """The answer of the application, with the id of the request in its headers."""
        request_id = environ[REQUEST_ID] = generate_request_id()
        global_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
        environ[GLOBAL_REQUEST_ID] = global_id if global_id and _GLOBAL_ID.fullmatch(global_id) else None
        if environ.get("HTTP_ACCEPT", "*/*").strip() in ("", "*/*"):
            environ["HTTP_ACCEPT"] = JSON  # everybody further in may rely on it
        # Log lines show the ids of the thread's latest context.
        RequestContext(request_id=request_id, global_request_id=environ[GLOBAL_REQUEST_ID], overwrite=True)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Starting request: %s", _request_line(environ))

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append(("x-openstack-request-id", request_id))
            if LOG.isEnabledFor(logging.INFO):
                _write(environ, status, headers)
            return start_response(status, headers, *exc_info)

        return self.application(environ, start)


def _write(environ: Environ, status: str, headers: list[tuple[str, str]]) -> None:
    length = next((value for name, value in headers if name.lower() == "content-length"), "-")
    LOG.info(
        "%s status: %s len: %s microversion: %s",
        _request_line(environ),
        status.partition(" ")[0],
        length,
        environ.get(VERSION, "-"),
    )


def _request_line(environ: Environ) -> str:
    """Who sent what: ``192.0.2.1 "GET /resource_providers?name=x"``."""
    path = quote((environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]).encode("latin-1"))
    query = environ.get("QUERY_STRING")
    uri = f"{path}?{query}" if query else path
    return f'{environ.get("REMOTE_ADDR", "-")} "{environ["REQUEST_METHOD"]} {uri}"'
