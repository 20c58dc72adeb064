"""Believes a reverse proxy about scheme, host, prefix and the client's address, if told to."""

from __future__ import annotations

from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_middleware import http_proxy_to_wsgi

from placement.http.service import Service


def proxy_headers(application: Any, service: Service) -> Any:
    """The application as it is behind a proxy that sends Forwarded or X-Forwarded-* (docs: api-locations)."""
    if not service.conf.oslo_middleware.enable_proxy_headers_parsing:
        return application
    believing = http_proxy_to_wsgi.HTTPProxyToWSGI(application, service.conf)

    def mounted(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """The answer, also where the server leaves out the name of the mount point."""
        environ.setdefault("SCRIPT_NAME", "")
        return believing(environ, start_response)

    return mounted
