"""Answers 500 for unexpected errors, so that clients get the usual form and the log gets the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from placement.http import faults
from placement.http.service import Service

LOG = logging.getLogger(__name__)


class UnexpectedErrors:
    """The last net.  Nothing below it sends the first byte of an answer before it has the whole."""

    def __init__(self, application: Any, _service: Service) -> None:
        self.application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application; 500 if it raised."""
        try:
            return self.application(environ, start_response)
        except Exception:
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            return faults.respond(faults.InternalError(), environ, start_response)
