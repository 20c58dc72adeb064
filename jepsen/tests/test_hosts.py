"""Hosts behind haproxy that are added, removed, killed and upgraded under load.

Orderly changes lose no request: each gets a response other than an error of the service or haproxy.
"""

from __future__ import annotations

from collections import Counter

import pytest

from jepsen.checker.replies import abandoned_at
from jepsen.clusters import older_version
from jepsen.clusters.hosts import server_name
from jepsen.history import History, Operation
from jepsen.run import Plan, run
from jepsen.tests.running import assert_nothing_violated, running_cluster
from placement import extension
from placement.db.schema import schema
from tests import children, servers
from tests.made import opened
from tests.run_length import LONG

CLUSTERS = ("mariadb-hosts", "postgresql-hosts", "galera-hosts")
WORKLOADS = ("registers", "bank")
ORDERLY = ("add-and-remove-host", "restart-hosts")


def hosts(request, name, **options):
    """Run the cluster; skip the test if it cannot run."""
    # Otherwise threads are refused if a busy machine holds a lock for more than five seconds.
    return running_cluster(request, name, {"placement_database": {"max_threads": 0}}, **options)


@pytest.fixture
def run_nemeses(record_property):
    """Return a function that runs the nemeses and returns a history without violations."""

    def history_of(cluster, *nemeses):
        seconds, peace = (max(120, 60 * len(nemeses)), 3) if LONG else (2, 0.5)
        result = run(cluster, Plan(WORKLOADS, nemeses, seconds, peace=peace))
        assert_nothing_violated(result, record_property)
        assert {event.nemesis for event in result.history.events} == {*nemeses}
        return result.history

    return history_of


def operations_without_response(history: History):
    return [operation for operation in history.operations if operation.is_open or operation.status >= 500]


def is_cut_off(operation: Operation):
    """Whether there is no response of the service: none at all, or one of haproxy, which is not JSON."""
    return operation.status == 0 or isinstance(operation.reply, str)


def requests_killed_with_host(history: History):
    """Count the requests in flight on each host when it was killed, by host, method and path."""
    abandoned = abandoned_at(history.operations)
    kills = sorted((event for event in history.events if event.nemesis == "kill-host"), key=lambda event: event.began)
    counts = Counter()
    for operation in history.operations:
        if is_cut_off(operation):
            [event, *_] = (
                kill for kill in kills if kill.began <= abandoned[operation.number] and operation.began <= kill.spares
            )
            counts[server_name(event.detail["host"]), operation.method, operation.path] += 1
    return counts


def older_tree(commit, name):
    """Unpack the commit that a function returns; skip the test if there is no release."""
    try:
        return older_version.tree(commit(), children.run_directory() / f"{commit.__name__}-{name}")
    except older_version.NoRelease as reason:
        pytest.skip(f"no release before this one: {reason}")
    except older_version.NoHistory as reason:
        raise servers.Missing(reason) from reason


def schema_deficiency(cluster):
    """Return the first deficiency of the schema for this version and all extensions; None if it is complete."""
    additions = extension.additions_of(extension.installed_extensions().values())
    with opened(cluster.database_url) as database:
        return schema.finding(database.engine, additions)


@pytest.fixture(scope="module", params=CLUSTERS if LONG else ["postgresql-hosts"])
def cluster(request):
    """A shared cluster, which takes longer to start than a short run."""
    with hosts(request, request.param) as running:
        yield running


@pytest.mark.xdist_group("hosts")
@pytest.mark.parametrize("nemesis", ORDERLY if LONG else ORDERLY[:1])
def test_orderly_host_changes_lose_no_request(cluster, nemesis, run_nemeses):
    assert not operations_without_response(run_nemeses(cluster, nemesis))


@pytest.mark.xdist_group("hosts")
def test_a_killed_host_loses_only_requests_in_flight(cluster, run_nemeses):
    history = run_nemeses(cluster, "kill-host")
    assert all(is_cut_off(operation) for operation in operations_without_response(history))
    assert cluster.requests_cut_off() == requests_killed_with_host(history)
    assert not LONG or requests_killed_with_host(history)


@pytest.mark.skipif(not LONG, reason="a long run: make test-long")
@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("commit", [older_version.before_newest_migration, older_version.last_release])
def test_rolling_upgrades_lose_no_request(request, commit, name, run_nemeses):
    """The older version serves alongside this one, before and after ``placement-manage db sync``."""
    tree = older_tree(commit, name)
    with hosts(request, name, module=older_version.MODULE, tree=tree) as cluster:
        assert {older_version.directory_of_service(service.url) for service in cluster.services} == {tree}
        assert schema_deficiency(cluster) or commit is older_version.last_release
        history = run_nemeses(cluster, "upgrade-hosts")
        assert schema_deficiency(cluster) is None
        assert {event.detail["tree"] for event in history.events} == {str(tree)}
        assert not operations_without_response(history)


@pytest.mark.skipif(not LONG, reason="a long run: make test-long")
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_host_killed_during_primary_changes_cuts_off_only_requests_in_flight(request, name, run_nemeses):
    database_nemeses = ("kill-node", "restart-nodes") if name == "galera-hosts" else ("switch-over", "fail-over")
    with hosts(request, name) as cluster:
        history = run_nemeses(cluster, "kill-host", database_nemeses[0], "restart-hosts", database_nemeses[1])
        assert cluster.requests_cut_off() == requests_killed_with_host(history)
