"""Documents contain the name of the node of a machine, because its provider is named by its uuid (docs: v1-names)."""

from __future__ import annotations

import pytest

from placement.db import batches
from placement.extensions.v1 import nodes
from tests.caller import NEW_CONSUMER
from tests.db import faults, sql_hooks
from tests.db.extensions.bare_metal import ME, Nodes
from tests.db.extensions.event_rows import key
from tests.db.faults import Plan, plant
from tests.db.in_process import placement

CLAIM = {"requests": [{"consumer": ME, "query": "resources=CUSTOM_BM:1"}]}
CLAIM["requests"][0] |= {name: NEW_CONSUMER[name] for name in ("project_id", "user_id", "consumer_type")}


@pytest.mark.parametrize("name", ["machine", None])
def test_claims_and_consumers_name_the_node(database, name):
    node = Nodes(database).node(name)
    service = placement(database)
    claimed = service("POST", "/v1/claims", body=CLAIM).body["results"][0]
    claim_read = service("GET", f"/v1/claims/{ME}").body
    extended = service("POST", f"/v1/claims/{ME}/extend", body={"expires_in": 60}).body
    [consumer] = service("GET", "/v1/consumers").body["consumers"]
    body = {"requests": [{**CLAIM["requests"][0], "keep": False, "consumer_generation": 1}]}
    dry_run = service("POST", "/v1/claims?dry_run=true", body=body).body["dry_run"]["body"]["results"][0]
    for document in (claimed, claim_read, extended, consumer, dry_run):
        allocation = document["allocations"][node]
        assert (allocation["name"], allocation.get("node")) == (node, name)
        assert ("node" in allocation) == (name is not None)


@pytest.mark.parametrize("name", ["machine", None])
def test_documents_of_providers_name_the_node(database, name):
    node = Nodes(database).node(name)
    service = placement(database)
    service("POST", "/v1/claims", body=CLAIM)
    [row] = service("GET", "/v1/overview").body["providers"]
    document = service("GET", f"/v1/providers/{node}").body
    explained = service("GET", "/v1/explain?resources=CUSTOM_BM:1").body
    expected = {"uuid": node, "name": node} | ({"node": name} if name else {})
    for provider in (row, document["provider"], document["tree"][0]):
        assert {**provider, **expected} == provider
        assert ("node" in provider) == (name is not None)
        assert provider["root"] == expected
    assert document["holders"][0]["provider"] == expected
    assert [step["removed"] for step in explained["steps"]] == [[expected], [expected]]
    service("DELETE", f"/v1/claims?consumer={ME}")
    [root] = service("GET", "/v1/capacity?resources=CUSTOM_BM:1").body["roots"]
    assert root["provider"] == expected


def test_a_page_of_many_machines_names_them(database, monkeypatch):
    monkeypatch.setattr("placement.extensions.v1.schemas.overview._PIECE", 2)
    monkeypatch.setattr("placement.extensions.v1.handlers.overview.MAX_UNSTREAMED", 2)
    machines = Nodes(database)
    names = {machines.node(f"machine-{number}"): f"machine-{number}" for number in range(5)}
    service = placement(database)
    providers = service("GET", "/v1/overview").body["providers"]
    assert {provider["uuid"]: provider["node"] for provider in providers} == names


def test_requests_can_name_a_provider_by_its_node(database):
    machines = Nodes(database)
    node, other = machines.node("machine"), machines.node("other")
    service = placement(database)
    by_name = {**CLAIM["requests"][0], "query": "resources=CUSTOM_BM:1&in_tree=machine"}
    [placed] = service("POST", "/v1/claims", body={"requests": [by_name]}).body["results"]
    assert [*placed["allocations"]] == [node]
    assert service("GET", "/v1/providers/machine").body["provider"]["uuid"] == node
    assert service("GET", "/v1/consumers?provider=machine").body["consumers"][0]["uuid"] == ME
    assert service("GET", "/v1/consumers?provider=other").body["consumers"] == []
    assert [provider["uuid"] for provider in service("GET", "/v1/overview?root=other").body["providers"]] == [other]
    assert service("GET", "/v1/capacity?resources=CUSTOM_BM:1&in_tree=machine").body["count"] == 0
    assert service("GET", "/v1/capacity?resources=CUSTOM_BM:1&in_tree=other").body["count"] == 1
    refused = service("GET", "/v1/capacity?resources=CUSTOM_BM:1&in_tree=Machine")
    assert (refused.status, refused.body["errors"][0]["field"]) == (400, "in_tree")
    document = {"groups": {"": {"resources": {"CUSTOM_BM": 1}, "in_tree": "other"}}}
    moved = {**by_name, "keep": False, "consumer_generation": 1, "query": document}
    [placed] = service("POST", "/v1/claims", body={"requests": [moved]}).body["results"]
    assert [*placed["allocations"]] == [other]


def test_the_sentences_of_an_explanation_name_the_node(database):
    machines = Nodes(database)
    machines.node("machine")
    uuid = machines.node("other")
    service = placement(database)
    explained = service("GET", f"/v1/explain?resources=CUSTOM_BM:2&in_tree={uuid}").body
    texts = [missing["text"] for near in explained["near_misses"] for missing in near["missing"]]
    assert texts == ["other has room for 1 of 2 CUSTOM_BM"]
    entry = {**CLAIM["requests"][0], "consumer": key(1), "query": "resources=CUSTOM_BM:1&in_tree=other"}
    assert service("POST", "/v1/claims", body={"requests": [entry]}).status == 200
    query = f"resources=CUSTOM_BM:1&in_tree={uuid}"
    explained = service("GET", f"/v1/explain?{query}").body
    refused = service("POST", "/v1/claims", body={"requests": [{**CLAIM["requests"][0], "query": query}]})
    for summary in (explained["summary"], refused.body["results"][0]["explanation"]["summary"]):
        assert summary.endswith("Without in_tree=other, there would be 1 candidate.")
    assert uuid not in refused.body["errors"][0]["detail"]


def test_the_machines_that_a_call_names_are_read_by_one_statement(database):
    machines = Nodes(database)
    uuids = [machines.node(f"machine-{number}") for number in range(5)]
    service = placement(database)
    queries = (f"resources=CUSTOM_BM:1&in_tree=machine-{number}" for number in range(5))
    entry = CLAIM["requests"][0]
    body = {"requests": [{**entry, "consumer": key(number), "query": query} for number, query in enumerate(queries, 1)]}
    statements = []
    with sql_hooks.statements(database.reading_engine, statements.append):
        placed = service("POST", "/v1/claims", body=body).body["results"]
    assert [[*result["allocations"]] for result in placed] == [[uuid] for uuid in uuids]
    assert sum(".name IN " in statement for statement in statements) == 1


def test_a_device_in_a_machine_has_the_node_as_its_parent(database):
    node = Nodes(database).node("machine")
    service = placement(database)
    service("POST", "/resource_providers", body={"name": "gpu", "parent_provider_uuid": node})
    tree = service("GET", f"/v1/providers/{node}").body["tree"]
    assert [(provider["name"], (provider["parent"] or {}).get("node")) for provider in tree] == [
        (node, None),
        ("gpu", "machine"),
    ]
    providers = service("GET", "/v1/overview").body["providers"]
    assert [(provider["parent"] or {}).get("node") for provider in providers] == [None, "machine"]


def test_a_provider_takes_precedence_over_a_node_with_the_same_name(database):
    machines = Nodes(database)
    node = machines.node("host1")
    service = placement(database)
    service("POST", "/resource_providers", body={"name": "host1"})
    uuid = service("GET", "/v1/providers/host1").body["provider"]["uuid"]
    assert uuid not in (node, None)
    assert service("GET", f"/v1/providers/{node}").body["provider"]["node"] == "host1"


def test_a_claim_is_answered_if_the_names_cannot_be_read(database, monkeypatch):
    Nodes(database).node("machine")
    service = placement(database)
    read = nodes.names_by_uuid

    def names_without_database(*arguments):
        with plant(database, Plan(1, [faults.lose], permanent=True)):
            return read(*arguments)

    monkeypatch.setattr(nodes, "names_by_uuid", names_without_database)
    answer = service("POST", "/v1/claims", body=CLAIM)
    assert (answer.status, answer.body["claimed"]) == (200, 1)


def test_the_names_of_many_nodes_are_read_by_several_statements(database, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_SIZE", 2)
    machines = Nodes(database)
    names = {machines.node(f"machine-{number}"): f"machine-{number}" for number in range(5)}
    statements = []
    with sql_hooks.statements(database.reading_engine, statements.append):
        assert database.read(nodes.names_by_uuid, [*names, key(1)]) == names
    assert {statement.partition(" IN ")[2].count(",") + 1 for statement in statements} == {2}, statements
    assert database.read(nodes.names_by_uuid) == names
