"""Hooks of pytest for tests whose result may be undecided; ``tests/conftest.py`` registers them.

Such a test records a reason and passes.  The summary of the session lists all of them, and the session fails if there
are too many.  The reasons are properties of test reports, which pytest-xdist sends from its workers to the controller.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

#: The property of a report whose value is the reason.
PROPERTY = "undecided"
#: How many undecided results a session may have.  The searches of jepsen/checker/linearizable.py are bounded, since
#: their time is exponential in the calls that overlap.  A busy machine makes a run that exceeds the bound now and then;
#: several in one session mean that the searches or the workloads have become worse, and the runs prove less and less.
MOST = 2


def record(record_property: Callable[[str, object], None], reason: str) -> None:
    """Record that the result of a test is undecided; ``record_property`` is pytest's fixture."""
    record_property(PROPERTY, reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if len(_results(session.config)) > MOST and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    results = _results(config)
    if results:
        verdict = f"more than {MOST}, so the session fails" if len(results) > MOST else f"up to {MOST} are accepted"
        terminalreporter.section("undecided results")
        terminalreporter.line("\n".join(results))
        terminalreporter.line(f"{len(results)} undecided: {verdict}", red=len(results) > MOST)


def _results(config: pytest.Config) -> list[str]:
    """Return a line for each undecided result: the test and the reason; empty in workers of pytest-xdist."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = [report for of in reporter.stats.values() for report in of] if reporter else []
    return [
        f"{report.nodeid}: {reason}"
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, reason in report.user_properties
        if name == PROPERTY
    ]
