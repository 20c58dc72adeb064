"""Requests to the API below /v1."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from placement.ask import failures, paging
from placement.ask.address import ServiceAddress, UsageError

Pairs = Sequence[tuple[str, str]]
#: A field that the document at each path has.
_FIELDS = {"/explain": "summary", "/capacity": "count", "/overview": "providers", "/consumers": "consumers"}


class ServiceError(Exception):
    """The service does not answer, or refuses.

    Attributes:
        status: That of its reply; 0 without one.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token would go along, to any host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Asks one service."""

    def __init__(self, address: ServiceAddress) -> None:
        """Prepare the connection; raises UsageError if the file with certificates cannot be used."""
        self._address = address
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
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
        address = self._address
        url = f"{address.url}/v1{path}{'?' if query else ''}{query}"
        request = urllib.request.Request(url, headers={"Accept": "application/json", **address.headers})
        try:
            with self._opener.open(request, timeout=address.timeout) as reply:  # nosec B310 - http and https alone
                content = reply.read()
        except urllib.error.HTTPError as error:
            raise ServiceError(failures.refusal(address, error), error.code) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceError(failures.no_reply(address, error)) from error
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict) or _FIELDS[path] not in document:
            raise ServiceError(f"{address.url} does not answer as this service does: it is the URL of another one.")
        return document

    def pages(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the documents of a list, page by page; raises ServiceError."""
        return paging.pages(self.get, path, query)


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
