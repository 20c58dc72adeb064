"""Request ids, and the request log: one line when a response begins.

The line has level INFO and the format of OpenStack Placement.  A slow request is logged at level WARNING, with the
timings of its parts at the end of the line.  Log records also carry the facts by name, for structured formatters
(``use_json``).
"""

from __future__ import annotations

import logging
import re
import threading
import time
import wsgiref.headers
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_context.context import RequestContext, generate_request_id

from placement import signals
from placement.http.environ import FAILURE, GLOBAL_REQUEST_ID, OUTCOME, REQUEST_ID, ROUTE, VERSION
from placement.http.response import JSON
from placement.http.service import Service

LOG = logging.getLogger(__name__)

#: Characters to escape: the quotation mark, which ends the quoted string, and all except visible ASCII characters.
_UNFIT = re.compile("[^!#-~]")
_GLOBAL_ID = re.compile(r"req-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


class RequestLog:
    """The layer of request ids, a default Accept header and the log (docs: api-accept, api-request-ids, layers)."""

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._application = application
        #: Seconds from which a request counts as slow; 0 disables the warning.
        self._slow: float = service.conf.api.slow_request_threshold
        if self._slow:
            TIMINGS.connect()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response, with the id of the request in its headers."""
        began = time.perf_counter()
        if self._slow:
            TIMINGS.begin()
        request_id = environ[REQUEST_ID] = generate_request_id()
        global_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID")
        environ[GLOBAL_REQUEST_ID] = global_id if global_id and _GLOBAL_ID.fullmatch(global_id) else None
        if environ.get("HTTP_ACCEPT", "*/*").strip() in ("", "*/*"):
            environ["HTTP_ACCEPT"] = JSON  # inner layers rely on it
        # Log lines show the ids of the thread's newest context.
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

        return self._application(environ, start)

    def _write(self, environ: WSGIEnvironment, status: str, headers: list[tuple[str, str]], seconds: float) -> None:
        """Log the line of a request."""
        # Waiting at the client's request does not count as slow.
        slow = 0 < self._slow <= seconds - TIMINGS.seconds("wait")
        level = logging.WARNING if slow else logging.INFO
        if not LOG.isEnabledFor(level):
            return
        length = wsgiref.headers.Headers(headers).get("content-length") or "-"
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
        if OUTCOME in environ:
            facts.update(environ[OUTCOME])
            line += "".join(f" {name}: {fact}" for name, fact in environ[OUTCOME].items())
        if slow:
            facts["parts"] = timings = TIMINGS.totals()
            line += f" seconds: {seconds:.3f} parts: {', '.join(map(_format_timing, timings.items())) or '-'}"
        LOG.log(level, line, extra={"extra": facts})


def _format_timing(timing: tuple[str, Mapping[str, float]]) -> str:
    """Return name, seconds and runs of a part: ``sql 0.412 in 9``; the number of runs is omitted if it is 1."""
    name, total = timing
    times = f" in {total['times']}" if total["times"] > 1 else ""
    return f"{name} {total['seconds']:.3f}{times}"


def _request_line(environ: WSGIEnvironment) -> str:
    """Return client, method and URI, escaped: ``192.0.2.1 "GET /usages?project_id=x"``."""
    path = quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1"))
    query = environ.get("QUERY_STRING")
    uri = f"{path}?{_UNFIT.sub(_escape, query)}" if query else path
    # REMOTE_ADDR may list several proxies between the client and the trusted one.
    client = environ.get("REMOTE_ADDR", "-").replace('"', "%22")
    return f'{client} "{_UNFIT.sub(_escape, environ["REQUEST_METHOD"])} {uri}"'


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


class _Timings(threading.local):
    """Seconds and number of runs of each part of the thread's current request."""

    def __init__(self) -> None:
        self._timings: dict[str, tuple[float, int]] = {}

    def connect(self) -> None:
        """Start collecting timings."""
        signals.timing.connect(self._add)
        signals.retried.connect(self._add_retry)

    def disconnect(self) -> None:
        """Stop collecting timings."""
        signals.timing.disconnect(self._add)
        signals.retried.disconnect(self._add_retry)

    def begin(self) -> None:
        """Discard the timings of the previous request."""
        self._timings = {}

    def seconds(self, name: str) -> float:
        """Return the seconds spent in a part; 0 if it did not run."""
        return self._timings.get(name, (0.0, 0))[0]

    def totals(self) -> dict[str, dict[str, float | int]]:
        """Return ``{"sql": {"seconds": 0.7, "times": 9}, ...}``, in the order in which the parts first ended."""
        return {
            name: {"seconds": round(seconds, 6), "times": times} for name, (seconds, times) in self._timings.items()
        }

    def _add(self, name: str, seconds: float) -> None:
        total, times = self._timings.get(name, (0.0, 0))
        self._timings[name] = (total + seconds, times + 1)

    def _add_retry(self, cause: signals.RetryCause) -> None:
        self._add(f"retry after {cause}", 0.0)


TIMINGS = _Timings()
