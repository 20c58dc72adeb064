"""The entry point of all APIs: finds the API of a path, refuses malformed requests, and adds common headers.

Web servers pass on some requests that are not valid HTTP, and some that they have truncated.
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

#: Headers of every response: browsers must not guess that a document is a page.
_HEADERS: Headers = (("x-content-type-options", "nosniff"),)

#: Control characters except the tab, which headers may contain.
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f]")
_PROTOCOL = re.compile(r"HTTP/\d(\.\d)?", re.ASCII)
_METHOD = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Keys that every server sets; uWSGI omits keys that do not fit in its buffer.
_ALWAYS_PASSED = frozenset(("PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"))


class Mount:
    """The layer that stores the API of a request in the environ, and moves its prefix to SCRIPT_NAME.

    Inner layers then see paths relative to the API, links start with its prefix, and failures are rendered in its form.
    """

    def __init__(
        self,
        application: WSGIApplication,
        service: Service,
        check_host: Callable[[WSGIEnvironment], None] | None = None,
    ) -> None:
        """Index the APIs of the service by prefix; exactly one must have the empty prefix.

        Args:
            application: The next layer.
            service: The service, with its APIs.
            check_host: A function that raises a Failure for a host that is not served; None if all hosts are served.

        Raises:
            StartError: Two APIs have the same prefix.
        """
        self._application = application
        self._health = Health(application, service)
        self._check_host = check_host
        self._max_query_length = service.conf.api.max_query_length
        by_prefix: dict[str, Api] = {}
        for api in service.apis:
            if namesake := by_prefix.get(api.prefix):
                raise StartError(f'The APIs {namesake.name} and {api.name} have the same prefix, "{api.prefix}".')
            by_prefix[api.prefix] = api
        self._root = by_prefix.pop("")
        # Longest prefix first: /a/b before /a.
        self._prefixed = sorted(by_prefix.values(), key=lambda api: len(api.prefix), reverse=True)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the response of the application or of the health checks.

        The status is 400 for malformed requests, 403 for hosts that are not served, and 414 if the server has truncated
        the path or the query.
        """
        environ[API] = self._root
        path = environ.get("PATH_INFO", "")  # may be missing, see _ALWAYS_PASSED
        for api in self._prefixed:
            if path.startswith(api.prefix) and path[len(api.prefix) :][:1] in ("", "/"):
                environ[API] = api
                environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + api.prefix
                environ["PATH_INFO"] = path[len(api.prefix) :]
                break
        defaults = (*environ[API].headers, *_HEADERS)

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            response_headers = wsgiref.headers.Headers(headers)
            for name, value in defaults:
                response_headers.setdefault(name, value)
            return start_response(status, response_headers.items(), *exc_info)

        try:
            _check_syntax(environ, self._max_query_length)
            if self._check_host:
                self._check_host(environ)
        except errors.Failure as failure:
            return respond(failure, environ, start)
        if environ["PATH_INFO"] == HEALTH and self._health.applies(environ):
            return self._health(environ, start)
        return self._application(environ, start)


def _check_syntax(environ: WSGIEnvironment, max_query_length: int) -> None:
    """Raise NotWellFormed if the request is not valid HTTP, and TooLong if the server has truncated it."""
    failure: errors.Failure | None = None
    if not environ.keys() >= _ALWAYS_PASSED:
        failure = errors.TooLong(limit=max_query_length)
    else:
        text = environ["QUERY_STRING"] + (environ.get("CONTENT_TYPE") or "")
        for name, value in environ.items():
            if name.startswith("HTTP_"):
                text += value
        valid = _METHOD.fullmatch(environ["REQUEST_METHOD"]) and _PROTOCOL.fullmatch(environ["SERVER_PROTOCOL"])
        if not valid or _CONTROL.search(text):
            failure = NotWellFormed()
    if failure is not None:
        environ.setdefault("PATH_INFO", "")
        _hang_up(environ)
        raise failure


def _hang_up(environ: WSGIEnvironment) -> None:
    """Shut the connection down if uWSGI would start the response with the client's text instead of an HTTP version.

    The socket is not closed: another connection could reuse its file descriptor before uWSGI writes the response.
    """
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not _PROTOCOL.fullmatch(environ.get("SERVER_PROTOCOL", "HTTP/1.0")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(uwsgi.connection_fd())) as connection:
            connection.shutdown(socket.SHUT_RDWR)


class Dispatch:
    """The innermost shared layer, which passes a request to the application of its API."""

    def __init__(self, applications: dict[str, WSGIApplication], sweeps: LeaseSweeps) -> None:
        """Keep the applications by prefix of their API, and the lease sweeps to run after responses."""
        self._applications = applications
        self._sweeps = sweeps

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the response of the API that ``Mount`` has found."""
        chunks = self._applications[environ[API].prefix](environ, start_response)
        return chunks if time.monotonic() < self._sweeps.next_at else self._sweeps.add_to(chunks)
