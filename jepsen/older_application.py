"""The service of an older version with one more page, /jepsen/tree: the directory of the packages that it runs.

What uWSGI imports in place of the older ``placement.wsgi.api``; it uses nothing else of that version.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import placement
from placement.wsgi import api

PATH = "/jepsen/tree"


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The older application, and the page."""
    if environ["PATH_INFO"] != PATH:
        return api.application(environ, start_response)
    start_response("200 OK", [("content-type", "text/plain")])
    return [os.path.dirname(placement.__path__[0]).encode()]
