"""What is held of a machine has the name of its node, since the name of its provider is its uuid (docs: v1-claims)."""

from __future__ import annotations

import pytest

from placement.extensions.v1.history import names
from tests.caller import NEW_CONSUMER
from tests.db import faults, sql_hooks
from tests.db.extensions.bare_metal import ME, Nodes
from tests.db.extensions.event_rows import key
from tests.db.faults import Plan, planted
from tests.db.in_process import placement

CLAIM = {"requests": [{"consumer": ME, "query": "resources=CUSTOM_BM:1"}]}
CLAIM["requests"][0] |= {name: NEW_CONSUMER[name] for name in ("project_id", "user_id", "consumer_type")}


@pytest.mark.parametrize("name", ["machine", None])
def test_claims_and_consumers_name_the_node(database, name):
    node = Nodes(database).node(name)
    service = placement(database)
    claimed = service("POST", "/v1/claims", body=CLAIM).body["results"][0]
    shown = service("GET", f"/v1/claims/{ME}").body
    extended = service("POST", f"/v1/claims/{ME}/extend", body={"expires_in": 60}).body
    [consumer] = service("GET", "/v1/consumers").body["consumers"]
    dry = {"requests": [{**CLAIM["requests"][0], "keep": False, "consumer_generation": 1}]}
    tried = service("POST", "/v1/claims?dry_run=true", body=dry).body["dry_run"]["body"]["results"][0]
    for held in (claimed, shown, extended, consumer, tried):
        found = held["allocations"][node]
        assert (found["name"], found.get("node")) == (node, name)
        assert ("node" in found) == (name is not None)


def test_a_claim_is_answered_if_the_names_cannot_be_read(database, monkeypatch):
    Nodes(database).node("machine")
    service = placement(database)
    read = names.of_nodes

    def of_nodes(*given):
        with planted(database, Plan(1, [faults.lose], for_ever=True)):
            return read(*given)

    monkeypatch.setattr(names, "of_nodes", of_nodes)
    done = service("POST", "/v1/claims", body=CLAIM)
    assert (done.status, done.body["claimed"]) == (200, 1)


def test_the_names_of_many_nodes_are_read_by_several_statements(database, monkeypatch):
    monkeypatch.setattr(names, "_AT_ONCE", 2)
    nodes = Nodes(database)
    created = {nodes.node(f"machine-{number}"): f"machine-{number}" for number in range(5)}
    seen = []
    with sql_hooks.statements(database.reading_engine, seen.append):
        assert database.read(names.of_nodes, [*created, key(1)]) == created
    assert {statement.partition(" IN ")[2].count(",") + 1 for statement in seen} == {2}, seen
    assert database.read(names.of_nodes) == created
