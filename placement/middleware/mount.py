"""The entrance of all APIs: finds the API of a path, refuses what is not HTTP, and adds the headers of every reply.

Some requests are not HTTP although a web server passes them on, and some the server has cut.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
import wsgiref.headers
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.errors import StartError
from placement.http.api import Api, Headers
from placement.http.environ import API
from placement.http.failures import NotWellFormed, respond
from placement.http.service import Service
from placement.middleware.health import PATH as HEALTH
from placement.middleware.health import Health
from placement.middleware.lease_sweeps import LeaseSweeps

#: On every reply: a browser does not take another document for a page.
_HEADERS: Headers = (("x-content-type-options", "nosniff"),)

#: A header may hold a tab.
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f]")
_PROTOCOL = re.compile(r"HTTP/\d(\.\d)?", re.ASCII)
_METHOD = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Every server passes these on; uWSGI leaves out those for which it has no room.
_ALWAYS_PASSED = frozenset(("PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"))


class Mount:
    """Leaves the API in the environ, and moves its prefix from PATH_INFO to SCRIPT_NAME.

    So all layers further in see the paths of the API, its links begin where it is mounted, and a failure has its form.
    """

    def __init__(
        self,
        application: WSGIApplication,
        service: Service,
        check_host: Callable[[WSGIEnvironment], None] | None = None,
    ) -> None:
        """Take the application.

        Args:
            check_host: Raises a Failure for a request that names a host which is not served; None if all are.

        Raises:
            StartError: Two APIs have the same prefix.  Exactly one must have none.
        """
        self._application = application
        self._health = Health(application, service)
        self._check_host = check_host
        self._longest_query = service.conf.api.max_query_length
        by_prefix: dict[str, Api] = {}
        for api in service.apis:
            if other := by_prefix.get(api.prefix):
                raise StartError(f'The APIs {other.name} and {api.name} have the same prefix, "{api.prefix}".')
            by_prefix[api.prefix] = api
        self._root = by_prefix.pop("")
        # /a/b goes before /a.
        self._prefixed = sorted(by_prefix.values(), key=lambda api: len(api.prefix), reverse=True)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application, or of the health checks.

        400 for control characters, 414 for a path or a query that was cut.
        """
        environ[API] = self._root
        path = environ.get("PATH_INFO", "")  # uWSGI leaves out what it has no room for
        for api in self._prefixed:
            if path.startswith(api.prefix) and path[len(api.prefix) :][:1] in ("", "/"):
                environ[API] = api
                environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + api.prefix
                environ["PATH_INFO"] = path[len(api.prefix) :]
                break
        added = (*environ[API].headers, *_HEADERS)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            sent = wsgiref.headers.Headers(headers)
            for name, value in added:
                sent.setdefault(name, value)
            return start_response(status, sent.items(), *exc_info)

        try:
            _check_syntax(environ, self._longest_query)
            if self._check_host:
                self._check_host(environ)
        except errors.Failure as failure:
            return respond(failure, environ, start)
        if environ["PATH_INFO"] == HEALTH and self._health.is_asked(environ):
            return self._health(environ, start)
        return self._application(environ, start)


def _check_syntax(environ: WSGIEnvironment, longest_query: int) -> None:
    """Raise a failure if the request is not HTTP, or was cut."""
    failure: errors.Failure | None = None
    if not environ.keys() >= _ALWAYS_PASSED:
        failure = errors.TooLong(most=longest_query)
    else:
        sent = environ["QUERY_STRING"] + (environ.get("CONTENT_TYPE") or "")
        for name, value in environ.items():
            if name.startswith("HTTP_"):
                sent += value
        sound = _METHOD.fullmatch(environ["REQUEST_METHOD"]) and _PROTOCOL.fullmatch(environ["SERVER_PROTOCOL"])
        if not sound or _CONTROL.search(sent):
            failure = NotWellFormed()
    if failure is not None:
        environ.setdefault("PATH_INFO", "")
        _hang_up(environ)
        raise failure


def _hang_up(environ: WSGIEnvironment) -> None:
    """End the connection where uWSGI would begin the reply with what the client sent instead of the HTTP version.

    The socket is not closed: another connection could get its number before uWSGI writes the reply.
    """
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not _PROTOCOL.fullmatch(environ.get("SERVER_PROTOCOL", "HTTP/1.0")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(uwsgi.connection_fd())) as connection:
            connection.shutdown(socket.SHUT_RDWR)


class Dispatch:
    """The innermost of the shared layers: passes a request to the application of its API."""

    def __init__(self, applications: dict[str, WSGIApplication], sweeps: LeaseSweeps) -> None:
        """Take the applications by the prefix of their API, and what follows a reply."""
        self._applications = applications
        self._sweeps = sweeps

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the API that ``Mount`` has found."""
        reply = self._applications[environ[API].prefix](environ, start_response)
        return reply if time.monotonic() < self._sweeps.next_at else self._sweeps.after(reply)
