"""Whether a browser sends a request on behalf of a page of another origin (cross-site request forgery)."""

from __future__ import annotations

from urllib.parse import urlsplit
from wsgiref.types import WSGIEnvironment


def is_own(environ: WSGIEnvironment) -> bool:
    """Return whether no page of another origin sends the request, as far as its headers tell.

    Browsers state it in ``Sec-Fetch-Site`` where the connection is trustworthy (HTTPS, or the loopback interface), and
    otherwise send ``Origin`` with each POST.  A request with neither is no browser's.
    """
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        return site in ("same-origin", "none")  # "none": by the user, such as a bookmark
    origin = environ.get("HTTP_ORIGIN")
    return origin is None or _host(origin) == environ.get("HTTP_HOST")


def _host(origin: str) -> str:
    """Return host and port of an origin; empty for ``null``, which is that of many pages, and is no host."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
