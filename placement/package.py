"""The installed package of this service."""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import sys
from pathlib import Path

NAME = "placement-service"
#: Where ``placement-serve`` without a configuration writes its address, from its current directory.
ADDRESS_FILE = Path("var/placement.url")


def install(extra: str) -> str:
    """Return the command that installs what an extra of this package requires.

    It names the requirements and not the package, because the file or the directory that the package was installed from
    may be gone, and an index may lack it.
    """
    try:
        lines = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    required = [line.partition(";")[0].strip() for line in lines if line.endswith(f'extra == "{extra}"')]
    if not required:  # the code is not installed, or is newer than the metadata of its editable installation
        return f"pip install '.[{extra}]', in a checkout"
    return shlex.join([as_found("pip"), "install", *required])


def version() -> str:
    """Return the version of the package; "unknown" where the code runs without being installed."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def as_found(name: str) -> str:
    """Return how to start a command of the environment that this program runs in: with its path, if $PATH lacks it."""
    # Not beside sys.executable: in a web server that may be the base interpreter or another program, or empty.
    path = Path(sys.prefix, "bin", name)
    if shutil.which(name) == str(path) or not path.exists():
        return name
    return str(path)  # absolute: the reader of a log is in another directory than the service
