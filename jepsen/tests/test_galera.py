"""Runs on three Galera nodes behind haproxy, with writes to one or all of them."""

from __future__ import annotations

import pytest

from jepsen import catalogue
from jepsen.clusters.galera import NODES
from jepsen.nemeses.nodes import PartitionNode
from jepsen.run import Plan, run
from jepsen.tests.running import assert_nothing_violated, running_cluster
from tests.namespaces import GROUP
from tests.run_length import LONG

NEMESES = [name for name, path in catalogue.NEMESES.items() if path.startswith("nemeses.nodes:")]
CLUSTERS = ("galera", "galera-all") if LONG else ("galera",)
WORKLOADS = ("registers", "bank", "trees")


@pytest.fixture(scope="module", params=CLUSTERS)
def galera(request):
    with running_cluster(request, request.param) as cluster:
        yield cluster


@pytest.mark.skipif(not LONG, reason="a long run: make test-long")
def test_a_group_without_a_primary_view_is_bootstrapped(galera):
    """Each node is alone when one dies, so no two are a majority of the last primary view."""
    first, *remaining = galera.nodes.nodes
    with galera.nodes.network.cut([node.host for node in galera.nodes.nodes], [GROUP]):
        first.child.wait_until(lambda: not any(node.is_primary() for node in remaining))
        first.kill()
    galera.nodes.join([first])
    galera.wait_until_complete()


@pytest.mark.skipif(not LONG, reason="a long run: make test-long")
@pytest.mark.parametrize("number", [1, NODES])
def test_nodes_that_have_left_the_group_are_restarted(galera, number):
    nodes = galera.nodes.nodes
    for node in nodes[:number]:
        node.leave()
    assert [node.is_primary() for node in nodes] == [False] * number + [True] * (len(nodes) - number)
    galera.wait_until_complete()
    assert all(node.is_primary() for node in nodes)


@pytest.mark.parametrize("nemesis", NEMESES if LONG else [PartitionNode.name])
def test_failures_of_nodes_violate_nothing(galera, nemesis, record_property):
    plan = Plan(WORKLOADS, [nemesis], seconds=120.0) if LONG else Plan(["registers", "bank"], [nemesis], 9.0, peace=1.0)
    result = run(galera, plan)
    assert result.history.events
    assert_nothing_violated(result, record_property)
