"""Runs with failures, on a cluster without a running service."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from jepsen import catalogue
from jepsen import run as running
from jepsen.__main__ import print_result
from jepsen.clusters.cluster import Cluster
from jepsen.history import Event, History
from jepsen.nemeses.nemesis import Nemesis
from jepsen.report import Report
from jepsen.run import Plan, run
from jepsen.tests.handwritten_histories import call
from jepsen.tests.running import assert_nothing_violated
from jepsen.violation import Violation
from jepsen.workloads.workload import Workload
from tests import closed
from tests.undecided import PROPERTY


class Silent(Cluster):
    name, kind, shows_state = "silent", "sqlite", False
    urls = (closed.URL,)


#: Minimum number of requests per client, however slow the machine is.
_CALLS = 2


class Choosing(Workload):
    """A workload that notes its random choices."""

    name, clients = "choosing", 2

    def run(self, client, rng):
        for number in itertools.count():
            if client.stopped.wait(0.01) and number >= _CALLS:
                return
            client.call("PUT", "/allocations/c", note={"choice": rng.random()})


class Failing(Workload):
    name, clients = "failing", 2

    def run(self, client, rng):
        raise LookupError(f"in client {client.process}")


class Harmless(Nemesis):
    """A nemesis that only records its choice, and claims to lose commits."""

    name, seconds, loses_tail = "harmless", 0.02, True

    def applies_to(self, cluster):
        return True

    @contextlib.contextmanager
    def harm(self, cluster, rng):
        yield {"choice": rng.random()}


class Gentle(Harmless):
    name, loses = "gentle", "in flight"


def broken(history):
    """Check that is always violated."""
    return [Violation("broken", "always", [history.operations[0].number])]


def undecided(history):
    """Check without a verdict."""
    return [Violation("broken: undecided", "no verdict", [0], undecided=True)]


def raises(history):
    """Check with a bug."""
    return 1 / 0


@pytest.fixture(autouse=True)
def register_classes(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "RECOVERY", 0.05)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for cls in (Choosing, Failing):
        monkeypatch.setitem(catalogue.WORKLOADS, cls.name, f"tests.test_run:{cls.__name__}")
    for cls in (Harmless, Gentle):
        monkeypatch.setitem(catalogue.NEMESES, cls.name, f"tests.test_run:{cls.__name__}")


def plan(*workloads, seed=1, seconds=0.15):
    return Plan(workloads, ["harmless", "gentle"], seconds, seed, peace=0.02)


def choices(history):
    """Return the first choices of each client and of the first nemesis."""
    by_process = defaultdict(list)
    for operation in history.operations:
        if "choice" in operation.note:
            by_process[operation.process].append(operation.note["choice"])
    first = {"nemesis": history.events[0].detail["choice"]}
    return first | {process: chosen[:_CALLS] for process, chosen in by_process.items()}


def test_the_choices_of_clients_and_nemeses_follow_from_the_seed():
    first, second, other = (
        choices(run(Silent(), plan("choosing", seed=seed, seconds=1.5)).history) for seed in (1, 1, 2)
    )
    assert first == second
    assert first.keys() == {0, 1, "nemesis"}
    assert all(first[process] != other[process] for process in first)


def test_nemeses_take_turns_and_the_history_contains_their_events():
    for seconds in (1.5, 15, 60):
        events = run(Silent(), plan("choosing", seconds=seconds)).history.events
        if len(events) >= 3:
            break
    assert [event.nemesis for event in events[:3]] == ["harmless", "gentle", "harmless"]
    for event in events:
        assert isinstance(event, Event)
        assert event.loses_tail
        assert event.healed - event.began >= 20_000_000
    assert [event.spares for event in events[::2]] == [None] * len(events[::2])
    for event in events[1::2]:
        assert event.began <= event.spares <= event.healed - 20_000_000


def test_workloads_share_a_run_and_each_client_has_a_process():
    history = run(Silent(), Plan(["choosing", "choosing"], [], 1.5)).history
    assert {operation.process for operation in history.operations if operation.process >= 0} == {0, 1, 2, 3}


def test_an_exception_in_a_client_fails_the_run_and_names_the_history():
    with pytest.raises(LookupError, match="in client") as failed:
        run(Silent(), plan("choosing", "failing", seconds=60.0))
    assert History.read(Path(failed.value.__notes__[0].split()[-1])).run["seed"] == 1


def test_possibly_stale_responses_are_not_judged():
    split = [Event("split", 10, 20)]
    read, claim, write = (
        call(12, 15, method, path, status=200, reply={"results": []})
        for method, path in (("GET", "/allocations/c"), ("POST", "/v1/claims"), ("PUT", "/allocations/c"))
    )
    refusal = call(12, 15, "PUT", "/allocations/c", status=409)
    assert [running._without_stale_response(operation, split) for operation in (read, refusal, write)] == [
        None,
        None,
        write,
    ]
    assert running._without_stale_response(claim, split).is_open
    assert running._without_stale_response(claim, [Event("split", 16, 20)]) == claim


def test_a_cluster_that_does_not_acknowledge_writes_violates_recovery():
    result = run(Silent(), plan("choosing"))
    assert "recovery" in {violation.invariant for violation in result.violations}
    assert not result.recovered


def test_the_history_of_a_violation_is_in_a_file_beside_the_logs_of_the_services(monkeypatch, tmp_path):
    monkeypatch.setitem(catalogue.CHECKS, "broken", "tests.test_run:broken")
    cluster, log = Silent(), tmp_path / "log"
    log.write_text("a line")
    cluster.services = [SimpleNamespace(log=log)]
    result = run(cluster, plan("choosing"))
    assert result.path.with_name(f"{result.path.stem}-service-0.log").read_text() == "a line"
    assert Violation("broken", "always", [0]) in result.violations
    recorded = History.read(result.path)
    assert recorded.operations == result.history.operations
    assert recorded.run == result.history.run
    description = {"cluster": "silent", "workloads": ["choosing"], "nemeses": ["harmless", "gentle"], "seed": 1}
    assert description.items() <= recorded.run.items()


def test_an_undecided_search_is_reported_and_is_no_violation(monkeypatch, capsys):
    monkeypatch.setattr(catalogue, "CHECKS", {"undecided": "tests.test_run:undecided"})
    result, report = run(Silent(), plan("choosing")), Report()
    assert {violation.invariant for violation in result.violations} == {"recovery"}
    assert list(result.undecided) == undecided(result.history)
    print_result(replace(result, violations=[]), report)
    assert f"broken: undecided: no verdict [0]\n    history: {result.path}" in capsys.readouterr().out
    assert not report.violations
    assert "undecided: 1" in str(report)
    recorded = []
    assert_nothing_violated(replace(result, violations=[]), lambda *record: recorded.append(record))
    assert recorded == [(PROPERTY, f"no verdict; history: {result.path}")]
    with pytest.raises(AssertionError):
        assert_nothing_violated(result, lambda *record: recorded.append(record))
    assert len(recorded) == 1
    assert_nothing_violated(replace(result, violations=[], undecided=[]), lambda *record: recorded.append(record))
    assert recorded[1:] == [(PROPERTY, "")]


def test_a_check_that_raises_names_the_history(monkeypatch):
    monkeypatch.setitem(catalogue.CHECKS, "raises", "tests.test_run:raises")
    with pytest.raises(ZeroDivisionError) as failed:
        run(Silent(), plan("choosing"))
    [note] = failed.value.__notes__
    assert History.read(Path(note.split()[-1])).operations
