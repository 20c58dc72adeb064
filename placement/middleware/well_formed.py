"""Refuses what is no request of HTTP although a web server passes it on, or what the web server has cut."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement.http import faults
from placement.http.service import Service
from placement.middleware.refusal import refuse

#: A tab may be in a header.
_CONTROL = re.compile("[\0-\x08\x0a-\x1f\x7f]")
_PROTOCOL = re.compile(r"HTTP/\d(\.\d)?", re.ASCII)
_METHOD = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Of these each server passes on all, and uWSGI those for which it has room.
_WHOLE = frozenset(("PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL"))


class WellFormed:
    """Stands before all that makes headers or lines of the log from a request."""

    def __init__(self, application: Any, service: Service) -> None:
        self.application = application
        self._longest_query = service.conf.api.max_query_length

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application; 400 for control characters, 414 for a query or a path that is not there."""
        if failure := self._failure(environ):
            environ.setdefault("PATH_INFO", "")
            _hang_up(environ)
            return refuse(failure, environ, start_response)
        answer: Iterable[bytes] = self.application(environ, start_response)
        return answer

    def _failure(self, environ: WSGIEnvironment) -> errors.Failure | None:
        if not environ.keys() >= _WHOLE:
            return errors.TooLong(most=self._longest_query)
        sent = [value for name, value in environ.items() if name.startswith("HTTP_")]
        sent += environ["QUERY_STRING"], environ.get("CONTENT_TYPE") or ""
        sound = _METHOD.fullmatch(environ["REQUEST_METHOD"]) and _PROTOCOL.fullmatch(environ["SERVER_PROTOCOL"])
        if not sound or _CONTROL.search("".join(sent)):
            return faults.NotWellFormed()
        return None


def _hang_up(environ: WSGIEnvironment) -> None:
    """End the connection where uWSGI would begin the reply with what the client sent in place of the version of HTTP.

    It is not closed, for another connection could get its number before uWSGI writes the reply.
    """
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not _PROTOCOL.fullmatch(environ.get("SERVER_PROTOCOL", "HTTP/1.0")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(uwsgi.connection_fd())) as connection:
            connection.shutdown(socket.SHUT_RDWR)
