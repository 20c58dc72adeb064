"""tools/install_compiled.py: what can't be compiled is one line, and no failure."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_package_that_cannot_be_installed_is_reported_in_one_line():
    program = "from tools import install_compiled as it; it.PACKAGES = ['pytest>=8', 'no-such-package>=1']; it.main()"
    environment = os.environ | {"UV_NO_INDEX": "1", "CI": ""}  # uv asks no index, and fails at once
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith("no-such-package can't be compiled here")
    assert (done.returncode, done.stderr) == (0, "")
