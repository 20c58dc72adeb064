"""Running clusters for tests, and assertions about results of runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jepsen import catalogue
from jepsen import run as runs
from jepsen.clusters.cluster import Cluster
from jepsen.history import RUNNER
from jepsen.run import Plan, Result, run
from tests import undecided
from tests.children import PATIENCE
from tests.conftest import chosen

# A busy machine must not make a run fail.
runs.RECOVERY = PATIENCE


@contextlib.contextmanager
def running_cluster(request: pytest.FixtureRequest, name: str, *args: Any, **options: Any) -> Iterator[Cluster]:
    """Run the cluster with this name; skip the test if its kind is not among --databases."""
    cls = catalogue.cluster(name)
    if cls.kind not in chosen(request.config):
        pytest.skip(f"{cls.kind} is not among --databases")
    with cls(*args, **options) as cluster:
        yield cluster


def assert_nothing_violated(result: Result, record_property: Callable[[str, object], None], *, slow: str = "") -> None:
    """Fail the test if an invariant is violated.

    A search without a verdict does not fail the test; it is recorded, together with any doubt due to a busy machine.
    """
    assert list(result.violations) == [], result.path
    reasons = [violation.sentence for violation in result.undecided]
    undecided.record(record_property, *reasons, *([f"history: {result.path}"] if reasons else []), slow=slow)


def assert_a_run_violates_nothing(request: pytest.FixtureRequest, name: str, plan: Plan) -> None:
    """Run a plan on a new cluster, and apply all checks.

    The cluster is not shared, because a nemesis may leave it in any state.
    """
    with running_cluster(request, name) as cluster:
        result = run(cluster, plan)
    assert result.history.events[0].nemesis == plan.nemeses[0]
    succeeded = {
        operation.process
        for operation in result.history.operations
        if operation.succeeded and operation.process != RUNNER
    }
    # On a busy machine some clients get no response in time.
    few_succeeded = 2 * len(succeeded) <= sum(catalogue.workload(name).clients for name in plan.workloads)
    slow = f"few clients succeeded: {len(succeeded)}" if few_succeeded else ""
    assert_nothing_violated(result, request.getfixturevalue("record_property"), slow=slow)
