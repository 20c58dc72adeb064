"""The routes of allocations: bodies and queries beyond the gabbits, statements, collisions and events."""

from __future__ import annotations

import functools
import itertools
import json

import pytest

from placement import errors
from placement.db.writes.transaction import Collision
from placement.extensions.baremetal import signals
from placement.extensions.baremetal.objects import placing
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.schemas import query as queries
from tests import web
from tests.db.extensions.bare_metal import Client
from tests.db.faults import Plan, plant
from tests.db.in_process import placement

MISSING = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa"


# --- create ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("owner", "project"), [("lab", "lab"), (None, "00000000-0000-0000-0000-000000000000")])
def test_the_consumer_gets_the_owner_and_the_user(client, database, owner, project):
    client.node(owner="lab")
    headers = {"HTTP_X_AUTH_TOKEN": "alice:other", "HTTP_X_ROLES": "admin"}
    allocation = client("POST", "/allocations", {"resource_class": "bm", "owner": owner}, headers=headers).body
    consumer = placement(database)("GET", f"/allocations/{allocation['uuid']}", 39).body
    assert (consumer["project_id"], consumer["user_id"], consumer["consumer_type"]) == (project, "alice", "BAREMETAL")


def test_names_of_candidates_become_uuids(client):
    nodes = [client.node("a"), client.node()]
    allocation = client.create_allocation(candidate_nodes=["a", nodes[1].upper(), "a"])
    assert allocation["candidate_nodes"] == [nodes[0], nodes[1], nodes[0]]


INVALID_BODIES = [
    ({"resource_class": None, "node": ""}, "mandatory"),
    ({"resource_class": "bm", "traits": [None]}, "traits[0] is null"),
    ({"resource_class": "bm", "name": "a\n"}, "invalid name"),
    ({"resource_class": "bm", "name": "a" * 256}, "invalid name"),
    ({"resource_class": "bm", "uuid": ""}, "Expected a UUID"),
    ({"resource_class": "bm", "owner": 5}, "owner is 5"),
    ({"resource_class": "bm", "owner": "x" * 256}, "owner has 256 characters"),
    ({"resource_class": "bm", "candidate_nodes": [5]}, "candidate_nodes[0] is 5"),
    ({"node": MISSING}, f"Node {MISSING} could not be found."),
    ({"node": "a b"}, "Expected a logical name or UUID but received a b."),
    ({"node": 5}, "node is 5"),
]


@pytest.mark.parametrize(("body", "sentence"), INVALID_BODIES)
def test_a_refused_request_leaves_no_allocation(client, body, sentence):
    node = client.node("n")
    answer = client("POST", "/allocations", body)
    assert answer.status == 400, answer
    assert sentence in answer.body["faultstring"]
    assert client("GET", "/allocations").body == {"allocations": []}
    assert client("GET", f"/nodes/{node}/allocation").status == 404


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"resource_class": "bm", "extra": {"a": 1e999}}', 400),
        (b'{"resource_class": "bm", "extra": {"a": NaN}}', 400),
        (b'{"resource_class": "bm", "extra": ' + b'{"a":' * 200 + b"1" + b"}" * 201, 400),
        (b'{"resource_class": "bm", "extra": ' + b'{"a":' * 90000 + b"1" + b"}" * 90001, 400),
        (b'{"resource_class": "bm", "extra": {"a": ' + b"9" * 18 + b"}}", 201),
        (b'{"resource_class": "bm", "extra": {"a": ' + b"9" * 20 + b"}}", 400),  # more than 64 bits
        (b'{"resource_class": "bm", "extra": {"\\u00fc\\ud83d\\ude00": ""}}', 201),
        (b'{"resource_class": "bm\\u0000"}', 400),
        ('{"resource_class": "\N{GRINNING FACE}"}'.encode(), 201),
    ],
    ids=itertools.count(),
)
def test_unusual_bodies_are_parsed_or_refused(client, raw, status):
    answer = client("POST", "/allocations", raw=raw)
    assert answer.status == status, answer
    if status == 201:
        allocation = client("GET", f"/allocations/{answer.body['uuid']}").body
        assert allocation["extra"] == json.loads(raw).get("extra", {})
        assert allocation["resource_class"] == json.loads(raw)["resource_class"]


def test_a_uuid_in_capitals_identifies_the_same_allocation(client):
    allocation = client.create_allocation(uuid=MISSING.upper())
    assert allocation["uuid"] == MISSING
    assert client("GET", f"/allocations/{MISSING.upper()}").body == allocation


#: One statement for the choice, seven for a claim on a known provider with events, two for the read and the write of
#: the node, and two for the record: a search for its name, uuid and node, and its row.
_STATEMENTS = 12


def test_an_allocation_is_within_the_budget_of_statements(client, event_inserts, monkeypatch):
    """Each statement takes a round trip, and together they take most of the time; see test_statement_budget."""
    monkeypatch.setattr(placing, "MAX_SNAPSHOT_AGE", 3600)  # on a slow machine a newer snapshot would be read
    for _ in range(3):
        client.node()
    client.create_allocation()  # creates the names of the project and the user
    plan = Plan()
    plant(client.database, plan)
    assert client("POST", "/allocations", {"resource_class": "bm"}).status == 201
    statements = plan.statements_without_begin
    assert len(statements) <= _STATEMENTS + event_inserts, statements


# --- list ------------------------------------------------------------------------------------------------------------

BAD_QUERIES = [
    ("limit=1.0", "Expected an integer for limit: 1.0"),
    ("limit=9999999999999999999999", "Expected an integer"),
    ("node=a%20b", "a b"),
    ("node=", "Expected a logical name"),
    ("fields=foo,uuid", '"foo"'),
    ("sort_key=links", "links"),
]


@pytest.mark.parametrize(("query", "sentence"), BAD_QUERIES)
def test_an_invalid_query_is_refused(client, query, sentence):
    client.create_allocation()
    answer = client("GET", f"/allocations?{query}")
    assert answer.status == 400
    assert sentence in answer.body["faultstring"]


@pytest.mark.parametrize("query", ["state=allocating", "owner=", "owner=x"])
def test_a_filter_without_matches_returns_an_empty_list(client, query):
    client.create_allocation()
    assert client("GET", f"/allocations?{query}").body == {"allocations": []}


@pytest.mark.parametrize("kind", ["allocations", "nodes"])
@pytest.mark.parametrize("limit", ["", "limit=100000&"])
def test_the_limit_is_capped_and_the_order_of_creation_may_be_reversed(client, monkeypatch, kind, limit):
    monkeypatch.setattr(queries, "MAX_LIMIT", 2)
    uuids = [
        client.create_allocation(resource_class="x")["uuid"] if kind == "allocations" else client.node()
        for _ in range(3)
    ]
    for direction, expected in (("asc", uuids[:2]), ("desc", uuids[:0:-1])):
        answer = client("GET", f"/{kind}?{limit}sort_dir={direction}").body
        assert [document["uuid"] for document in answer[kind]] == expected
        assert "&limit=2&" in answer["next"]


def test_the_link_to_the_next_page_repeats_the_whole_query(client):
    client.node("n")
    uuids = [client.create_allocation(owner="me")["uuid"] for _ in range(3)]
    for _ in range(2):
        client.create_allocation(owner="you")
        client.create_allocation(resource_class="x", owner="me")
    query = "resource_class=bm&owner=me&state=error&fields=uuid,state&fields=name&sort_key=created_at&sort_dir=desc"
    allocations, page = [], client("GET", f"/allocations?{query}&limit=2").body
    for _ in range(3):
        allocations += page["allocations"]
        if "next" not in page:
            break
        base, _, next_query = page["next"].partition("?")
        assert base == "http://metal/baremetal/v1/allocations"
        page = client("GET", f"/allocations?{next_query}").body
    assert [item["uuid"] for item in allocations] == uuids[::-1]
    assert {*itertools.chain.from_iterable(allocations)} == {"uuid", "state", "name", "links"}


@pytest.mark.parametrize(("fields", "names"), [(",", {"links"}), ("name,uuid%20", {"name", "uuid", "links"})])
def test_the_list_of_fields_may_contain_empty_names_and_spaces(client, fields, names):
    client.create_allocation(name="mine")
    [item] = client("GET", f"/allocations?fields={fields}&limit=5").body["allocations"]
    assert client("GET", f"/allocations/mine?fields={fields}").body == item
    assert set(item) == names


@pytest.mark.parametrize("prefix", ["/baremetal", "/baremetal/v1"])
def test_the_prefix_is_in_the_links(client, prefix):
    allocation = client.create_allocation()
    page = client("GET", "/allocations/?limit=1", prefix=prefix).body
    assert page["allocations"] == [allocation]
    assert page["next"].startswith("http://metal/baremetal/v1/allocations?sort_key=id&sort_dir=asc&limit=1&marker=")


# --- update ----------------------------------------------------------------------------------------------------------

PATCHES = [
    (
        [{"op": "add", "path": "/extra/b/c/-", "value": {"k": [1.5]}}],
        {"extra": {"a": 1, "b": {"c": [1, 2, {"k": [1.5]}]}}},
    ),
    ([{"op": "replace", "path": "/extra/a", "value": True}], {"extra": {"a": True, "b": {"c": [1, 2]}}}),
    ([{"op": "remove", "path": "/extra/b/c/0"}], {"extra": {"a": 1, "b": {"c": [2]}}}),
    ([{"op": "add", "path": "/extra", "value": None}], {"extra": {}}),
]


@pytest.mark.parametrize(("operations", "changed"), PATCHES)
def test_a_patch_changes_the_named_fields(client, operations, changed):
    before = client.create_allocation(name="mine", extra={"a": 1, "b": {"c": [1, 2]}})
    answer = client("PATCH", "/allocations/mine", operations)
    assert answer.status == 200
    assert answer.body == {**before, **changed, "updated_at": answer.body["updated_at"]}
    assert answer.body["updated_at"] > before["updated_at"]
    assert client("GET", f"/allocations/{before['uuid']}").body == answer.body
    assert type(answer.body["extra"].get("a")) is type(changed.get("extra", before["extra"]).get("a"))


BAD_PATCHES = [
    *([{"op": "add", "path": f"/{name}", "value": "x"}] for name in ("uuid", "", "na~1me", "node_uuid")),
    [1],
    [{"op": "add", "path": "/name", "value": [1]}],
    [{"op": "add", "path": "/extra/x/y", "value": 1}],
    [{"op": "add", "path": "/extra/~2", "value": 1}],
    [{"op": "add", "path": "/name/x", "value": 1}],
    [{"op": "add", "path": "", "value": {"name": "x"}}],
]


@pytest.mark.parametrize("operations", BAD_PATCHES, ids=json.dumps)
def test_a_refused_patch_changes_nothing(client, operations):
    before = client.create_allocation(name="mine", extra={"a": 1})
    answer = client("PATCH", "/allocations/mine", operations)
    assert (answer.status, answer.body["faultcode"]) == (400, "Client")
    assert client("GET", f"/allocations/{before['uuid']}").body == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/allocations", {"node": "n"}),
        ("PATCH", "/allocations/mine", []),
        ("DELETE", "/allocations/mine", None),
        ("DELETE", "/nodes/n/allocation", None),
    ],
)
def test_a_write_that_collides_is_attempted_as_often_as_configured(database, monkeypatch, method, path, body):
    options = {"placement__allocation_conflict_retry_count": 3}
    monkeypatch.setattr(web, "configuration", functools.partial(web.configuration, **options))
    client, attempts = Client(database), []

    def collide(_cls, _db, ident):
        attempts.append(ident)
        raise Collision

    for kind, name in ((Node, "find"), (Record, "get")):
        monkeypatch.setattr(kind, name, classmethod(collide))
    answer = client(method, path, body)
    assert (answer.status, answer.body["faultstring"]) == (409, errors.AllocationsChanged().sentence)
    assert len(attempts) == 3


# --- methods and versions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "body", "status"), [("1.57", {"node": None}, 400), ("1.59", {"owner": None}, 406)])
def test_a_field_of_a_newer_version_is_refused_even_if_it_is_null(client, version, body, status):
    assert client("POST", "/allocations", {"resource_class": "bm", **body}, version).status == status


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_methods_below_the_allocation_of_a_node_are_not_allowed(client, method):
    assert client(method, "/nodes/x/allocation/y/z", {}).status == 405


@pytest.mark.parametrize("path", ["/allocations/mine", "/nodes/n/allocation"])
def test_a_deletion_with_parameters_is_refused(client, path):
    client.node("n")
    client.create_allocation(name="mine")
    assert client("DELETE", f"{path}?foo=1").status == 400
    assert client("GET", path).status == 200


def test_a_patch_to_an_invalid_name_is_refused(client):
    assert client("PATCH", "/allocations/a b", []).status == 400


def test_the_outcome_of_every_accepted_request_for_a_node_is_an_event(client):
    received = []

    def listener(*facts):
        received.append(facts)

    signals.node_requested.connect(listener)
    try:
        client.node(traits=["CUSTOM_A"])
        for body in (
            {"resource_class": "none"},
            {"resource_class": "bm", "traits": ["CUSTOM_B"]},
            {"resource_class": "bm", "name": "first"},
            {"resource_class": "bm", "name": "first"},  # refused
            {"node": client.node(provision_state="active")},
        ):
            client("POST", "/allocations", body)
        holder = client("GET", "/allocations/first").body["uuid"]
        assert client("DELETE", "/allocations/first").status == 204
        client.node()
        provider = client.create_allocation(uuid=holder)["node_uuid"]
        assert provider is not None
    finally:
        signals.node_requested.disconnect(listener)
    outcomes = ["no_nodes", "no_traits", "active", "backfilled", "active"]
    assert received == [(outcome, 0) for outcome in outcomes]
