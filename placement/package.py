"""The installed package of this service."""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import sys
from pathlib import Path

NAME = "placement-service"
#: The file to which ``placement-serve`` without a configuration writes its URL, below its current directory.
ADDRESS_FILE = Path("var/placement.url")


def install_command(extra: str) -> str:
    """Return the command that installs the requirements of an extra.

    The command lists the requirements instead of this package, whose source may be gone or missing from the index.
    """
    try:
        lines = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    required = [line.partition(";")[0].strip() for line in lines if line.endswith(f'extra == "{extra}"')]
    if not required:  # not installed, or an editable installation with older metadata
        return f"pip install '.[{extra}]', in a checkout"
    return shlex.join([command("pip"), "install", *required])


def version() -> str:
    """Return the version of the package; "unknown" if it is not installed."""
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def command(name: str) -> str:
    """Return the name of a command of this Python environment, with its path if $PATH does not find it."""
    # sys.executable does not help: in a web server it may be the base interpreter, another executable, or empty.
    path = Path(sys.prefix, "bin", name)
    if shutil.which(name) == str(path) or not path.exists():
        return name
    return str(path)  # absolute, because readers of a log have another working directory than the service
