"""Gives every request an id, and writes one line about it when it is answered.

The line is at level INFO, in the form that operators of this API know.  A request that took longer than it should is at
level WARNING, and its line goes on with what took the time.  Both carry the same facts by name, for formatters that
write them so (``use_json``).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_context.context import RequestContext, generate_request_id

from placement import signals
from placement.http.environ import FAILURE, GLOBAL_REQUEST_ID, REQUEST_ID, ROUTE, VERSION
from placement.http.response import JSON
from placement.http.service import Service
from placement.middleware.timings import TIMINGS

LOG = logging.getLogger(__name__)

_UNFIT = re.compile("[^!#-~]")
_GLOBAL_ID = re.compile(r"req-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


class RequestLog:
    """Sets ids and the Accept header, and writes the log (docs: api-accept, api-request-ids, layers)."""

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        #: Seconds from which on a request is slow; 0: none is.
        self._slow: float = service.conf.api.slow_request_threshold
        if self._slow:
            TIMINGS.connect()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application, with the id of the request in its headers."""
        began = time.perf_counter()
        if self._slow:
            TIMINGS.begin()
        request_id = environ[REQUEST_ID] = generate_request_id()
        global_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
        environ[GLOBAL_REQUEST_ID] = global_id if global_id and _GLOBAL_ID.fullmatch(global_id) else None
        if environ.get("HTTP_ACCEPT", "*/*").strip() in ("", "*/*"):
            environ["HTTP_ACCEPT"] = JSON  # all layers further in may rely on it
        # Log lines show the ids of the thread's latest context.
        RequestContext(request_id=request_id, global_request_id=environ[GLOBAL_REQUEST_ID], overwrite=True)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("Starting request: %s", _request_line(environ))

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append(("x-openstack-request-id", request_id))
            seconds = time.perf_counter() - began
            if signals.answered.connected:
                signals.answered(environ, int(status[:3]), seconds)
            self._write(environ, status, headers, seconds)
            return start_response(status, headers, *exc_info)

        return self.application(environ, start)

    def _write(self, environ: WSGIEnvironment, status: str, headers: list[tuple[str, str]], seconds: float) -> None:
        """Write the line of a request that is answered."""
        slow = 0 < self._slow <= seconds
        level = logging.WARNING if slow else logging.INFO
        if not LOG.isEnabledFor(level):
            return
        length = next((value for name, value in headers if name.lower() == "content-length"), "-")
        code, version = status.partition(" ")[0], environ.get(VERSION, "-")
        line = f"{_request_line(environ)} status: {code} len: {length} microversion: {version}"
        facts = {
            "client": environ.get("REMOTE_ADDR"),
            "method": environ["REQUEST_METHOD"],
            "route": environ.get(ROUTE),
            "status": int(code),
            "length": int(length) if length.isdigit() else None,
            "microversion": str(version),
            "seconds": round(seconds, 6),
        }
        if FAILURE in environ:
            facts["failure"] = environ[FAILURE].__name__
        if slow:
            facts["parts"] = parts = TIMINGS.totals()
            line += f" seconds: {seconds:.3f} parts: {', '.join(map(_in_words, parts.items())) or '-'}"
        LOG.log(level, line, extra={"extra": facts})


def _in_words(part: tuple[str, Mapping[str, float]]) -> str:
    """``sql 0.412 in 9``; without the number for what was done once."""
    name, spent = part
    times = f" in {spent['times']}" if spent["times"] > 1 else ""
    return f"{name} {spent['seconds']:.3f}{times}"


def _request_line(environ: WSGIEnvironment) -> str:
    """Who sent what: ``192.0.2.1 "GET /resource_providers?name=x"``; nothing that a client sends ends it early."""
    path = quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1"))
    query = environ.get("QUERY_STRING")
    uri = f"{path}?{_quoted(query)}" if query else path
    # Between a client and a proxy that is believed there may be others, all of which are named.
    client = environ.get("REMOTE_ADDR", "-").replace('"', "%22")
    return f'{client} "{_quoted(environ["REQUEST_METHOD"])} {uri}"'


def _quoted(text: str) -> str:
    """The text as it was sent, but for what may not be in a line between quotes."""
    return _UNFIT.sub(lambda found: f"%{ord(found[0]):02X}", text)
