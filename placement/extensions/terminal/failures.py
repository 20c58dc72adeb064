"""Sentences for requests that failed or were refused."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
from typing import Any

from placement.extensions.terminal.address import ServiceAddress

#: Codes of a 404 for an unknown path rather than a missing object.
_NO_ROUTE = (None, "placement.undefined_code")


def no_reply(address: ServiceAddress, error: Exception) -> str:
    """Return a sentence for a request without a valid response.

    Args:
        error: The exception of ``urllib``.
    """
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"The certificate of {address.url} is not trusted: {reason.verify_message}.  "
            "Use --cacert for the certificates to trust."
        )
    if isinstance(reason, ssl.SSLError):
        return f"{address.url} cannot be reached over TLS: {reason.reason or reason}."
    if isinstance(reason, TimeoutError):
        return f"{address.url} did not respond within {address.timeout:g} seconds."
    if isinstance(reason, socket.gaierror):
        return f"{address.url} cannot be reached: the host does not exist ({reason.strerror})."
    if isinstance(reason, OSError) and not isinstance(reason, http.client.HTTPException):
        return f"{address.url} cannot be reached: {reason.strerror or reason}."
    return f"{address.url} did not send a valid HTTP response: {reason}."


def refusal(address: ServiceAddress, reply: http.client.HTTPResponse, document: Any) -> str:
    """Return a sentence for a refusal, with advice.

    Args:
        reply: The response, with a status of 300 or more.
        document: Its JSON document; None without one.
    """
    sentence = _sentence(reply, document)
    if reply.status < 400:
        return f"{sentence}  {address.url} redirects to {reply.headers['Location']}, which would receive the token."
    if reply.status == 401 and not address.headers:
        basic = reply.headers.get("WWW-Authenticate", "").lower().startswith("basic")
        return f"{sentence}  No credentials were sent: use {'--username' if basic else '--token'}."
    if reply.status == 404 and _code(document) in _NO_ROUTE:
        return f"{sentence}  {address.url} does not serve the v1 API: it is another service or an older version."
    return sentence


def message(detail: str) -> str:
    """Return the detail of an error without its first paragraph, which is the same for every error of its status."""
    general, _, specific = detail.partition("\n\n")
    return specific.strip() or general.strip()


def _sentence(reply: http.client.HTTPResponse, document: Any) -> str:
    try:
        error = document["errors"][0]
        return f"{reply.status} {error['title']}: {message(str(error['detail']))}"
    except (KeyError, IndexError, TypeError):
        return f"{reply.status} {reply.reason}."


def _code(document: Any) -> Any:
    try:
        return document["errors"][0]["code"]
    except (KeyError, IndexError, TypeError):
        return None
