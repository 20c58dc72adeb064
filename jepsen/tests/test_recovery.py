"""Recovery times after events, from small histories."""

from __future__ import annotations

import pytest

from jepsen import catalogue
from jepsen.checker.recovery import recoveries, slow
from jepsen.history import RUNNER, Event, History, Operation
from jepsen.nemeses.nemesis import Nemesis
from jepsen.report import Report

SECOND = 1_000_000_000


class Kill(Nemesis):
    name, kills = "kill", "worker"


class Pause(Nemesis):
    name, kills, pauses = "pause", "database", True


@pytest.fixture(autouse=True)
def nemeses(monkeypatch):
    monkeypatch.setitem(catalogue.NEMESES, "kill", "tests.test_recovery:Kill")
    monkeypatch.setitem(catalogue.NEMESES, "pause", "tests.test_recovery:Pause")


def write(began, ended, status=204, process=0, method="PUT"):
    end = None if ended is None else int(ended * SECOND)
    return Operation(int(began * 100), process, int(began * SECOND), end, 0, method, "/allocations/c", 39, {}, status)


def event(nemesis, began, healed):
    return Event(nemesis, int(began * SECOND), int(healed * SECOND))


def recovery(events, *operations):
    return [(period.seconds, period.longest) for period in recoveries(History({}, list(operations), events))]


def test_recovery_ends_with_a_write_begun_after_the_kill():
    """Earlier writes do not count, nor do reads, refusals and open operations."""
    ignored = write(2.1, 2.2, method="GET"), write(2.1, 2.3, 409), write(2.1, None, 0)
    assert recovery([event("kill", 2, 3)], write(1, 2.5), *ignored, write(2.5, 4), write(5, 6)) == [(2.0, 1.5)]


def test_recovery_from_a_pause_counts_from_its_end():
    assert recovery([event("pause", 2, 5)], write(1, 1.5), write(2.5, 5.5), write(5.5, 6), write(7, 7)) == [(1.0, 3.5)]


def test_each_event_ends_where_the_next_one_begins():
    events = [event("kill", 10, 10), event("kill", 2, 2)]
    assert recovery(events, write(3, 4), write(11, 12), write(13, 13)) == [(2.0, 6.0), (2.0, 2.0)]


def test_final_writes_of_the_runner_do_not_count():
    assert recovery([event("kill", 2, 2)], write(1, 1), write(3, None, 0), write(4, 5, process=RUNNER)) == [(None, 1.0)]


def test_a_history_without_events_has_no_recoveries():
    assert recovery([], write(1, 2)) == []


@pytest.mark.parametrize(
    ("nemesis", "began", "ended", "violations"),
    [("kill", 3, 4.9, 0), ("kill", 3, 5.1, 1), ("pause", 6, 14.9, 0), ("pause", 6, 15.1, 1)],
)
def test_the_limit_depends_on_the_killed_process(nemesis, began, ended, violations):
    history = History({}, [write(began, ended), write(20, 20)], [event(nemesis, 2, 5)])
    assert len(slow(history)) == violations


def test_a_report_counts_operations_by_the_last_event_before_them():
    report = Report()
    operations = [write(1, 3), write(2.5, 4), write(2.6, 3, 409), write(2.7, None, 0), write(2.8, 3, 503)]
    operations += [write(2.9, None, 0, method="GET"), write(2.95, 3, 0), write(6, 7, process=RUNNER)]
    report.add(History({}, operations, [event("kill", 2, 2)]))
    rows = report.as_json()["nemeses"]
    counts = {"events": 1, "operations": 6, "acknowledged": 1, "unavailable": 3, "unknown": 1, "refused": {"409": 1}}
    assert counts.items() <= rows["kill"].items()
    assert (rows["none"]["operations"], rows["none"]["acknowledged"]) == (1, 1)
    assert "409 1" in str(report)
