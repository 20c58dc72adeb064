"""What tests of extensions add to tests of the core: modules of one name, a room each."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent


def modules(level: str, name: str) -> list[ModuleType]:
    """Return ``tests/<level>/extensions/<room>/<name>.py`` of all rooms that have one, in their order."""
    found = sorted((HERE / level / "extensions").glob(f"*/{name}.py"))
    return [importlib.import_module(f"tests.{level}.extensions.{each.parent.name}.{name}") for each in found]
