"""Refuses requests that are not HTTP although a web server passes them on, and requests that the server has cut."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.http import failures
from placement.http.service import Service

#: A header may hold a tab.
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f]")
_PROTOCOL = re.compile(r"HTTP/\d(\.\d)?", re.ASCII)
_METHOD = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Every server passes these on; uWSGI leaves out those for which it has no room.
_ALWAYS_PASSED = frozenset(("PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"))


class HttpSyntax:
    """Runs before the layers that make headers or log lines from a request."""

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._application = application
        self._longest_query = service.conf.api.max_query_length

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; 400 for control characters, 414 for a path or query that was cut."""
        if failure := self._failure(environ):
            environ.setdefault("PATH_INFO", "")
            _hang_up(environ)
            return failures.respond(failure, environ, start_response)
        return self._application(environ, start_response)

    def _failure(self, environ: WSGIEnvironment) -> errors.Failure | None:
        if not environ.keys() >= _ALWAYS_PASSED:
            return errors.TooLong(most=self._longest_query)
        sent = [value for name, value in environ.items() if name.startswith("HTTP_")]
        sent += environ["QUERY_STRING"], environ.get("CONTENT_TYPE") or ""
        sound = _METHOD.fullmatch(environ["REQUEST_METHOD"]) and _PROTOCOL.fullmatch(environ["SERVER_PROTOCOL"])
        if not sound or _CONTROL.search("".join(sent)):
            return failures.NotWellFormed()
        return None


def _hang_up(environ: WSGIEnvironment) -> None:
    """End the connection where uWSGI would begin the reply with what the client sent instead of the HTTP version.

    The socket is not closed: another connection could get its number before uWSGI writes the reply.
    """
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not _PROTOCOL.fullmatch(environ.get("SERVER_PROTOCOL", "HTTP/1.0")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(uwsgi.connection_fd())) as connection:
            connection.shutdown(socket.SHUT_RDWR)
