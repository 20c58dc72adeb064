"""Hooks of pytest for tests whose result may be undecided; ``tests/conftest.py`` registers them.

Each such test records that it was judged, and passes with a reason where its result is undecided.  The summary of the
session lists these, and the session fails if there are too many.  What is recorded are properties of test reports,
which pytest-xdist sends from its workers to the controller.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

#: The property of a report whose value is the reason; it is empty where the result is decided.
PROPERTY = "undecided"


def most(judged: int) -> int:
    """Return how many undecided results are accepted in a session.

    The searches of jepsen/checker/linearizable.py are bounded, since their time is exponential in the calls that
    overlap.  A busy machine now and then makes a run exceed the bound; more of them mean that the searches or the
    workloads have become worse, and the runs prove less and less.

    Args:
        judged: The tests of the session that were judged, undecided ones included.
    """
    return max(2, judged // 5)


def record(record_property: Callable[[str, object], None], *reasons: str) -> None:
    """Record that a test was judged, and the reasons if its result is undecided.

    Args:
        record_property: The fixture of pytest.
    """
    record_property(PROPERTY, "; ".join(reasons))


def pytest_sessionfinish(session: pytest.Session) -> None:
    undecided, accepted = _results(session.config)
    if len(undecided) > accepted and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    undecided, accepted = _results(config)
    if undecided:
        fails = len(undecided) > accepted
        verdict = f"more than {accepted}, so the session fails" if fails else f"up to {accepted} are accepted"
        terminalreporter.section("undecided results")
        terminalreporter.line("\n".join(undecided))
        terminalreporter.line(f"{len(undecided)} undecided: {verdict}", red=fails)


def _results(config: pytest.Config) -> tuple[list[str], int]:
    """Return a line (test and reason) for each undecided result, and how many are accepted; workers have no results."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = [report for of in reporter.stats.values() for report in of] if reporter else []
    judged = [
        (report.nodeid, reason)
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, reason in report.user_properties
        if name == PROPERTY
    ]
    return [f"{test}: {reason}" for test, reason in judged if reason], most(len(judged))
