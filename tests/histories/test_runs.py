"""One short run on each database, whose history the package ``jepsen`` records and judges.

``make jepsen`` starts longer runs, also on pairs, Galera clusters and several hosts.
"""

from __future__ import annotations

import pytest

from jepsen.run import Plan
from jepsen.tests.running import assert_a_run_violates_nothing


@pytest.mark.parametrize(
    ("name", "workloads", "nemesis"),
    [
        ("sqlite", ["registers", "bank"], "kill-worker"),
        ("mariadb", ["leases", "trees"], "cut-after-commit"),
        ("postgresql", ["places", "machines"], "kill-database"),
    ],
)
def test_no_invariant_is_violated(request, name, workloads, nemesis):
    """Each run has one nemesis, because a short run on a slow machine may not reach a second one."""
    assert_a_run_violates_nothing(request, name, Plan(workloads, [nemesis], seconds=2.5, peace=0.5))
