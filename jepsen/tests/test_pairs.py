"""Runs on a primary and its replica, whose roles are exchanged back and forth."""

from __future__ import annotations

import pytest

from jepsen.run import Plan, run
from jepsen.tests.running import assert_nothing_violated, running_cluster
from tests.run_length import LONG

CLUSTERS = ("mariadb-pair", "postgresql-pair")
SYNCHRONOUS = ("mariadb-pair-semisync", "postgresql-pair-sync")
NEMESES = ("switch-over", "switch-over-unfenced", "fail-over") if LONG else ("switch-over", "fail-over")
#: All runs on one pair share a process, which starts it once.
PAIRS = [
    pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in (*CLUSTERS, *(SYNCHRONOUS if LONG else ()))
]


@pytest.fixture(scope="module", params=PAIRS)
def pair(request):
    with running_cluster(request, request.param) as cluster:
        yield cluster


@pytest.mark.parametrize("nemesis", NEMESES)
def test_the_roles_are_exchanged_back_and_forth(pair, nemesis, record_property):
    if nemesis == "fail-over" and pair.waits_for_replica:
        nemesis = "fail-over-synchronous"
    roles = [server.port for server in pair.servers]
    result = run(
        pair, Plan(["registers"], [nemesis], seconds=120) if LONG else Plan(["registers"], [nemesis], 4, peace=0.3)
    )
    assert_nothing_violated(result, record_property)
    for event in result.history.events:
        roles.reverse()
        assert event.detail["primary"] == roles[0]
    assert [server.port for server in pair.servers] == roles
