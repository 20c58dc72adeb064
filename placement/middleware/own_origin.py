"""Refuses what pages of other origins make a browser send, with the password that it keeps for this service."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.http.environ import API
from placement.http.failures import ForeignPage, respond
from placement.http.service import Service

_SAFE = ("GET", "HEAD")


class OwnOrigin:
    """Refuses a request that is no read, has what a browser adds by itself, and is of a page of another origin.

    A browser adds the name and the password of HTTP Basic to each request for this service, also to a form of any page.
    With noauth2 it needs to add nothing to requests for an API with pages.  A token is added by no browser.

    A page of an origin in ``[cors]allowed_origin`` may write.  ``*`` allows none to: it would be every page there is.
    """

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        self._application = application
        self._allowed = {*(service.conf.cors.allowed_origin or ())} - {"*"}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application, or 403."""
        if environ["REQUEST_METHOD"] in _SAFE or not _guarded(environ) or self._is_trusted(environ):
            return self._application(environ, start_response)
        return respond(ForeignPage(), environ, start_response)

    def _is_trusted(self, environ: WSGIEnvironment) -> bool:
        return is_own(environ) or environ.get("HTTP_ORIGIN") in self._allowed


def _guarded(environ: WSGIEnvironment) -> bool:
    has_password: bool = environ.get("HTTP_AUTHORIZATION", "").strip()[:5].lower() == "basic"
    return has_password or environ[API].has_pages


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
