"""Runs on each database with nemeses, judged by all checks; long test runs include more and longer ones."""

from __future__ import annotations

import pytest

from jepsen.run import Plan
from jepsen.tests.running import assert_a_run_violates_nothing
from tests.run_length import LONG

#: Seconds per nemesis, seconds before each, and number of seeds.
EACH, PEACE, SEEDS = (20.0, 3.0, 3) if LONG else (2.5, 0.5, 1)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(
    ("name", "workloads", "nemeses"),
    [
        ("sqlite", ["registers", "bank"], ["kill-worker", "pause-worker", "restore-backup"]),
        ("sqlite", ["places", "leases"], ["kill-worker", "pause-worker", "restore-backup"]),
        ("sqlite", ["trees"], ["pause-worker", "kill-worker", "service-clock"]),
        ("mariadb", ["leases", "trees"], ["cut-after-commit", "kill-worker", "lose-tail", "database-clock"]),
        ("mariadb", ["leases", "machines"], ["cut-after-commit", "kill-worker", "lose-tail", "database-clock"]),
        ("mariadb", ["bank", "trees"], ["kill-worker", "delay-packets", "drop-packets", "lose-tail"]),
        ("mariadb", ["registers"], ["kill-database", "cut-after-commit", "lock-rows"]),
        ("postgresql", ["places", "machines"], ["kill-database", "cut-before-commit", "lose-tail", "lock-rows"]),
        ("postgresql", ["trees", "registers"], ["cut-after-commit", "pause-database", "reset-connections"]),
        ("postgresql", ["bank"], ["kill-database", "cut-before-commit", "lose-tail"]),
    ],
)
def test_no_invariant_is_violated(request, name, workloads, nemeses, seed):
    assert_a_run_violates_nothing(request, name, Plan(workloads, nemeses, EACH * len(nemeses), seed, PEACE))
