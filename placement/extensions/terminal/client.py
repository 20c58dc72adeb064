"""Requests to the API below /v1."""

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
#: Bytes of a reply; the overview of 100,000 hosts has a quarter of this.
MOST = 2**28
#: Bytes that are read at once.  A reply states sizes of its own, which are not believed.
_PIECE = 2**20
#: Statuses between these say that nothing was done; from the second on the service cannot answer.
_REFUSALS, _FAILURES = 300, 500
#: A field that the document at each path has.
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
    """The service does not answer, or refuses.

    Attributes:
        status: That of its reply; 0 without one.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_refusal(self) -> bool:
        """Whether there is a reply that says that nothing was done."""
        return _REFUSALS <= self.status < _FAILURES

    @property
    def is_away(self) -> bool:
        """Whether there is no reply, or one of a service that cannot answer now."""
        return not self.status or self.status >= _FAILURES


class _EveryReply(urllib.request.HTTPErrorProcessor):
    """Returns replies of every status.  So no redirect is followed: the token would go along, to any host."""

    def http_response(self, _request: Any, response: Any) -> Any:
        return response

    def https_response(self, _request: Any, response: Any) -> Any:
        return response


class Client:
    """Asks one service."""

    def __init__(self, address: ServiceAddress) -> None:
        """Prepare the connection; raises UsageError if the file with certificates cannot be used."""
        self._address = address
        handlers: list[urllib.request.BaseHandler] = [_EveryReply()]
        if address.url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=_context(address)))
        if _is_loopback(urlsplit(address.url).hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))  # a proxy of the environment cannot reach this machine
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: str = "") -> dict[str, Any]:
        """Return the document below /v1 at this path.

        Args:
            path: One of ``_FIELDS``.
            query: The query string, as it is sent.

        Raises:
            ServiceError: There is no document; the text says why.
        """
        return self.send("GET", path, query, has=_FIELDS[path])

    def send(self, method: str, path: str, query: str = "", body: Any = None, *, has: str) -> dict[str, Any]:
        """Return the document of the reply to a request.

        Args:
            method: The method of HTTP.
            path: Below /v1.
            query: The query string, as it is sent.
            body: The JSON document to send; None for none.
            has: A field that the document has.  A conflict is a reply, too, if its document has the field.

        Raises:
            ServiceError: There is no document; the text says why.
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
        is_one = isinstance(document, dict) and has in document
        if reply.status >= HTTPStatus.MULTIPLE_CHOICES and not (is_one and reply.status == HTTPStatus.CONFLICT):
            raise ServiceError(failures.refusal(address, reply, document), reply.status)
        if not is_one:
            raise ServiceError(f"{address.url} does not answer as this service does: it is the URL of another one.")
        return dict(document)

    def claim_of(self, consumer: str) -> dict[str, Any]:
        """Return the document of what a consumer holds; raises ServiceError."""
        return self.send("GET", f"/claims/{consumer}", has="consumer")

    def stories(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the documents of the story of one thing, page by page; raises ServiceError."""
        return paging.pages(lambda path, text: self.send("GET", path, text, has="events"), path, query)

    def pages(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the documents of a list, page by page; raises ServiceError."""
        return paging.pages(self.get, path, query)


def _content(reply: http.client.HTTPResponse) -> bytes:
    """Return the content of a reply; raises what ``urllib`` does, and ValueError for more than ``MOST`` bytes."""
    content = bytearray()
    while piece := reply.read1(_PIECE):
        content += piece
        if len(content) > MOST:
            raise ValueError(f"the reply has more than {MOST} bytes")
    if reply.length:  # which ``read1`` does not notice
        raise http.client.IncompleteRead(bytes(content[-_PIECE:]), reply.length)
    return bytes(content)


def _context(address: ServiceAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.cacert)
    except OSError as error:
        reason = "it has no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
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
