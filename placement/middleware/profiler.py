"""Profiles and traces of requests; both are off unless configured (docs: layers, configuration)."""

from __future__ import annotations

import cProfile
import os
import re
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import sqlalchemy as sa

from placement.conf import PROJECT
from placement.errors import StartError
from placement.http.service import Service

VARIABLE = "OS_WSGI_PROFILER"


def traced(application: Any, service: Service) -> Any:
    """The application, traced by osprofiler where ``[profiler]enabled`` says so; without osprofiler nothing says it."""
    try:
        from osprofiler import initializer, opts, sqlalchemy, web
    except ImportError:
        return application
    opts.set_defaults(service.conf)
    options = service.conf.profiler
    if not options.enabled:
        return application
    # Where its backend cannot be used it says so in the log, and tells nobody anything.
    initializer.init_from_conf(service.conf, {}, PROJECT, PROJECT, socket.gethostname())
    if options.trace_sqlalchemy:
        for engine in {service.database.engine, service.database.reading_engine}:
            sqlalchemy.add_tracing(sa, engine, "db")
    return web.WsgiMiddleware(application, options.hmac_keys, enabled=True)


def profiled(application: Any, _service: Service) -> Any:
    """The application, leaving a profile of each request in the directory that $OS_WSGI_PROFILER names."""
    directory = os.environ.get(VARIABLE, "").strip()
    if not directory:
        return application
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StartError(f"${VARIABLE}: {directory} is no directory to write to")
    return _Profiled(application, directory)


class _Profiled:
    """One request at a time: Python has one profiler."""

    def __init__(self, application: Any, directory: str) -> None:
        self._application = application
        self._directory = directory
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The answer of the application."""
        with self._lock:
            profile, began = cProfile.Profile(), time.time()
            answer: Iterable[bytes] = profile.runcall(self._application, environ, start_response)
            profile.dump_stats(os.path.join(self._directory, _file_name(environ, began, time.time())))
        return answer


def _file_name(environ: WSGIEnvironment, began: float, ended: float) -> str:
    """What it was, how long it took and when: ``GET.resource_providers.12ms.1790000000.123456.prof``."""
    words = re.findall(r"[\w-]+", environ["PATH_INFO"], flags=re.ASCII) or ["root"]
    what = f"{re.sub('[^A-Z]', '', environ['REQUEST_METHOD'])}.{'.'.join(words)}"
    return f"{what[:150]}.{(ended - began) * 1000:.0f}ms.{began:.6f}.prof"
