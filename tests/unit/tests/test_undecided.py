"""Undecided results are listed at the end of a session, and more than a few fail it."""

from __future__ import annotations

import pytest

from tests import undecided

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    from tests import undecided

    @pytest.mark.parametrize("number", range(4))
    def test_a_search(number, record_property):
        if number < {count}:
            undecided.record(record_property, f"no verdict about {{number}}")
"""


@pytest.fixture
def session(pytester, monkeypatch):
    """A function that runs four tests, of which some are undecided, with this many processes of pytest-xdist."""
    # Else each process loads all plugins that are installed.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(count, processes=0):
        pytester.makepyfile(TESTS.format(count=count))
        result = pytester.runpytest_inprocess("-p", "xdist", "-p", "tests.undecided", "-n", str(processes))
        result.assert_outcomes(passed=4)
        return result

    return run


def test_a_few_are_listed_by_the_controller_of_several_processes(session):
    result = session(undecided.MOST, processes=2)
    lines = [f"*test_a_search?{number}?: no verdict about {number}" for number in range(undecided.MOST)]
    result.stdout.fnmatch_lines_random([*lines, f"{undecided.MOST} undecided: *accepted"])
    assert result.ret == pytest.ExitCode.OK


def test_more_than_a_few_fail_the_session(session):
    result = session(undecided.MOST + 1)
    result.stdout.fnmatch_lines([f"{undecided.MOST + 1} undecided: more than*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_session_without_any_says_nothing(session):
    result = session(0)
    result.stdout.no_fnmatch_line("*undecided results*")
    assert result.ret == pytest.ExitCode.OK
