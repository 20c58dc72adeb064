"""Additions of extensions to tests of the core: modules of one name, in a directory for each extension."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent


def load(level: str, name: str) -> list[ModuleType]:
    """Import and return all modules ``tests/<level>/extensions/<extension>/<name>.py``, in order."""
    paths = sorted((HERE / level / "extensions").glob(f"*/{name}.py"))
    return [importlib.import_module(f"tests.{level}.extensions.{path.parent.name}.{name}") for path in paths]
