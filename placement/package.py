"""The installed package of this service."""

from __future__ import annotations

import importlib.metadata

NAME = "placement-service"


def version() -> str:
    """Return the version of the package; "unknown" where the code runs without being installed."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
