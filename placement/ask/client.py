"""Requests to the API below /v1."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from placement.ask import paging
from placement.ask.address import ServiceAddress

Pairs = Sequence[tuple[str, str]]

#: Seconds that the service may be silent.
_TIMEOUT = 60
#: Begins the detail of every 400.
_PREAMBLE = "The server could not comply with the request since it is either malformed or otherwise incorrect."
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


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

    def __init__(self, address: ServiceAddress, environment: Mapping[str, str]) -> None:
        """Prepare the connection; ``$OS_CACERT`` names a file with certificates to trust."""
        self._address = address
        context = ssl.create_default_context(cafile=environment.get("OS_CACERT") or None)
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), urllib.request.HTTPSHandler(context=context)]
        if urlsplit(address.url).hostname in _LOOPBACK:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, query: str = "") -> dict[str, Any]:
        """Return the document below /v1 at this path.

        Args:
            path: It begins with a slash.
            query: The query string, as it is sent.

        Raises:
            ServiceError: There is no document; the text says why.
        """
        url = f"{self._address.url}/v1{path}{'?' if query else ''}{query}"
        try:
            request = urllib.request.Request(url, headers={"Accept": "application/json", **self._address.headers})
            with self._opener.open(request, timeout=_TIMEOUT) as reply:  # nosec B310 - http and https alone
                document: dict[str, Any] = json.loads(reply.read())
        except urllib.error.HTTPError as error:
            raise ServiceError(_refusal(error), error.code) from error
        except urllib.error.URLError as error:
            raise ServiceError(f"{self._address.url} cannot be reached: {error.reason}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServiceError(f"{self._address.url} does not answer as expected: {error}") from error
        return document

    def pages(self, path: str, query: Pairs) -> Iterator[dict[str, Any]]:
        """Return the documents of a list, page by page; raises ServiceError."""
        return paging.pages(self.get, path, query)


def _refusal(error: urllib.error.HTTPError) -> str:
    """Return the sentence of a reply that refuses."""
    with error:
        try:
            first = json.loads(error.read())["errors"][0]
            return f"{error.code} {first['title']}: {str(first['detail']).strip().removeprefix(_PREAMBLE).strip()}"
        except (ValueError, KeyError, IndexError, TypeError, OSError, http.client.HTTPException):
            return f"{error.code} {error.reason}"
