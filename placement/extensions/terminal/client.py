"""Requests to the v1 API."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import ssl
import urllib.request
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from placement.extensions.terminal import failures, paging
from placement.extensions.terminal.address import ServiceAddress, UsageError

Pairs = Sequence[tuple[str, str]]
#: Maximum size of a response, in bytes; the overview of 100,000 hosts takes a quarter of this.
MAX_BYTES = 2**28
#: Bytes per read; the length stated by a response is not trusted.
_CHUNK = 2**20
#: The lowest status of a refusal and of a failure; a refused request has no effect.
_REFUSALS, _FAILURES = 300, 500
#: A field that identifies the document, by path.
_FIELDS = {
    "/explain": "summary",
    "/capacity": "count",
    "/overview": "providers",
    "/consumers": "consumers",
    "/usage": "classes",
    "/events": "events",
    "/doctor": "findings",
}


class ServiceError(Exception):
    """The service did not respond, or refused the request.

    Attributes:
        status: The HTTP status; 0 without a response.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_refusal(self) -> bool:
        """Whether the service refused the request, which had no effect."""
        return _REFUSALS <= self.status < _FAILURES

    @property
    def is_unavailable(self) -> bool:
        """Whether the service did not respond, or is unavailable."""
        return not self.status or self.status >= _FAILURES


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """A handler that returns responses of every status: a followed redirect could send the token to another host."""

    def http_response(self, _request: Any, response: Any) -> Any:
        return response

    def https_response(self, _request: Any, response: Any) -> Any:
        return response


class Client:
    """A client of one service."""

    def __init__(self, address: ServiceAddress) -> None:
        """Prepare requests; raise UsageError if the file with certificates cannot be used."""
        self._address = address
        handlers: list[urllib.request.BaseHandler] = [_AnyStatus()]
        if address.url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=_ssl_context(address)))
        if _is_loopback(urlsplit(address.url).hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))  # a proxy from the environment cannot reach this host
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: str = "") -> dict[str, Any]:
        """Return the document at a path of the v1 API.

        Args:
            path: One of ``_FIELDS``.
            query: The encoded query string.

        Raises:
            ServiceError: The service sent no document; the text is the reason.
        """
        return self.send("GET", path, query, field=_FIELDS[path])

    def send(self, method: str, path: str, query: str = "", body: Any = None, *, field: str) -> dict[str, Any]:
        """Send a request, and return the document of the response.

        Args:
            method: The HTTP method.
            path: The path below ``/v1``.
            query: The encoded query string.
            body: The JSON document to send; None for no body.
            field: A field that identifies the expected document, which is also accepted with status 409.

        Raises:
            ServiceError: The service sent no document; the text is the reason.
        """
        address = self._address
        url = f"{address.url}/v1{path}{'?' if query else ''}{query}"
        headers = {"Accept": "application/json", **address.headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, content, headers, method=method)
        try:
            with self._opener.open(request, timeout=address.timeout) as reply:  # nosec B310
                content = _content(reply)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceError(failures.no_reply(address, error)) from error
        document: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(content)
        is_expected = isinstance(document, dict) and field in document
        if reply.status >= HTTPStatus.MULTIPLE_CHOICES and not (is_expected and reply.status == HTTPStatus.CONFLICT):
            raise ServiceError(failures.refusal(address, reply, document), reply.status)
        if not is_expected:
            raise ServiceError(f"The response of {address.url} is not from a Placement service: the URL is wrong.")
        return dict(document)

    def claim_of(self, consumer: str) -> dict[str, Any]:
        """Return the document of a claim, or raise ServiceError."""
        return self.send("GET", f"/claims/{consumer}", field="consumer")

    def history_pages(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the pages of the history of one object, or raise ServiceError."""
        return paging.pages(lambda path, text: self.send("GET", path, text, field="events"), path, query)

    def pages(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the pages of a list, or raise ServiceError."""
        return paging.pages(self.get, path, query)


def _content(reply: http.client.HTTPResponse) -> bytes:
    """Return the content of a response.

    Raises:
        OSError, HTTPException: The connection failed.
        ValueError: The content has more than ``MAX_BYTES``.
    """
    content = bytearray()
    while chunk := reply.read1(_CHUNK):
        content += chunk
        if len(content) > MAX_BYTES:
            raise ValueError(f"the response has more than {MAX_BYTES} bytes")
    if reply.length:  # ``read1`` does not notice missing bytes
        raise http.client.IncompleteRead(bytes(content[-_CHUNK:]), reply.length)
    return bytes(content)


def _ssl_context(address: ServiceAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.cacert)
    except OSError as error:
        reason = "the file contains no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"The certificates in {address.cacert} cannot be used: {reason}.") from error
    if not address.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
