"""An older version of the service plus ``/jepsen/tree``, a page that shows the directory of its packages.

uWSGI imports this module in place of the older version's ``placement.wsgi.api``, the only part of it that is used here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import placement
from placement.wsgi import api

PATH = "/jepsen/tree"


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Serve the page, and pass every other request to the older application."""
    if environ["PATH_INFO"] != PATH:
        return api.application(environ, start_response)
    start_response("200 OK", [("content-type", "text/plain")])
    return [os.path.dirname(placement.__path__[0]).encode()]
