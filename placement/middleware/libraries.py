"""Layers of oslo.middleware."""

from __future__ import annotations

from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_middleware import cors, http_proxy_to_wsgi

from placement.http.service import Service


def cross_origin(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application with CORS headers for the pages of ``[cors]allowed_origin``, if set (docs: api-cors)."""
    if not service.conf.cors.allowed_origin:
        return application
    layer: WSGIApplication = cors.CORS(application, service.conf)
    return layer


def proxy_headers(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application with Forwarded and X-Forwarded-* headers applied, if enabled (docs: api-locations)."""
    if not service.conf.oslo_middleware.enable_proxy_headers_parsing:
        return application
    layer = http_proxy_to_wsgi.HTTPProxyToWSGI(application, service.conf)

    def call(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        """Return the response; servers may omit SCRIPT_NAME, which the library requires."""
        environ.setdefault("SCRIPT_NAME", "")
        return layer(environ, start_response)

    return call
