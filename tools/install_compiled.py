"""Install the packages that are compiled here, and say in a line which tests are skipped where one can't be."""

import importlib.metadata
import subprocess
import sys

PACKAGES = {"uwsgi": "2.0.26", "mod_wsgi": "5.0", "mysqlclient": "2.2.1"}


def main() -> None:
    """Install what is missing; the output of a failed compilation is not shown."""
    for name, oldest in PACKAGES.items():
        if _is_installed(name):
            continue
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", f"{name}>={oldest}"]
        if subprocess.run(command, capture_output=True).returncode:
            print(f"{name} can't be compiled here, so its tests are skipped; in CI they fail.", end=" ")
            print("`make servers` installs what it needs.", flush=True)


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
