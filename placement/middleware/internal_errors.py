"""Reports an unexpected exception as 500, in the error document of the API; its text goes to the log only."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from placement.http import failures
from placement.http.service import Service

LOG = logging.getLogger(__name__)


class InternalErrors:
    """Catches exceptions before the reply begins; a stream that fails later is cut off (``http/response.py``)."""

    def __init__(self, application: WSGIApplication, _service: Service) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application; 500 if it raises."""
        try:
            return self._application(environ, start_response)
        except Exception:
            path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
            LOG.exception("Unexpected error in %s %s", environ["REQUEST_METHOD"], path)
            return failures.respond(failures.InternalError(), environ, start_response)
