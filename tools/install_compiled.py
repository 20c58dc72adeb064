"""Install the packages that are compiled here, and say in a line which tests are skipped where one can't be."""

import importlib.metadata
import os
import subprocess
import sys

from packaging.version import Version

#: The oldest releases, which setup.cfg has as well.
PACKAGES = {"uwsgi": "2.0.26", "mod_wsgi": "5.0", "mysqlclient": "2.2.1"}


def main() -> None:
    """Install what is missing or too old; the output of a failed compilation is shown in CI only, which needs all."""
    for name, oldest in PACKAGES.items():
        if _is_installed(name, oldest):
            continue
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", f"{name}>={oldest}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode and os.environ.get("CI"):
            sys.exit(done.stderr)
        if done.returncode:
            print(f"{name} can't be compiled here, so its tests are skipped.", end=" ")
            print("`make servers` installs what it needs.", flush=True)


def _is_installed(name: str, oldest: str) -> bool:
    try:
        return Version(importlib.metadata.version(name)) >= Version(oldest)
    except importlib.metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
