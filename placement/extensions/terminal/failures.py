"""Why there is no answer, in a sentence."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
from typing import Any

from placement.extensions.terminal.address import ServiceAddress

#: Codes of a 404 where it is not something that the path names which is missing, but the path.
_NO_ROUTE = (None, "placement.undefined_code")


def no_reply(address: ServiceAddress, error: Exception) -> str:
    """Return why there is no reply that could be read.

    Args:
        error: What ``urllib`` raised.
    """
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"The certificate of {address.url} is not trusted: {reason.verify_message}.  "
            "--cacert names the certificates to trust."
        )
    if isinstance(reason, ssl.SSLError):
        return f"{address.url} cannot be reached by TLS: {reason.reason or reason}."
    if isinstance(reason, TimeoutError):
        return f"{address.url} did not answer within {address.timeout:g} seconds."
    if isinstance(reason, socket.gaierror):
        return f"{address.url} cannot be reached: there is no such host ({reason.strerror})."
    if isinstance(reason, OSError) and not isinstance(reason, http.client.HTTPException):
        return f"{address.url} cannot be reached: {reason.strerror or reason}."
    return f"{address.url} does not answer as a service with HTTP does: {reason}."


def refusal(address: ServiceAddress, reply: http.client.HTTPResponse, document: Any) -> str:
    """Return what a reply that refuses says, and what would help.

    Args:
        reply: The reply, of a status from 300.
        document: The JSON document that it has; None if there is none.
    """
    sentence = _sentence(reply, document)
    if reply.status < 400:
        return f"{sentence}  {address.url} redirects to {reply.headers['Location']}, where the token would go along."
    if reply.status == 401 and not address.headers:
        basic = reply.headers.get("WWW-Authenticate", "").lower().startswith("basic")
        return f"{sentence}  No credentials were sent: use {'--username' if basic else '--token'}."
    if reply.status == 404 and _code(document) in _NO_ROUTE:
        return f"{sentence}  {address.url} has no API below /v1: it is the URL of another service, or of an older one."
    return sentence


def message(detail: str) -> str:
    """Return what the detail of an error says beside its first paragraph, which every error of its status has."""
    general, _, own = detail.partition("\n\n")
    return own.strip() or general.strip()


def _sentence(reply: http.client.HTTPResponse, document: Any) -> str:
    try:
        first = document["errors"][0]
        return f"{reply.status} {first['title']}: {message(str(first['detail']))}"
    except (KeyError, IndexError, TypeError):
        return f"{reply.status} {reply.reason}."


def _code(document: Any) -> Any:
    try:
        return document["errors"][0]["code"]
    except (KeyError, IndexError, TypeError):
        return None
