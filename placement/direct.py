"""The service in the process of its client: for tools and tests, without a server, a port and a token."""

from __future__ import annotations

import contextlib
import io
import urllib.parse
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import requests
import urllib3
import webob
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg
from oslo_context import context

from placement import deploy
from placement.middleware.authentication import Authentication, with_noauth2

_ENDPOINT = "http://placement.direct"


class PlacementDirect:
    """A context manager that returns a client of the service, and runs the service with it (docs: entry-points).

    ::

        with PlacementDirect(conf) as client:
            inventories = client.get(f"/resource_providers/{uuid}/inventories").json()

    The client is a keystoneauth adapter that returns replies of every status, and is the user of the token
    "admin" with noauth2.  Policy, database and everything else are as configured; the configuration is not changed.
    """

    def __init__(self, conf: cfg.ConfigOpts, latest_microversion: bool = False) -> None:
        """Keep the configuration.

        Args:
            latest_microversion: Whether requests without a version use the latest one, instead of 1.0.
        """
        self._conf = conf
        self._microversion = "latest" if latest_microversion else None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> adapter.Adapter:
        """Return the client; raises StartError if the service cannot start."""
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
        """Stop the service; the client raises ConnectionError from now on."""
        self._open.close()


_LAYERS = tuple(with_noauth2 if layer is Authentication else layer for layer in deploy.LAYERS)


class Transport(requests.adapters.HTTPAdapter):
    """Sends requests to a WSGI application instead of a socket."""

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._application = application

    def send(self, request: requests.PreparedRequest, *_ignored: Any, **_options: Any) -> requests.Response:
        """Return the reply of the application, which runs in the thread of the caller."""
        if self._application is None:
            raise requests.ConnectionError(f"{request.url}: the service was stopped", request=request)
        with _context_kept():
            status, headers, chunks = _as_served(request).call_application(self._application)
            try:
                content = b"".join(chunks)
            finally:
                if close := getattr(chunks, "close", None):
                    close()
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
        """Refuse requests from now on."""
        self._application = None
        super().close()


def _as_served(request: requests.PreparedRequest) -> webob.Request:
    """Return the request as a server would pass it on."""
    url = str(request.url)
    # WebOb would add the port to the host.
    environ = {
        "HTTP_HOST": urllib.parse.urlsplit(url).netloc,
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    headers = {
        name: value if isinstance(value, str) else value.decode("latin-1") for name, value in request.headers.items()
    }
    passed = webob.Request.blank(url, environ, headers=headers, method=request.method)
    if content := _content(request.body):
        passed.body = content
    return passed


def _content(body: Any) -> bytes:
    """Return the bytes of a body as a caller of ``requests`` may give it."""
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else b"".join(body)


@contextlib.contextmanager
def _context_kept() -> Iterator[None]:
    """Put back the context of the thread: the service sets its own, but the thread is the caller's."""
    before = context.get_current()
    try:
        yield
    finally:
        if before is not None:
            before.update_store()
        else:
            # oslo.context has no call to remove it.
            vars(context._request_store).pop("context", None)
