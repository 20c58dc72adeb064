"""Lets browsers of other origins in, if any are configured (docs: api-cors)."""

from __future__ import annotations

from typing import Any

from oslo_middleware import cors

from placement.http.service import Service


def cross_origin(application: Any, service: Service) -> Any:
    """The application with CORS headers for ``[cors]allowed_origin``."""
    if not service.conf.cors.allowed_origin:
        return application
    return cors.CORS(application, service.conf)
