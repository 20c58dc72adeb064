"""Importing the service starts no threads, neither its own nor a library's."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "4"  # an operator may set it for all processes
import placement.{module}
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("module", ["index.live", "search.narrow.narrowing", "direct"])
def test_importing_a_module_starts_no_threads(module, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", COUNT.format(module=module)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert result.stdout == "1\n"
