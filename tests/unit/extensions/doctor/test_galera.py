"""The doctor's findings for a node of a Galera cluster, from its variables and status (docs: doctor)."""

from __future__ import annotations

import pytest

from placement.checks.check import Check, Subject
from placement.checks.finding import Severity
from placement.extensions.doctor import checks
from placement.extensions.doctor.examination import examine
from placement.extensions.doctor.server import node_findings
from tests.db.extensions.doctor.findings import plants

NODE = {"wsrep_on": "ON", "wsrep_node_name": "db1", "wsrep_cluster_address": "gcomm://db1,db2,db3"}
SOUND = {
    "wsrep_ready": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_local_state_comment": "Synced",
    "wsrep_cluster_size": "3",
}


def findings(variables, status):
    """Return the findings of the check for a node with these variables and this status."""
    check = Check("galera", lambda _: node_findings(variables, status), checks.DATABASE, needs_tables=False)
    return [finding for _, finding in examine(Subject(None, None), [check]).findings]


def test_a_healthy_node_has_no_finding():
    assert findings(NODE, SOUND) == []
    assert findings(NODE | {"wsrep_cluster_address": "gcomm://"}, SOUND) == []
    assert findings(NODE | {"wsrep_cluster_address": "gcomm://db1,db2,db3?gmcast.segment=1"}, SOUND) == []


@pytest.mark.parametrize(
    ("status", "severity", "words"),
    [
        ({"wsrep_ready": "OFF"}, Severity.ERROR, "not ready for queries"),
        ({"wsrep_cluster_status": "non-Primary"}, Severity.ERROR, "no primary component (non-Primary)"),
        ({"wsrep_cluster_status": "Disconnected"}, Severity.ERROR, "no primary component (Disconnected)"),
        ({"wsrep_local_state_comment": "Joined"}, Severity.WARNING, "not synchronised (Joined)"),
        ({"wsrep_cluster_size": "2"}, Severity.WARNING, "1 of the 3 nodes"),
    ],
)
@plants("galera", Severity.WARNING, Severity.ERROR)
def test_every_wrong_status_of_a_node_is_found(status, severity, words):
    [finding] = findings(NODE, SOUND | status)
    assert finding.severity is severity
    assert words in finding.what
    assert finding.fix


@plants("galera", Severity.INFO)
def test_a_cluster_of_two_nodes_is_reported():
    [finding] = findings(NODE | {"wsrep_cluster_address": "gcomm://db1,db2"}, SOUND | {"wsrep_cluster_size": "2"})
    assert finding.severity is Severity.INFO
