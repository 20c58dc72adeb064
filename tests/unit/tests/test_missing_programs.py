"""A test whose program is missing is skipped, or fails in CI; the end of a run says what to install."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

HOOKS = "from tests.conftest import pytest_runtest_makereport, pytest_terminal_summary"
TESTS = """
import pytest
from tests import servers

@pytest.fixture(scope="session")
def server():
    raise servers.Missing("serverd is not installed: `make servers` installs it")

@pytest.fixture
def database(server):
    pass

def test_one(server): pass
def test_two(database): pass
def test_three(): raise servers.Missing("clientd is not installed: pip install clientd")
def test_four(): pass
def test_five(): pytest.skip("not here")
class TestSix:
    def test_six(self, server): pass

def test_seven(subtests):
    for kind in ("one", "two"):
        with subtests.test(kind):
            raise servers.Missing(f"{kind} is not installed")
"""


@pytest.fixture
def run_tests(pytester):
    def run():
        pytester.makeconftest(HOOKS)
        pytester.makepyfile(TESTS)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider")

    return run


def test_each_test_is_skipped_and_each_program_is_named_once(run_tests, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    result = run_tests()
    result.assert_outcomes(passed=2, skipped=5)  # a test passes if only its subtests are skipped
    result.stdout.fnmatch_lines(
        [
            "*= skipped for lack of programs =*",
            "     3  serverd is not installed: `make servers` installs it",
            "     1  clientd is not installed: pip install clientd",
            "     1  one is not installed",
            "     1  two is not installed",
            "*= skipped =*",
            "     1  not here",
        ],
        consecutive=True,
    )


def test_in_ci_each_test_whose_program_is_missing_fails(run_tests, monkeypatch):
    monkeypatch.setenv("CI", "1")
    result = run_tests()
    # An exception in a fixture is an error; each subtest fails, and so does its test.
    result.assert_outcomes(passed=1, skipped=1, failed=1 + 3, errors=3)
    result.stdout.fnmatch_lines(["serverd is not installed: `make servers` installs it (CI runs everything)"] * 3)
    result.stdout.fnmatch_lines(["clientd is not installed: pip install clientd (CI runs everything)"])
    result.stdout.no_fnmatch_line("*for lack of programs*")
    result.stdout.no_fnmatch_line("During handling of *")
