"""Replies of the layers that run before the version of a request is settled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement import microversion as mv
from placement.http import faults
from placement.http.environ import FAILURE, VERSION


def refuse(failure: errors.Failure, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the failure; it has a code if the version that the client asks for has codes of errors.

    The request itself stays without a version, in the log too.
    """
    environ[FAILURE] = type(failure)
    asked = dict(environ)
    with contextlib.suppress(errors.Failure):
        asked[VERSION] = mv.negotiate(environ.get("HTTP_OPENSTACK_API_VERSION"))
    return faults.respond(failure, asked, start_response)
