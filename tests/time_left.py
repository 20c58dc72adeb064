"""Progress of a run of more than a minute: tests done, the time taken, and an estimate of the time left.

The estimate for a test is the mean of its file in the last run, from pytest's cache, or for a new file the usual time
in its directory.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

#: Seconds between two lines.
INTERVAL = 60
_CACHED = "placement/seconds"
#: Seconds per test of the measured directories; 0.5 elsewhere.  Only the ratios matter.
_USUAL = {
    "histories": 10,
    "load": 4,
    "live": 2,
    "gabbi": 0.7,
    "db": 0.5,
    "console": 0.4,
    "search": 0.3,
    "unit": 0.03,
    "docs": 0.02,
}


class TimeLeft:
    """A plugin of the process that shows the results of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._cache = config, getattr(config, "cache", None)
        self._remaining = RemainingTests(self._cache.get(_CACHED, {}) if self._cache else {})
        self._durations: Counter[str] = Counter()
        #: When the tests began, and when the last line was written.
        self._began_at = self._last_line_at = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._add(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._add(ids)

    def _add(self, ids: Iterable[str]) -> None:
        self._remaining.add(ids)
        self._began_at = self._last_line_at = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._durations[_file_of(report.nodeid)] += report.duration
        if report.when == "teardown":
            self._remaining.finish(report.nodeid)
        now = time.monotonic()
        if self._remaining.begun and not self._remaining.ended and now - self._last_line_at >= INTERVAL:
            self._last_line_at = now
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            terminal.write_line(f"\n{self._remaining.line(now - self._began_at)}")

    def pytest_sessionfinish(self) -> None:
        if self._cache and self._remaining.begun:
            # Seconds per test, so that a run of some tests of a file does not change its record.
            self._cache.set(_CACHED, self._remaining.mean_seconds | self._remaining.per_test(self._durations))


class RemainingTests:
    """The unfinished tests of a run, weighted by the seconds per test of each file."""

    def __init__(self, mean_seconds: Mapping[str, float]) -> None:
        self.mean_seconds = dict(mean_seconds)
        self._count: Counter[str] = Counter()
        self._done: Counter[str] = Counter()

    @property
    def begun(self) -> bool:
        """Whether a test is finished."""
        return self._done.total() > 0

    @property
    def ended(self) -> bool:
        """Whether all tests are finished."""
        return self._done.total() >= self._count.total()

    def add(self, ids: Iterable[str]) -> None:
        """Note the tests of the run."""
        self._count = Counter(map(_file_of, ids))

    def finish(self, name: str) -> None:
        """Note the end of a test."""
        self._done[_file_of(name)] += 1

    def per_test(self, durations: Mapping[str, float]) -> dict[str, float]:
        """Return the mean seconds per test of each completed file."""
        return {file: durations[file] / count for file, count in self._done.items()}

    def line(self, seconds: float) -> str:
        """Return the line of progress after ``seconds``."""
        finished, total = self._weight(self._done), self._weight(self._count)
        remaining = seconds * (total - finished) / finished
        progress = f"{self._done.total()} of {self._count.total()} tests"
        return f"{progress} in {_minutes(seconds)}, about {_minutes(remaining)} left"

    def _weight(self, counts: Counter[str]) -> float:
        return sum(count * self.mean_seconds.get(file, _usual(file)) for file, count in counts.items())


def _usual(file: str) -> float:
    _, _, path = file.partition("/")
    return _USUAL.get(path.partition("/")[0], 0.5)


def _file_of(name: str) -> str:
    return name.partition("::")[0]


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
