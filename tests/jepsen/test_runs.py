"""Runs on each database beside nemeses, judged by all checks; a long test run has more and longer ones.

A run begins with a cluster of its own, because a nemesis may leave any state behind.
"""

from __future__ import annotations

import contextlib

import pytest

from tests.jepsen import catalogue
from tests.jepsen import run as running
from tests.jepsen.conftest import running_cluster
from tests.jepsen.history import FINAL
from tests.jepsen.run import Plan
from tests.jepsen.sound import assert_sound
from tests.run_length import LONG

SECONDS, PEACE, SEEDS = (60.0, 3.0, 3) if LONG else (2.5, 0.5, 1)
RUNS = [
    ("sqlite", ["registers", "bank"], ["kill-worker", "pause-worker", "restore-backup"]),
    ("mariadb", ["leases", "trees"], ["cut-after-commit", "kill-worker", "lose-tail", "database-clock"]),
    ("postgresql", ["places", "machines"], ["kill-database", "cut-before-commit", "lose-tail", "lock-rows"]),
]
if LONG:
    RUNS += [
        ("mariadb", ["bank", "trees"], ["kill-worker", "delay-packets", "drop-packets", "lose-tail"]),
        ("mariadb", ["leases", "machines"], ["cut-after-commit", "kill-worker", "lose-tail", "database-clock"]),
        ("postgresql", ["trees", "registers"], ["cut-after-commit", "pause-database", "reset-connections"]),
        ("sqlite", ["trees"], ["pause-worker", "kill-worker", "service-clock"]),
        ("sqlite", ["places", "leases"], ["kill-worker", "pause-worker", "restore-backup"]),
        ("mariadb", ["registers"], ["kill-database", "cut-after-commit", "lock-rows"]),
        ("postgresql", ["bank"], ["kill-database", "cut-before-commit", "lose-tail"]),
    ]


@pytest.fixture
def start(request):
    """A function that starts a cluster; the test is skipped if it is not among --databases, or cannot be started."""
    with contextlib.ExitStack() as stack:

        def started(name):
            return stack.enter_context(running_cluster(request, name))

        yield started


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("name", "workloads", "nemeses"), RUNS)
def test_no_invariant_is_violated(start, name, workloads, nemeses, seed):
    result = running.run(start(name), Plan(workloads, nemeses, SECONDS, seed, PEACE))
    assert result.history.events[0].nemesis == nemeses[0]
    succeeded = {one.process for one in result.history.operations if one.succeeded and one.process != FINAL}
    # On a busy machine not each of them has a reply in time.
    assert 2 * len(succeeded) > sum(catalogue.workload(name).clients for name in workloads)
    assert_sound(result)
