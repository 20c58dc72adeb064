"""The spellings of a path that clients use, all made the one that the route table has (docs: baremetal-paths)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement import errors
from placement.extensions.baremetal import versions
from placement.http.environ import API, PATH
from placement.http.service import Service

_V1 = "/v1"
_SUFFIX = ".json"


class Paths:
    """Adds ``/v1`` where it is missing, as in bookmark links, and removes a slash at the end.

    Below version 1.91 it also removes ``.json`` at the end.
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
        return self._application(environ, start_response)


def _suffix_is_ignored(environ: WSGIEnvironment) -> bool:
    """Whether the version has suffixes; it is not negotiated yet, and a refusal of it is left to its layer."""
    with contextlib.suppress(errors.Failure):
        return bool(environ[API].versioning.negotiate(environ) < versions.NO_SUFFIX)
    return False
