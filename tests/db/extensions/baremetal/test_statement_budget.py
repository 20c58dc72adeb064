"""The number of statements of a request for a node (tests/db/db/test_statement_budget.py)."""

from __future__ import annotations

from placement.extensions.baremetal.objects import placing
from tests.db.db.test_statement_budget import BUDGET
from tests.db.extensions.bare_metal import Client
from tests.db.faults import Plan, plant

#: Statements in addition to a claim's: one for the choice, two for the node, and two for the record.
ALLOCATION = 5


def test_a_request_for_a_node_is_within_the_budget(database, event_inserts, monkeypatch):
    monkeypatch.setattr(placing, "MAX_SNAPSHOT_AGE", 3600)  # on a slow machine a newer snapshot would be read
    client = Client(database)
    for _ in range(3):
        client.node()
    assert client("POST", "/allocations", {"resource_class": "bm"}).status == 201  # creates the names and the index
    plan = Plan()
    plant(database, plan)
    assert client("POST", "/allocations", {"resource_class": "bm"}).status == 201
    statements = plan.statements_without_begin
    assert len(statements) <= BUDGET + event_inserts + ALLOCATION, statements
    assert statements[-1] == "COMMIT"
    assert client("GET", "/allocations?state=error").body["allocations"] == []
