"""What tests of runs share: a running cluster, and what they require of a result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jepsen import catalogue
from jepsen.clusters.cluster import Cluster
from jepsen.history import FINAL
from jepsen.run import Plan, Result, run
from tests import undecided
from tests.conftest import chosen


@contextlib.contextmanager
def running_cluster(request: pytest.FixtureRequest, name: str, *args: Any, **options: Any) -> Iterator[Cluster]:
    """Provide the cluster of this name; skip the test if its kind is not among --databases."""
    cls = catalogue.cluster(name)
    if cls.kind not in chosen(request.config):
        pytest.skip(f"{cls.kind} is not among --databases")
    with cls(*args, **options) as cluster:
        yield cluster


def assert_nothing_violated(result: Result, record_property: Callable[[str, object], None], *doubts: str) -> None:
    """Fail the test if something is violated.

    Where a search found no verdict, nothing is known to be wrong or right.  That is recorded, with any other doubts of
    the test.
    """
    assert list(result.violations) == [], result.path
    reasons = [*doubts, *(one.sentence for one in result.undecided)]
    undecided.record(record_property, *reasons, *([f"history: {result.path}"] if reasons else []))


def assert_a_run_violates_nothing(request: pytest.FixtureRequest, name: str, plan: Plan) -> None:
    """Run a plan on a cluster of its own, because a nemesis may leave any state behind, and judge it by all checks."""
    with running_cluster(request, name) as cluster:
        result = run(cluster, plan)
    assert result.history.events[0].nemesis == plan.nemeses[0]
    succeeded = {one.process for one in result.history.operations if one.succeeded and one.process != FINAL}
    doubts = []
    if 2 * len(succeeded) <= sum(catalogue.workload(name).clients for name in plan.workloads):
        # As on a busy machine, where not each client has a reply in time.
        doubts.append(f"few clients succeeded: {len(succeeded)}")
    assert_nothing_violated(result, request.getfixturevalue("record_property"), *doubts)
