"""The innermost WSGI application, which routes a request to its endpoint."""

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

#: Maximum number of bytes read of a refused body: in total, and per read.
_MAX_DISCARDED = 2**26
_CHUNK_SIZE = 2**16
#: Maximum number of digits of a Content-Length.
_MAX_LENGTH_DIGITS = 18


class Application:
    """The WSGI application that serves the routes of one API."""

    def __init__(self, api: Api, service: Service) -> None:
        self._api = api
        self._service = service
        self._max_body_size = service.conf.api.max_request_body_size
        self._max_query_length = service.conf.api.max_query_length
        self._mapper = _mapper(api)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Send the endpoint's response or an error document for a Failure; other exceptions propagate.

        Every response states its version, except one that refuses the requested version (docs: api-microversions).
        """
        version_headers: Headers = ()
        try:
            version = environ[VERSION] = self._api.versioning.negotiate(environ)
            version_headers = self._api.versioning.headers(version)
            self._check_size(environ)
            endpoint, path_values = self._endpoint(environ, version)
            req = Request(environ)
            req.service, req.version, req.read = self._service, version, self._service.database.read
            if script_name := environ.get("SCRIPT_NAME"):
                req.mount_path = quote(script_name.encode("latin-1"))
            is_read = environ["REQUEST_METHOD"] == "GET"  # only writes are recorded with an author
            with contextlib.nullcontext() if is_read else author.acting_as(self._author(environ)):
                reply = endpoint(req, **path_values)
        except errors.Failure as failure:
            return failures.respond(failure, environ, start_response, version_headers)
        if version >= self._api.cache_headers_since:
            reply.add_cache_headers()
        reply.headerlist.extend(version_headers)
        chunks: Iterable[bytes] = reply(environ, start_response)
        return chunks

    def _author(self, environ: WSGIEnvironment) -> Author:
        """Return the author that the history records for the request's writes."""
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
        """Check the sizes of query string and body, before routing (docs: api-order-of-checks)."""
        if len(environ.get("QUERY_STRING", "")) > self._max_query_length:
            raise errors.TooLong(limit=self._max_query_length)
        length = environ.get("CONTENT_LENGTH")
        if not length:
            return
        if not (length.isascii() and length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS):
            raise failures.LengthNotInteger()
        if int(length) > self._max_body_size:
            _discard(environ, int(length))
            raise errors.TooLarge(limit=self._max_body_size)
        if self._api.strict_bodies and int(length) and not environ.get("CONTENT_TYPE"):
            raise failures.ContentTypeMissing()

    def _endpoint(self, environ: WSGIEnvironment, version: Version) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint for the request's path and method, and the path values."""
        try:
            path = (environ.get(PATH) or environ["PATH_INFO"]).encode("latin-1").decode()
        except UnicodeError:
            raise failures.NoSuchRoute() from None
        # Names contain no NUL and no trailing newline, but the mapper's patterns would accept both.
        match = None if "\0" in path or path.endswith("\n") else self._mapper.routematch(path or "/")
        if match is None:
            raise failures.NoSuchRoute()
        path_values, route = match
        environ[ROUTE] = self._api.prefix + route.routepath
        methods = self._api.routes[route.routepath]
        endpoints = methods.get(environ["REQUEST_METHOD"])
        if endpoints is None:
            raise failures.MethodNotAllowed(allow=", ".join(methods))
        for endpoint in endpoints if isinstance(endpoints, tuple) else (endpoints,):
            if endpoint.until is None or version < endpoint.until:
                break
        return endpoint, path_values


@functools.cache
def _mapper(api: Api) -> routes.Mapper:
    """Return the mapper of an API's paths.  Cached: building it is slow, and tests create many applications."""
    mapper = routes.Mapper(controller_scan=None, explicit=True)
    for path in api.routes:
        mapper.connect(path, requirements=dict(api.patterns))
    mapper.create_regs([])  # otherwise the first requests would do it concurrently
    return mapper


def _discard(environ: WSGIEnvironment, length: int) -> None:
    """Read and drop a refused body, up to a limit: a client that is still sending would not see the response."""
    remaining = min(length, _MAX_DISCARDED)
    with contextlib.suppress(OSError):
        while remaining > 0 and (chunk := environ["wsgi.input"].read(min(remaining, _CHUNK_SIZE))):
            remaining -= len(chunk)
