"""The innermost WSGI application: from the environ of a request to the endpoint that serves it, and back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

import routes

from placement import errors
from placement.db.writes import author
from placement.db.writes.author import Author
from placement.http import failures
from placement.http.api import Api, Headers
from placement.http.endpoint import Endpoint
from placement.http.environ import CONTEXT, GLOBAL_REQUEST_ID, PATH, REQUEST_ID, ROUTE, VERSION
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
        """Send the reply of the endpoint, or the failure that prevented one; other exceptions are raised.

        Every reply states its version, but for one that refuses a version (docs: api-microversions).
        """
        version_headers: Headers = ()
        try:
            version = environ[VERSION] = self._api.versioning.negotiate(environ)
            version_headers = self._api.versioning.headers(version)
            self._check_size(environ)
            endpoint, path_values = self._endpoint(environ, version)
            req = Request(environ)
            req.service, req.version, req.read = self._service, version, self._service.database.read
            if mounted_at := environ.get("SCRIPT_NAME"):
                req.mount_path = quote(mounted_at.encode("latin-1"))
            # Reads are in nobody's name.
            is_read = environ["REQUEST_METHOD"] == "GET"
            with contextlib.nullcontext() if is_read else author.acting_as(self._author(environ)):
                reply = endpoint(req, **path_values)
        except errors.Failure as failure:
            return failures.respond(failure, environ, start_response, version_headers)
        if version >= self._api.cache_headers_since:
            reply.add_cache_headers()
        reply.headerlist.extend(version_headers)
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

    def _endpoint(self, environ: WSGIEnvironment, version: Version) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint for the path and the method, and the values in the path."""
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
        methods = self._api.routes[route.routepath]
        found = methods.get(environ["REQUEST_METHOD"])
        if found is None:
            raise failures.MethodNotAllowed(allow=", ".join(methods))
        for endpoint in found if isinstance(found, tuple) else (found,):
            if endpoint.until is None or version < endpoint.until:
                break
        return endpoint, path_values


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
