"""Lets pages of other origins use the API, if any are configured (docs: api-cors)."""

from __future__ import annotations

from wsgiref.types import WSGIApplication

from oslo_middleware import cors

from placement.http.service import Service


def cross_origin(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application with CORS headers for ``[cors]allowed_origin``."""
    if not service.conf.cors.allowed_origin:
        return application
    layered: WSGIApplication = cors.CORS(application, service.conf)
    return layered
