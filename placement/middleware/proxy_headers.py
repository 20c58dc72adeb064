"""Believes a reverse proxy about scheme, host, prefix and the client's address, if told to."""

from __future__ import annotations

from typing import Any

from oslo_middleware import http_proxy_to_wsgi

from placement.http.request import Environ, Service


def proxy_headers(application: Any, service: Service) -> Any:
    """The application as it is behind a proxy that sends Forwarded or X-Forwarded-* (contract 1.11)."""
    if not service.conf.oslo_middleware.enable_proxy_headers_parsing:
        return application
    believing = http_proxy_to_wsgi.HTTPProxyToWSGI(application, service.conf)

    def mounted(environ: Environ, start_response: Any) -> Any:
        """The answer, also where the server leaves out the name of the mount point."""
        environ.setdefault("SCRIPT_NAME", "")
        return believing(environ, start_response)

    return mounted
