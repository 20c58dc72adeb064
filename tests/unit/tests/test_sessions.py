"""jepsen/tests and tests require separate sessions of pytest; running both in one is an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLACES = ["tests/unit/tests/test_sessions.py", "jepsen/tests/test_history.py"]


@pytest.mark.parametrize("places", [PLACES, PLACES[::-1]], ids=["tests first", "jepsen first"])
def test_the_tests_and_the_jepsen_tests_in_one_session_are_an_error_of_one_line(places):
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *places]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    result = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        result.stderr.strip()
        == "ERROR: jepsen/tests and tests need separate pytest sessions: use make jepsen and make test"
    )
