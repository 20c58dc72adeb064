"""Campaigns: the sequence of workloads and nemeses, and the replacement of clusters."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

from jepsen import catalogue
from jepsen import run as running
from jepsen.campaign import Campaign
from jepsen.tests.test_run import Choosing, Harmless, Silent


class CountedCluster(Silent):
    name = "counted"
    started = 0

    def _start(self, stack):
        type(self).started += 1


class Elsewhere(Harmless):
    """A nemesis for other clusters."""

    name = "elsewhere"

    def applies_to(self, cluster):
        return False


#: More nemeses than one run has time for.
TURN = [
    type(name, (Harmless,), {"name": name}) for name in ("first", "second", "third", "fourth", "fifth", "sixth", "last")
]


class Other(Choosing):
    name = "other"


class OwnAPI(Choosing):
    """A workload of the v1 API, which another implementation lacks."""

    name, own_api = "ours", True


@pytest.fixture(autouse=True)
def register_classes(monkeypatch, tmp_path):
    monkeypatch.setattr(running, "RECOVERY", 0.02)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(CountedCluster, "started", 0)
    monkeypatch.setattr(catalogue, "cluster", {"counted": CountedCluster}.__getitem__)
    for cls in (Choosing, Other, OwnAPI):
        monkeypatch.setitem(catalogue.WORKLOADS, cls.name, f"tests.test_campaign:{cls.__name__}")
    monkeypatch.setattr(catalogue, "nemesis", {cls.name: cls for cls in (Elsewhere, *TURN)}.__getitem__)


def campaign(**more):
    names = ["choosing", "ours", "other"], ["elsewhere", *(cls.name for cls in TURN)]
    return Campaign("counted", *names, **{"seconds": 60.0, "seed": 7, "segment": 0.15, "peace": 0.02, **more})


def three_runs():
    with closing(campaign().runs()) as results:
        return [result.history for result in itertools.islice(results, 3)]


def test_each_run_continues_the_rotation():
    histories = three_runs()
    pairs = [["choosing", "other"], ["other", "choosing"], ["choosing", "other"]]
    assert [history.run["workloads"] for history in histories] == pairs
    assert [history.run["seed"] for history in histories] == [7, 8, 9]
    harms = [event.nemesis for history in histories for event in history.events]
    assert harms
    assert harms == [cls.name for cls, _ in zip(itertools.cycle(TURN), harms, strict=False)]


def test_a_cluster_that_did_not_recover_is_replaced():
    three_runs()
    assert CountedCluster.started == 3


def test_a_cluster_that_recovers_is_reused(monkeypatch):
    monkeypatch.setattr(running._Run, "_recovers", lambda *_: True)
    three_runs()
    assert CountedCluster.started == 1


def test_a_failed_run_is_a_violation_and_the_next_one_gets_a_new_cluster(monkeypatch):
    monkeypatch.setattr(running._Run, "_recovers", lambda *_: 1 / 0)
    with closing(campaign().runs()) as results:
        violations = [violation for result in itertools.islice(results, 2) for violation in result.violations]
    assert [violation.invariant for violation in violations] == ["recovery", "recovery"]
    assert all("ZeroDivisionError" in violation.sentence for violation in violations)
    assert CountedCluster.started == 2


def test_no_run_begins_after_the_time_limit():
    assert len([*campaign(seconds=0.0).runs()]) == 1
