"""Profiles and traces of requests; both are off unless configured (docs: layers, configuration)."""

from __future__ import annotations

import cProfile
import os
import re
import socket
import threading
import time
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import sqlalchemy as sa

from placement.conf import PROJECT
from placement.errors import StartError
from placement.http.service import Service

VARIABLE = "OS_WSGI_PROFILER"


def traced(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application, traced by osprofiler if that is installed and ``[profiler]enabled``."""
    try:
        from osprofiler import initializer, opts, sqlalchemy, web
    except ImportError:
        return application
    opts.set_defaults(service.conf)
    options = service.conf.profiler
    if not options.enabled:
        return application
    # If its backend cannot be used, osprofiler logs that and traces nothing.
    initializer.init_from_conf(service.conf, {}, PROJECT, PROJECT, socket.gethostname())
    if options.trace_sqlalchemy:
        for engine in {service.database.engine, service.database.reading_engine}:
            sqlalchemy.add_tracing(sa, engine, "db")
    layered: WSGIApplication = web.WsgiMiddleware(application, options.hmac_keys, enabled=True)
    return layered


def profiled(application: WSGIApplication, _service: Service) -> WSGIApplication:
    """Return the application; it writes a profile of each request to the directory in $OS_WSGI_PROFILER."""
    directory = os.environ.get(VARIABLE, "").strip()
    if not directory:
        return application
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StartError(f"${VARIABLE}: {directory} is no directory to write to")
    return _Profiled(application, directory)


class _Profiled:
    """Profiles one request at a time: Python has one profiler."""

    def __init__(self, application: WSGIApplication, directory: str) -> None:
        self._application = application
        self._directory = directory
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the reply of the application."""
        request = _words(environ)  # layers further in move the prefix of an API out of PATH_INFO
        with self._lock:
            profile, began = cProfile.Profile(), time.time()
            answer: Iterable[bytes] = profile.runcall(self._application, environ, start_response)
            profile.dump_stats(os.path.join(self._directory, f"{request}.{_suffix(began, time.time())}"))
        return answer


def _words(environ: WSGIEnvironment) -> str:
    """Return the method and the path, as they can stand in a file name: ``GET.resource_providers``."""
    words = re.findall(r"[\w-]+", environ.get("PATH_INFO", ""), flags=re.ASCII) or ["root"]
    return f"{re.sub('[^A-Z]', '', environ['REQUEST_METHOD'])}.{'.'.join(words)}"[:150]


def _suffix(began: float, ended: float) -> str:
    """Return how long the request took, and when: ``12ms.1790000000.123456.prof``."""
    return f"{(ended - began) * 1000:.0f}ms.{began:.6f}.prof"
