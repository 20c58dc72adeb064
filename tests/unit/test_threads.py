"""No library starts threads of its own in a process of the service."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "4"  # as an operator may have it for all programs
import placement.{module}
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("module", ["index.live", "search.narrow.narrowing", "direct"])
def test_no_part_of_the_service_starts_threads_when_it_is_imported(module, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(module=module)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "1\n"
