"""Lets browsers of other origins in, if any are configured (contract 1.15)."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg
from oslo_middleware import cors


def cross_origin(application: Any, conf: cfg.ConfigOpts) -> Any:
    """The application with CORS headers for ``[cors]allowed_origin``."""
    if not conf.cors.allowed_origin:
        return application
    return cors.CORS(application, conf)
