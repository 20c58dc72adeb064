"""Finds the API that a path belongs to, and adds the headers of its replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.errors import StartError
from placement.http.api import Api, Headers
from placement.http.environ import API
from placement.http.service import Service

#: On every reply: a browser does not take another document for a page.
_HEADERS: Headers = (("x-content-type-options", "nosniff"),)


class Mount:
    """Leaves the API in the environ, and moves its prefix from PATH_INFO to SCRIPT_NAME.

    So all layers further in see the paths of the API, and its links begin where it is mounted.
    """

    def __init__(self, application: WSGIApplication, service: Service) -> None:
        """Raises StartError if two APIs have the same prefix.  Exactly one must have none."""
        self._application = application
        by_prefix: dict[str, Api] = {}
        for api in service.apis:
            if other := by_prefix.get(api.prefix):
                raise StartError(f'The APIs {other.name} and {api.name} have the same prefix, "{api.prefix}".')
            by_prefix[api.prefix] = api
        self._root = by_prefix.pop("")
        # /a/b goes before /a.
        self._prefixed = sorted(by_prefix.values(), key=lambda api: len(api.prefix), reverse=True)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application."""
        environ[API] = self._root
        path = environ.get("PATH_INFO", "")  # uWSGI leaves out what it has no room for
        for api in self._prefixed:
            if path.startswith(api.prefix) and path[len(api.prefix) :][:1] in ("", "/"):
                environ[API] = api
                environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + api.prefix
                environ["PATH_INFO"] = path[len(api.prefix) :]
                break
        headers = (*environ[API].headers, *_HEADERS)
        return self._application(environ, _adding(headers, start_response))


def _adding(added: Headers, start_response: StartResponse) -> StartResponse:
    """Return ``start_response`` that sends these headers, too, except those that the reply has."""

    def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
        present = {name.lower() for name, _ in headers}
        missing = ((name, value) for name, value in added if name not in present)
        return start_response(status, [*headers, *missing], *exc_info)

    return start


class Dispatch:
    """The innermost of the shared layers: passes a request to the application of its API."""

    def __init__(self, applications: dict[str, WSGIApplication]) -> None:
        """Takes the applications by the prefix of their API."""
        self._applications = applications

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the API that ``Mount`` has found."""
        return self._applications[environ[API].prefix](environ, start_response)
