"""One short run on each database, of which the package ``jepsen`` records and judges the history.

``make jepsen`` has longer runs, and those of pairs, Galera clusters and hosts.
"""

from __future__ import annotations

import pytest

from jepsen.run import Plan
from jepsen.tests.running import assert_a_run_violates_nothing


@pytest.mark.parametrize(
    ("name", "workloads", "nemeses"),
    [
        ("sqlite", ["registers", "bank"], ["kill-worker", "pause-worker"]),
        ("mariadb", ["leases", "trees"], ["cut-after-commit", "kill-worker", "lose-tail"]),
        ("postgresql", ["places", "machines"], ["kill-database", "cut-before-commit", "lock-rows"]),
    ],
)
def test_no_invariant_is_violated(request, name, workloads, nemeses):
    assert_a_run_violates_nothing(request, name, Plan(workloads, nemeses, seconds=2.5, peace=0.5))
