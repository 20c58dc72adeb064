"""Install the packages that need a compiler, and report the packages that cannot be built."""

import importlib.util
import os
import subprocess
import sys

PACKAGES = ("mod_wsgi>=5.0", "mysqlclient>=2.2.1", "systemd-python>=235")


def main() -> None:
    """Install missing or outdated packages; in CI, exit with the output of the first failed build."""
    if importlib.util.find_spec("MySQLdb") is None:
        print("Compiling mod_wsgi and mysqlclient for the tests, which takes a minute or more ...", flush=True)
    for package in PACKAGES:
        command = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, package]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode and os.environ.get("CI"):
            sys.exit(done.stderr)
        if done.returncode:
            print(f"{package.partition('>')[0]} cannot be compiled, so its tests are skipped.", end=" ")
            print("`make servers` installs its build requirements.", flush=True)


if __name__ == "__main__":
    main()
