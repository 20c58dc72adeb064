"""Middleware that normalizes paths and adds the request id header of Ironic (docs: baremetal-paths)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.extensions.baremetal import versions
from placement.http.environ import API, PATH, REQUEST_ID
from placement.http.service import Service

_V1 = "/v1"
_SUFFIX = ".json"


class Spellings:
    """Middleware that maps paths to the paths of the route table, and sends the request id under a second name.

    A missing ``/v1``, as in bookmark links, is added; a trailing slash and, below version 1.91, ``.json`` are removed.
    Besides ``x-openstack-request-id``, responses contain ``openstack-request-id``.
    """

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the response of the application to the normalized path."""
        path = environ["PATH_INFO"].removesuffix("/")
        if path and path != _V1 and not path.startswith(f"{_V1}/"):
            path = _V1 + path
        if path.endswith(_SUFFIX) and _suffix_is_ignored(environ):
            path = path.removesuffix(_SUFFIX)
        environ[PATH] = path or "/"

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            headers.append(("openstack-request-id", environ[REQUEST_ID]))
            return start_response(status, headers, *exc_info)

        return self._application(environ, start)


def _suffix_is_ignored(environ: WSGIEnvironment) -> bool:
    """Whether the version ignores the suffix; an invalid version is left to the layer that negotiates it."""
    with contextlib.suppress(errors.Failure):
        return bool(environ[API].versioning.negotiate(environ) < versions.NO_SUFFIX)
    return False
