"""The service plus ``/jepsen/index``, a page that shows the index of the worker that responds.

uWSGI imports this module in place of ``placement.wsgi.api``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from jepsen import moved_clock
from jepsen.index_contents import as_json, digest
from jepsen.planted.faults import plant
from placement import deploy, errors
from placement.index.live import LiveIndex
from placement.wsgi import init_application

PATH = "/jepsen/index"


class IndexPage:
    """WSGI middleware that serves the index: 200, or 503 while the index cannot be refreshed."""

    def __init__(self, application: WSGIApplication, index: LiveIndex) -> None:
        self._application, self._index = application, index

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            return self._application(environ, start_response)
        try:
            content = as_json(self._index.current())
        except errors.Unavailable as failure:
            start_response("503 Service Unavailable", [("content-type", "application/json")])
            return [json.dumps({"process": os.getpid(), "reason": str(failure)}).encode()]
        start_response("200 OK", [("content-type", "application/json")])
        return [json.dumps({"process": os.getpid(), "digest": digest(content), "index": content}).encode()]


def with_page() -> IndexPage:
    """Return the application with the index page, after planting the fault named in the environment.

    The page reads the same index as the searches of the application.
    """
    plant()
    indices: list[LiveIndex] = []

    def make(*arguments: Any, **options: Any) -> LiveIndex:
        indices.append(LiveIndex(*arguments, **options))
        return indices[-1]

    deploy.LiveIndex = make
    moved_clock.follow()
    application = init_application()
    [index] = indices
    return IndexPage(application, index)


application = with_page()
