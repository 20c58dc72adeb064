"""tools/install_compiled.py: a package that cannot be compiled is reported in one line."""

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install_compiled

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("name", "oldest"), [("no-such-package", "1"), ("pytest", "9999")])
def test_a_package_that_cannot_be_installed_is_reported_in_one_line(name, oldest):
    """A release newer than any existing one cannot be installed either; a recent package is not reported.

    If mysqlclient is missing as well, an earlier line announces that compiling takes a minute.
    """
    packages = ["packaging>=1", f"{name}>={oldest}"]
    program = f"from tools import install_compiled; install_compiled.PACKAGES = {packages!r}; install_compiled.main()"
    environment = os.environ | {"UV_OFFLINE": "1", "CI": ""}  # uv queries no index, and fails at once
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    [line] = [line for line in result.stdout.splitlines() if not line.startswith("Compiling ")]
    assert line.startswith(f"{name} cannot be compiled")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_oldest_releases_match_setup_cfg():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options.extras_require"].get("mysqlclient", raw=True)
    other_packages = ("mod_wsgi>=5.0", "systemd-python>=235")
    assert lines.split() == [package for package in install_compiled.PACKAGES if package not in other_packages]
