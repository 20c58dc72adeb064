"""The service inside the process of its client: for tools and tests that want no server, no port and no token."""

from __future__ import annotations

import contextlib
import io
import urllib.parse
import wsgiref.util
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from wsgiref.types import WSGIEnvironment

import requests
import urllib3
import webob
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg
from oslo_context import context

from placement import deploy
from placement.middleware.authentication import Noauth2, authentication

_ENDPOINT = "http://placement.direct"


class PlacementDirect:
    """A context manager that gives a client of the service, and the service with it (docs: entry-points).

    ::

        with PlacementDirect(conf) as client:
            inventories = client.get(f"/resource_providers/{uuid}/inventories").json()

    The client is a keystoneauth adapter that returns the answer whatever its status, and may do what the token "admin"
    may with noauth2.  Policy, database and all else are as the configuration says, which is left as it is.
    """

    def __init__(self, conf: cfg.ConfigOpts, latest_microversion: bool = False) -> None:
        """:param latest_microversion: what requests speak that name no version themselves; otherwise it is 1.0."""
        self._conf = conf
        self._microversion = "latest" if latest_microversion else None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> adapter.Adapter:
        """The client; raises StartError if the service cannot start."""
        with contextlib.ExitStack() as opened:
            database = deploy.reached(self._conf)
            opened.callback(database.dispose)
            application = deploy.loadapp(self._conf, database, _LAYERS)
            connections = opened.enter_context(requests.Session())
            connections.mount("http://", Transport(application))
            self._open = opened.pop_all()
        return adapter.Adapter(
            session.Session(token_endpoint.Token(_ENDPOINT, "admin"), connections),
            service_type="placement",
            default_microversion=self._microversion,
            raise_exc=False,
        )

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The client is of no use any more."""
        self._open.close()


_LAYERS = tuple(Noauth2 if layer is authentication else layer for layer in deploy.LAYERS)


class Transport(requests.adapters.HTTPAdapter):
    """Takes requests to a WSGI application where others take them to a socket."""

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._application = application

    def send(self, request: requests.PreparedRequest, *_ignored: Any, **_options: Any) -> requests.Response:
        """The answer of the application, in the thread of whoever asks."""
        if self._application is None:
            raise requests.ConnectionError(f"{request.url}: the service was stopped", request=request)
        with _context_kept():
            status, headers, chunks = webob.Request(_environ(request)).call_application(self._application)
            content = b"".join(chunks)
        raw = urllib3.HTTPResponse(
            body=io.BytesIO(content),
            headers=headers,
            status=int(status[:3]),
            reason=status[4:],
            request_method=request.method,
            preload_content=False,
        )
        return self.build_response(request, raw)

    def close(self) -> None:
        """Answer no more."""
        self._application = None
        super().close()


def _environ(request: requests.PreparedRequest) -> WSGIEnvironment:
    """The request as a server would pass it on."""
    url = urllib.parse.urlsplit(str(request.url))
    content = _content(request.body)
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": urllib.parse.unquote_to_bytes(url.path).decode("latin-1"),
        "QUERY_STRING": url.query,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": url.netloc,
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": io.BytesIO(content),
    }
    for name, value in request.headers.items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value if isinstance(value, str) else value.decode("latin-1")
    environ.pop("HTTP_CONTENT_LENGTH", None)
    environ["CONTENT_LENGTH"] = str(len(content)) if content else ""
    environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE", "")
    wsgiref.util.setup_testing_defaults(environ)
    return environ


def _content(body: Any) -> bytes:
    """The bytes of what a client of ``requests`` may give as a body."""
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else b"".join(body)


@contextlib.contextmanager
def _context_kept() -> Iterator[None]:
    """The service makes each request's context the current one of the thread, which here belongs to somebody else."""
    before = context.get_current()
    try:
        yield
    finally:
        if before is not None:
            before.update_store()
        else:
            # Nobody offers to go back to none.
            vars(context._request_store).pop("context", None)
