"""The service inside the process of its client, for tools and tests that have no server, port or token."""

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
    """A context manager that runs the service and returns a client for it (docs: entry-points).

    ::

        with PlacementDirect(conf) as client:
            inventories = client.get(f"/resource_providers/{uuid}/inventories").json()

    The client is a keystoneauth adapter.  It returns responses of every status instead of raising, and authenticates as
    the noauth2 user "admin".  Policy, database and everything else are as configured.
    """

    def __init__(self, conf: cfg.ConfigOpts, latest_microversion: bool = False) -> None:
        """Prepare the service, which starts on entry.

        Args:
            conf: The configuration; it is not changed.
            latest_microversion: Whether requests without a version use the latest one instead of 1.0.
        """
        self._conf = conf
        self._microversion = "latest" if latest_microversion else None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> adapter.Adapter:
        """Return the client; raise StartError if the service cannot start."""
        with contextlib.ExitStack() as stack:
            database = deploy.connected_database(self._conf)
            stack.callback(database.dispose)
            application = deploy.loadapp(self._conf, database, _LAYERS)
            connections = stack.enter_context(requests.Session())
            connections.mount("http://", Transport(application))
            self._stack = stack.pop_all()
        return adapter.Adapter(
            session.Session(token_endpoint.Token(_ENDPOINT, "admin"), connections),
            service_type="placement",
            default_microversion=self._microversion,
            raise_exc=False,
        )

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the service; further requests of the client raise ConnectionError."""
        self._stack.close()


_LAYERS = tuple(with_noauth2 if layer is Authentication else layer for layer in deploy.LAYERS)


class Transport(requests.adapters.HTTPAdapter):
    """A ``requests`` adapter that sends requests to a WSGI application instead of a socket."""

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._application = application

    def send(self, request: requests.PreparedRequest, *_ignored: Any, **_options: Any) -> requests.Response:
        """Return the response of the application, which runs in the caller's thread."""
        if self._application is None:
            raise requests.ConnectionError(f"{request.url}: the service has been stopped", request=request)
        with _restored_context():
            status, headers, chunks = _to_webob(request).call_application(self._application)
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
        """Refuse further requests."""
        self._application = None
        super().close()


def _to_webob(request: requests.PreparedRequest) -> webob.Request:
    """Return the request as a WSGI server would pass it to the application."""
    url = str(request.url)
    # Set explicitly: WebOb would add the port.
    environ = {
        "HTTP_HOST": urllib.parse.urlsplit(url).netloc,
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    headers = {
        name: value if isinstance(value, str) else value.decode("latin-1") for name, value in request.headers.items()
    }
    webob_request = webob.Request.blank(url, environ, headers=headers, method=request.method)
    if content := _content(request.body):
        webob_request.body = content
    return webob_request


def _content(body: Any) -> bytes:
    """Return the bytes of a body of any type that ``requests`` accepts."""
    if body is None or isinstance(body, bytes):
        return body or b""
    return body.encode() if isinstance(body, str) else b"".join(body)


@contextlib.contextmanager
def _restored_context() -> Iterator[None]:
    """Restore the thread's request context after the block: the service replaces it in the caller's thread."""
    previous = context.get_current()
    try:
        yield
    finally:
        if previous is not None:
            previous.update_store()
        else:
            # oslo.context has no public function to remove the context.
            vars(context._request_store).pop("context", None)
