"""``python -m jepsen``: error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_missing_program_is_reported_in_one_line(tmp_path):
    python = tmp_path / "python"  # uWSGI is searched in the same directory
    python.symlink_to(sys.executable)
    process = subprocess.run(
        [python, "-m", "jepsen", "run", "--cluster", "sqlite", "--workload", "bank"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2
    [line] = process.stderr.splitlines()
    assert line.startswith("uWSGI is not installed")
    assert not process.stdout
