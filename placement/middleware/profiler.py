"""Profiles and traces of requests, both off by default (docs: layers, configuration)."""

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


def add_tracing(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application, traced by osprofiler if it is installed and ``[profiler]enabled`` is true."""
    try:
        from osprofiler import initializer, opts, sqlalchemy, web
    except ImportError:
        return application
    opts.set_defaults(service.conf)
    options = service.conf.profiler
    if not options.enabled:
        return application
    # If the backend is unusable, osprofiler logs an error and traces nothing.
    initializer.init_from_conf(service.conf, {}, PROJECT, PROJECT, socket.gethostname())
    if options.trace_sqlalchemy:
        for engine in {service.database.engine, service.database.reading_engine}:
            sqlalchemy.add_tracing(sa, engine, "db")
    layered: WSGIApplication = web.WsgiMiddleware(application, options.hmac_keys, enabled=True)
    return layered


def add_profiling(application: WSGIApplication, _service: Service) -> WSGIApplication:
    """Return the application, writing a profile of each request to the directory $OS_WSGI_PROFILER if it is set."""
    directory = os.environ.get(VARIABLE, "").strip()
    if not directory:
        return application
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StartError(f"${VARIABLE}: {directory} is not a writable directory")
    return _Profiler(application, directory)


class _Profiler:
    """The layer that profiles one request at a time: Python supports only one active profiler."""

    def __init__(self, application: WSGIApplication, directory: str) -> None:
        self._application = application
        self._directory = directory
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Return the application's response."""
        name = _file_name(environ)  # inner layers move the prefix of an API out of PATH_INFO
        with self._lock:
            profile, began = cProfile.Profile(), time.time()
            chunks: Iterable[bytes] = profile.runcall(self._application, environ, start_response)
            profile.dump_stats(os.path.join(self._directory, f"{name}.{_suffix(began, time.time())}"))
        return chunks


def _file_name(environ: WSGIEnvironment) -> str:
    """Return method and path in a form that is safe in file names: ``GET.resource_providers``."""
    words = re.findall(r"[\w-]+", environ.get("PATH_INFO", ""), flags=re.ASCII) or ["root"]
    return f"{re.sub('[^A-Z]', '', environ['REQUEST_METHOD'])}.{'.'.join(words)}"[:150]


def _suffix(began: float, ended: float) -> str:
    """Return the duration and the start of the request: ``12ms.1790000000.123456.prof``."""
    return f"{(ended - began) * 1000:.0f}ms.{began:.6f}.prof"
