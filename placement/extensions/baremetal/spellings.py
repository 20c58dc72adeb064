"""The spellings that clients use: of a path, and of the header with the id of a request (docs: baremetal-paths)."""

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
    """Makes every spelling of a path the one that the route table has, and names the id of a request twice.

    It adds ``/v1`` where it is missing, as in bookmark links, and removes a slash at the end; below version 1.91 also
    ``.json``.  Beside the ``x-openstack-request-id`` that all replies have it sends ``openstack-request-id``.
    """

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application to the path of the route table."""
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
    """Whether the version has suffixes; it is not negotiated yet, and a refusal of it is left to its layer."""
    with contextlib.suppress(errors.Failure):
        return bool(environ[API].versioning.negotiate(environ) < versions.NO_SUFFIX)
    return False
