"""Undecided results are listed at the end of a session, and too many of them fail it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import pytest
    from tests import undecided

    @pytest.mark.parametrize("number", range({judged}))
    def test_a_search(number, record_property):
        undecided.record(record_property, *[f"no verdict about {{number}}"][: number < {count}], slow={slow!r})

    def test_no_search():
        pass
"""


@pytest.fixture
def session(pytester, monkeypatch):
    """Return a function that runs ``judged`` tests, ``count`` of them undecided, in processes of pytest-xdist."""
    # Without this, each process would load all installed plugins.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(count, judged=4, processes=0, slow=""):
        pytester.makepyfile(TESTS.format(count=count, judged=judged, slow=slow))
        result = pytester.runpytest_inprocess("-p", "xdist", "-p", "tests.undecided", "-n", str(processes))
        result.assert_outcomes(passed=judged + 1)
        return result

    return run


def test_a_few_undecided_results_are_listed_by_the_controller_of_several_processes(session):
    result = session(2, processes=2)
    lines = [f"*test_a_search?{number}?: no verdict about {number}" for number in range(2)]
    result.stdout.fnmatch_lines_random([*lines, "2 undecided: *accepted"])
    assert result.ret == pytest.ExitCode.OK


def test_more_than_a_few_undecided_results_fail_the_session(session):
    result = session(3)
    result.stdout.fnmatch_lines(["3 undecided: more than 2, *"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(("judged", "ret"), [(14, pytest.ExitCode.TESTS_FAILED), (15, pytest.ExitCode.OK)])
def test_a_longer_session_may_have_more_undecided_results(session, judged, ret):
    assert session(3, judged).ret == ret


def test_doubts_of_a_busy_machine_are_listed_and_fail_no_session(session):
    result = session(0, slow="few clients succeeded: 1")
    lines = [f"*test_a_search?{number}?: few clients succeeded: 1" for number in range(4)]
    result.stdout.fnmatch_lines_random(["*doubtful because the machine is busy*", *lines])
    result.stdout.no_fnmatch_line("*undecided results*")
    assert result.ret == pytest.ExitCode.OK


def test_a_session_without_undecided_results_prints_nothing(session):
    result = session(0)
    result.stdout.no_fnmatch_line("*undecided results*")
    assert result.ret == pytest.ExitCode.OK
