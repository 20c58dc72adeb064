"""Hooks of pytest for tests whose result may be undecided; ``tests/conftest.py`` registers them.

Each such test records that it was judged, and passes with a reason if its result is undecided.  The summary of the
session lists these, and the session fails if there are too many.  Doubts caused by a busy machine are listed, too, but
fail no session, since they affect all tests.  The records are properties of test reports, which pytest-xdist sends from
its workers to the controller.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

#: The property of a report whose value is the reason, empty if the result is decided.
PROPERTY = "undecided"
#: The property with doubts caused by a busy machine.
SLOW = "slow"


def max_undecided(judged: int) -> int:
    """Return the number of undecided results accepted in a session.

    The searches of jepsen/checker/linearizable.py are bounded, since their time is exponential in the number of
    overlapping calls.  A busy machine occasionally makes a run exceed the bound; more undecided results mean that the
    searches or the workloads have become worse, and that the runs prove less.

    Args:
        judged: The number of tests judged in the session, including undecided ones.
    """
    return max(2, judged // 5)


def record(record_property: Callable[[str, object], None], *reasons: str, slow: str = "") -> None:
    """Record that a test was judged, and the reasons if its result is undecided.

    Args:
        record_property: The fixture of pytest.
        slow: A doubt caused by a busy machine.
    """
    record_property(PROPERTY, "; ".join(reasons))
    if slow:
        record_property(SLOW, slow)


def pytest_sessionfinish(session: pytest.Session) -> None:
    undecided, accepted = _results(session.config)
    if len(undecided) > accepted and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    undecided, accepted = _results(config)
    if slow := _lines(_records_of(config, SLOW)):
        terminalreporter.section("doubtful because the machine is busy")
        terminalreporter.line("\n".join(slow))
    if undecided:
        fails = len(undecided) > accepted
        verdict = f"more than {accepted}, so the session fails" if fails else f"up to {accepted} are accepted"
        terminalreporter.section("undecided results")
        terminalreporter.line("\n".join(undecided))
        terminalreporter.line(f"{len(undecided)} undecided: {verdict}", red=fails)


def _results(config: pytest.Config) -> tuple[list[str], int]:
    """Return a line for each undecided result, and the number accepted."""
    judged = _records_of(config, PROPERTY)
    return _lines(judged), max_undecided(len(judged))


def _records_of(config: pytest.Config, property_name: str) -> list[tuple[str, object]]:
    """Return the tests that recorded a property, each with its value; workers have no results."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = (
        [report for reports_of_category in reporter.stats.values() for report in reports_of_category]
        if reporter
        else []
    )
    return [
        (report.nodeid, value)
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == property_name
    ]


def _lines(recorded: list[tuple[str, object]]) -> list[str]:
    """Return a line with test and reason for each test with a reason."""
    return [f"{test}: {reason}" for test, reason in recorded if reason]
