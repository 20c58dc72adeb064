"""Protection against DNS rebinding for a service that trusts every local client.

The name of a page's host may resolve to 127.0.0.1, so that the page can send requests to a server on the machine of the
browser.  The Host header of such a request still contains the name of the page's host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from wsgiref.types import WSGIEnvironment

from placement.http.failures import ForeignHost


def allowed_hosts(*names: str) -> Callable[[WSGIEnvironment], None]:
    """Return a function that raises ForeignHost for hosts other than localhost, loopback addresses and ``names``."""
    allowed = {"localhost", *(name.lower() for name in names)}

    def check(environ: WSGIEnvironment) -> None:
        host = environ.get("HTTP_HOST", "")
        if host and not _is_local(_without_port(host), allowed):
            raise ForeignHost(host=host)

    return check


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _is_local(host: str, allowed: set[str]) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in allowed
