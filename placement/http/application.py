"""The innermost WSGI application: from the environ of a request to the endpoint that serves it, and back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import routes

from placement import errors
from placement.db.writes import author
from placement.db.writes.author import Author
from placement.http import failures
from placement.http.api import Api, Methods
from placement.http.endpoint import Endpoint
from placement.http.environ import CONTEXT, GLOBAL_REQUEST_ID, PATH, REQUEST_ID, ROUTE, SERVICE, VERSION
from placement.http.request import Request
from placement.http.service import Service
from placement.version_history import Version

#: The most bytes of a refused body that are read, and how many at a time.
_MOST_DISCARDED = 2**26
_PIECE = 2**16
#: Digits of the greatest Content-Length.
_LONGEST_LENGTH = 18


class Application:
    """Serves the routes of one API."""

    def __init__(self, api: Api, service: Service) -> None:
        self._api = api
        self._service = service
        self._largest_body = service.conf.api.max_request_body_size
        self._longest_query = service.conf.api.max_query_length
        self._mapper = _mapper(api)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Send the reply of the endpoint, or the failure that prevented one; other exceptions are raised."""
        try:
            self._check_size(environ)
            methods, path_values = self._match(environ)
            endpoint = _endpoint(methods, environ["REQUEST_METHOD"], environ[VERSION])
            environ[SERVICE] = self._service
            with author.acting(self._author(environ)):
                reply = endpoint(Request(environ), **path_values)
        except errors.Failure as failure:
            return failures.respond(failure, environ, start_response)
        if environ[VERSION] >= self._api.cache_headers_since:
            reply.add_cache_headers()
        answer: Iterable[bytes] = reply(environ, start_response)
        return answer

    def _author(self, environ: WSGIEnvironment) -> Author:
        """Return in whose name the request writes."""
        context = environ.get(CONTEXT)
        return Author(
            request_id=environ.get(REQUEST_ID),
            global_request_id=environ.get(GLOBAL_REQUEST_ID),
            user=None if context is None else context.user_id,
            project=None if context is None else context.project_id,
            client=environ.get("REMOTE_ADDR"),
            api=self._api.name,
            route=f"{environ['REQUEST_METHOD']} {environ[ROUTE]}",
        )

    def _check_size(self, environ: WSGIEnvironment) -> None:
        """Check the sizes of query and body, before the routing (docs: api-order-of-checks)."""
        if len(environ.get("QUERY_STRING", "")) > self._longest_query:
            raise errors.TooLong(most=self._longest_query)
        length = environ.get("CONTENT_LENGTH")
        if not length:
            return
        if not (length.isascii() and length.isdigit() and len(length) <= _LONGEST_LENGTH):
            raise failures.LengthNotInteger()
        if int(length) > self._largest_body:
            _discard(environ, int(length))
            raise errors.TooLarge(most=self._largest_body)
        if self._api.strict_bodies and int(length) and not environ.get("CONTENT_TYPE"):
            raise failures.ContentTypeMissing()

    def _match(self, environ: WSGIEnvironment) -> tuple[Methods, dict[str, str]]:
        """Return the methods of the path, and the values in it."""
        try:
            path = (environ.get(PATH) or environ["PATH_INFO"]).encode("latin-1").decode()
        except UnicodeError:
            raise failures.NoSuchRoute() from None
        # No name holds a NUL or ends in a newline, but the patterns of the mapper would accept both.
        match = None if "\0" in path or path.endswith("\n") else self._mapper.routematch(path or "/")
        if match is None:
            raise failures.NoSuchRoute()
        path_values, route = match
        environ[ROUTE] = self._api.prefix + route.routepath
        return self._api.routes[route.routepath], path_values


@functools.cache
def _mapper(api: Api) -> routes.Mapper:
    """Return the mapper of the paths of an API.  It is slow to make, and tests make many applications."""
    mapper = routes.Mapper(controller_scan=None, explicit=True)
    for path in api.routes:
        mapper.connect(path, requirements=dict(api.patterns))
    mapper.create_regs([])  # now, and not by the first of several concurrent requests
    return mapper


def _discard(environ: WSGIEnvironment, length: int) -> None:
    """Read a refused body, within bounds: a client that is still sending would not see the reply."""
    remaining = min(length, _MOST_DISCARDED)
    with contextlib.suppress(OSError):
        while remaining > 0 and (piece := environ["wsgi.input"].read(min(remaining, _PIECE))):
            remaining -= len(piece)


def _endpoint(methods: Methods, method: str, version: Version) -> Endpoint:
    """Return the endpoint for the method; of several, the first that has not ended in this version."""
    found = methods.get(method)
    if found is None:
        raise failures.MethodNotAllowed(allow=", ".join(methods))
    if isinstance(found, Endpoint):
        return found
    return next(endpoint for endpoint in found if endpoint.until is None or version < endpoint.until)
