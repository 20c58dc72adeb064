"""Refuses what pages of other origins make a browser send, with the password that it keeps for this service."""

from __future__ import annotations

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.http import origin
from placement.http.failures import ForeignPage, respond
from placement.http.service import Service

_SAFE = ("GET", "HEAD")


def own_origin(application: WSGIApplication, _service: Service) -> WSGIApplication:
    """Return the application; requests that are no reads are refused where a page of another origin sends them."""

    def checked(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in _SAFE or origin.is_own(environ):
            return application(environ, start_response)
        return respond(ForeignPage(), environ, start_response)

    return checked
