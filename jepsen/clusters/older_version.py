"""Older versions of the service, unpacked from the commits of this repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
import urllib.request
from pathlib import Path

from tests.children import PATIENCE
from tests.running import ROOT

_MIGRATIONS = "placement/db/migrations/versions"
_RELEASES = "*[0-9].[0-9]*"
#: Module that uWSGI imports for an older version, and its page.
MODULE, _PAGE = "jepsen.older_application", "/jepsen/tree"


class NoHistory(Exception):
    """The clone lacks the older version; the message says why."""


class NoRelease(Exception):
    """No release precedes this commit."""


def before_newest_migration() -> str:
    """Return the commit before the newest migration; raise NoHistory if the clone lacks it."""
    commit = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", _MIGRATIONS).decode().strip()
    if not commit:
        raise NoHistory("the clone is shallow: it lacks the commits of the migrations")
    return f"{commit}^"


def last_release() -> str:
    """Return the tag of the newest release before this commit; raise NoRelease or NoHistory."""
    if not _git("tag", "--list", _RELEASES, "--merged", "HEAD^").strip():
        raise NoRelease("no tag of a release precedes this commit")
    return _git("describe", "--tags", "--abbrev=0", "--match", _RELEASES, "HEAD^").decode().strip()


def tree(commit: str, directory: Path) -> Path:
    """Unpack a commit into a directory, and return it; raise NoHistory if the clone lacks it."""
    archive = _git("archive", commit, "placement", "pyproject.toml")
    directory.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(directory, filter="data")
    return directory


def directory_of_service(url: str) -> Path:
    """Return the directory of the packages that a service of an older version reports."""
    with urllib.request.urlopen(f"{url}{_PAGE}", timeout=PATIENCE) as reply:
        return Path(reply.read().decode())


def _git(*arguments: str) -> bytes:
    try:
        process = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True)
    except OSError as error:
        raise NoHistory(f"git is not installed: {error}") from error
    except subprocess.CalledProcessError as error:
        raise NoHistory(f"git {arguments[0]}: {error.stderr.decode().strip()}") from error
    return process.stdout
