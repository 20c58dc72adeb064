"""Why there is no answer, in a sentence."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.error

from placement.ask.address import ServiceAddress

#: Begins the detail of every 400.
_PREAMBLE = "The server could not comply with the request since it is either malformed or otherwise incorrect."


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


def refusal(address: ServiceAddress, error: urllib.error.HTTPError) -> str:
    """Return what a reply that is no document says, and what would help.

    Args:
        error: The reply; it is read and closed.
    """
    with error:
        sentence = _sentence(error)
    if 300 <= error.code < 400:
        return f"{sentence}  {address.url} redirects to {error.headers['Location']}, where the token would go along."
    if error.code == 401 and not address.headers:
        basic = error.headers.get("WWW-Authenticate", "").lower().startswith("basic")
        return f"{sentence}  No credentials were sent: use {'--username' if basic else '--token'}."
    if error.code == 404:
        return f"{sentence}  {address.url} has no API below /v1: it is the URL of another service, or of an older one."
    return sentence


def _sentence(error: urllib.error.HTTPError) -> str:
    try:
        first = json.loads(error.read())["errors"][0]
        return f"{error.code} {first['title']}: {str(first['detail']).strip().removeprefix(_PREAMBLE).strip()}"
    except (ValueError, KeyError, IndexError, TypeError, OSError, http.client.HTTPException):
        return f"{error.code} {error.reason}."
