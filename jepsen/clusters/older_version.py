"""The version of this repository before its newest migration, as a directory with its packages."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from tests.running import ROOT

_MIGRATIONS = "placement/db/migrations/versions"


class NoHistory(Exception):
    """The clone does not have the older version; the text says why."""


def tree(directory: Path) -> Path:
    """Unpack the commit before the newest migration into a directory, and return it; raises NoHistory."""
    try:
        added = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", _MIGRATIONS).decode().strip()
        if not added:
            raise NoHistory("this is a clone without the commits of migrations")
        archive = _git("archive", f"{added}^", "placement", "pyproject.toml")
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoHistory(f"git does not have the commit before the newest migration: {error}") from error
    directory.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(directory, filter="data")
    return directory


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout
