"""The innermost WSGI application: from the environ of a request to the endpoint that serves it, and back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import routes

from placement import errors
from placement import microversion as mv
from placement.http import faults
from placement.http.endpoint import Endpoint
from placement.http.environ import ROUTE, SERVICE, VERSION
from placement.http.request import Request
from placement.http.service import Service

Methods = dict[str, Endpoint | tuple[Endpoint, ...]]
Table = dict[str, Methods]

#: Bytes of a body that is too large that are read all the same, and in one piece.
_THROWN_AWAY = 2**26
_PIECE = 2**16
#: Digits of the greatest Content-Length that means anything.
_LONGEST_LENGTH = 18


class Application:
    """Serves the routes of one table with one database and one configuration."""

    def __init__(self, table: Table, service: Service) -> None:
        self.service = service
        self._largest_body = service.conf.api.max_request_body_size
        self._longest_query = service.conf.api.max_query_length
        self._table = table
        self._mapper = routes.Mapper(controller_scan=None, explicit=True)
        for path in table:
            self._mapper.connect(path)
        self._mapper.create_regs([])  # now, and not by the first of several concurrent requests

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The reply of the endpoint, or the failure that kept it from one; a bug is for somebody further out."""
        try:
            self._check_size(environ)
            methods, path_values = self._match(environ)
            endpoint = _endpoint(methods, environ["REQUEST_METHOD"], environ[VERSION])
            environ[SERVICE] = self.service
            reply = endpoint(Request(environ), **path_values)
        except errors.Failure as failure:
            return faults.respond(failure, environ, start_response)
        if environ[VERSION] >= mv.CACHE_HEADERS:
            reply.add_cache_headers()
        answer: Iterable[bytes] = reply(environ, start_response)
        return answer

    def _check_size(self, environ: WSGIEnvironment) -> None:
        """Check the sizes of query and body, before the routing (docs: api-order-of-checks)."""
        if len(environ.get("QUERY_STRING", "")) > self._longest_query:
            raise errors.TooLong(most=self._longest_query)
        length = environ.get("CONTENT_LENGTH")
        if not length:
            return
        if not (length.isascii() and length.isdigit() and len(length) <= _LONGEST_LENGTH):
            raise faults.LengthNotInteger()
        if int(length) > self._largest_body:
            _throw_away(environ, int(length))
            raise errors.TooLarge(most=self._largest_body)
        if int(length) and not environ.get("CONTENT_TYPE"):
            raise faults.ContentTypeMissing()

    def _match(self, environ: WSGIEnvironment) -> tuple[Methods, dict[str, str]]:
        """The methods of the path, and the values in it."""
        try:
            path = environ["PATH_INFO"].encode("latin-1").decode()
        except UnicodeError:
            raise faults.NoSuchRoute() from None
        # No name holds a NUL or ends in a newline, which the patterns of the mapper would pass over.
        match = None if "\0" in path or path.endswith("\n") else self._mapper.routematch(path or "/")
        if match is None:
            raise faults.NoSuchRoute()
        path_values, route = match
        environ[ROUTE] = route.routepath
        return self._table[route.routepath], path_values


def _throw_away(environ: WSGIEnvironment, length: int) -> None:
    """Read a body that nobody wants, within reason: a client that is still sending would not see why it is refused."""
    left = min(length, _THROWN_AWAY)
    with contextlib.suppress(OSError):
        while left > 0 and (piece := environ["wsgi.input"].read(min(left, _PIECE))):
            left -= len(piece)


def _endpoint(methods: Methods, method: str, version: mv.Version) -> Endpoint:
    """The endpoint for the method; of several, the first that has not yet ended in this version."""
    found = methods.get(method)
    if found is None:
        raise faults.MethodNotAllowed(allow=", ".join(methods))
    if isinstance(found, Endpoint):
        return found
    return next(endpoint for endpoint in found if endpoint.until is None or version < endpoint.until)
