"""The installed package of this service."""

from __future__ import annotations

import importlib.metadata

NAME = "placement-service"


def install(extra: str) -> str:
    """Return the command that installs an extra; no package index has this package."""
    return f"pip install '.[{extra}]', in a checkout"


def version() -> str:
    """Return the version of the package; "unknown" where the code runs without being installed."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
