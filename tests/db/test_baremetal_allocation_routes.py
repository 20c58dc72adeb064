"""The routes of allocations, with all layers: versions, bodies, queries, documents and refusals."""

from __future__ import annotations

import functools
import itertools
import json

import pytest

from placement import errors, signals
from placement.baremetal.objects import placing
from placement.baremetal.objects.node import Node
from placement.baremetal.objects.record import Record
from placement.baremetal.schemas import query as queries
from placement.db.transaction import Collision
from tests import web
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.metal import DATE, Client

KEYS = {
    *("uuid", "name", "node_uuid", "state", "last_error", "owner", "resource_class", "traits", "candidate_nodes"),
    *("extra", "created_at", "updated_at", "links"),
}
MISSING = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa"

#: Every row of these tables is in a gabbit, too, which runs on each database.


# --- create ----------------------------------------------------------------------------------------------------------


def test_the_reply_is_not_decided_and_the_next_one_is(client):
    node = client.node()
    answer = client("POST", "/allocations", {"resource_class": "bm", "name": "mine", "extra": {"a": {"b": [1.5]}}})
    assert answer.status == 201
    shown = answer.body
    assert set(shown) == KEYS
    link = f"http://metal/baremetal/v1/allocations/{shown['uuid']}"
    assert answer.headers["location"] == link
    assert shown["links"] == [
        {"href": link, "rel": "self"},
        {"href": link.replace("/v1", ""), "rel": "bookmark"},
    ]
    assert DATE.fullmatch(shown["created_at"])
    expected = {"state": "allocating", "node_uuid": None, "updated_at": None, "last_error": None, "owner": None}
    assert expected.items() <= shown.items()
    decided = client("GET", "/allocations/mine").body
    assert DATE.fullmatch(decided["updated_at"])
    changed = {"state": "active", "node_uuid": node, "updated_at": decided["updated_at"]}
    assert decided == {**shown, **changed}


@pytest.mark.parametrize(("owner", "project"), [("lab", "lab"), (None, "00000000-0000-0000-0000-000000000000")])
def test_the_consumer_is_of_the_owner_and_of_the_user(client, database, owner, project):
    client.node(owner="lab")
    headers = {"HTTP_X_AUTH_TOKEN": "alice:other", "HTTP_X_ROLES": "admin"}
    made = client("POST", "/allocations", {"resource_class": "bm", "owner": owner}, headers=headers).body
    consumer = placement(database)("GET", f"/allocations/{made['uuid']}", 39).body
    assert (consumer["project_id"], consumer["user_id"], consumer["consumer_type"]) == (project, "alice", "BAREMETAL")


def test_null_everywhere(client):
    node = client.node()
    nothing = dict.fromkeys(("traits", "candidate_nodes", "extra", "uuid", "owner", "node", "name"))
    shown = client.created(**nothing)
    assert (shown["node_uuid"], shown["traits"], shown["candidate_nodes"], shown["extra"]) == (node, [], [], {})


def test_names_of_candidates_become_uuids(client):
    nodes = [client.node("a"), client.node()]
    shown = client.created(candidate_nodes=["a", nodes[1].upper(), "a"])
    assert shown["candidate_nodes"] == [nodes[0], nodes[1], nodes[0]]


REFUSED = [
    ({}, 400, "The resource_class field is mandatory when not backfilling"),
    ({"resource_class": ""}, 400, "mandatory"),
    ({"resource_class": None, "node": ""}, 400, "mandatory"),
    ({"resource_class": "bm", "state": "active"}, 400, "'state' was unexpected"),
    ({"resource_class": "bm", "node_uuid": MISSING}, 400, "'node_uuid' was unexpected"),
    ({"resource_class": "bm", "last_error": "x"}, 400, "'last_error' was unexpected"),
    ({"resource_class": "x" * 81}, 400, "is too long"),
    ({"resource_class": 5}, 400, "is not of type"),
    ([], 400, "is not of type 'object'"),
    ({"resource_class": "bm", "traits": "CUSTOM_A"}, 400, "is not of type"),
    ({"resource_class": "bm", "traits": [None]}, 400, "is not of type"),
    ({"resource_class": "bm", "traits": ["x"]}, 400, "'x' is neither"),
    ({"resource_class": "bm", "traits": ["HW_CPU_NOPE"]}, 400, "'HW_CPU_NOPE' is neither"),
    ({"resource_class": "bm", "traits": ["CUSTOM_a"]}, 400, "'CUSTOM_a' is neither"),
    ({"resource_class": "bm", "traits": ["CUSTOM_" + "A" * 249]}, 400, "is too long"),
    ({"resource_class": "bm", "name": "a b"}, 400, "Cannot create allocation with invalid name 'a b'"),
    ({"resource_class": "bm", "name": ""}, 400, "invalid name ''"),
    ({"resource_class": "bm", "name": "a\n"}, 400, "invalid name"),
    ({"resource_class": "bm", "name": "a" * 256}, 400, "invalid name"),
    ({"resource_class": "bm", "name": 5}, 400, "is not of type"),
    ({"resource_class": "bm", "uuid": "x"}, 400, "Expected a UUID but received x."),
    ({"resource_class": "bm", "uuid": ""}, 400, "Expected a UUID"),
    ({"resource_class": "bm", "extra": []}, 400, "is not of type"),
    ({"resource_class": "bm", "owner": 5}, 400, "is not of type"),
    ({"resource_class": "bm", "owner": "x" * 256}, 400, "is too long"),
    ({"resource_class": "bm", "candidate_nodes": [5]}, 400, "is not of type"),
    ({"resource_class": "bm", "candidate_nodes": ["a b"]}, 400, "Expected a logical name or UUID but received a b."),
    ({"resource_class": "bm", "candidate_nodes": ["x", MISSING]}, 400, f"Nodes cannot be found: x, {MISSING}"),
    ({"node": "x"}, 400, "Node x could not be found."),
    ({"node": MISSING}, 400, f"Node {MISSING} could not be found."),
    ({"node": "a b"}, 400, "Expected a logical name or UUID but received a b."),
    ({"node": 5}, 400, "is not of type"),
]


@pytest.mark.parametrize(("body", "status", "sentence"), REFUSED)
def test_a_refused_request_leaves_nothing(client, body, status, sentence):
    node = client.node("n")
    answer = client("POST", "/allocations", body)
    assert answer.status == status, answer
    assert sentence in answer.body["faultstring"]
    assert client("GET", "/allocations").body == {"allocations": []}
    assert client("GET", f"/nodes/{node}/allocation").status == 404


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b'{"resource_class": "bm", "extra": {"a": 1e999}}', 400),
        (b'{"resource_class": "bm", "extra": {"a": NaN}}', 400),
        (b'{"resource_class": "bm", "extra": ' + b'{"a":' * 200 + b"1" + b"}" * 201, 400),
        (b'{"resource_class": "bm", "extra": ' + b'{"a":' * 90000 + b"1" + b"}" * 90001, 400),
        (b'{"resource_class": "bm", "extra": {"a": ' + b"9" * 18 + b"}}", 201),
        (b'{"resource_class": "bm", "extra": {"a": ' + b"9" * 20 + b"}}", 400),  # of more than 64 bits
        (b'{"resource_class": "bm", "extra": {"\\u00fc\\ud83d\\ude00": ""}}', 201),
        (b'{"resource_class": "bm\\u0000"}', 400),
        ('{"resource_class": "\N{GRINNING FACE}"}'.encode(), 201),
    ],
    ids=itertools.count(),
)
def test_odd_bodies(client, raw, status):
    answer = client("POST", "/allocations", raw=raw)
    assert answer.status == status, answer
    if status == 201:
        shown = client("GET", f"/allocations/{answer.body['uuid']}").body
        assert shown["extra"] == json.loads(raw).get("extra", {})
        assert shown["resource_class"] == json.loads(raw)["resource_class"]


def test_the_content_type_does_not_matter(client):
    headers = {"CONTENT_TYPE": "text/plain"}
    assert client("POST", "/allocations", {"resource_class": "bm"}, headers=headers).status == 201


def test_names_and_uuids_are_taken(client):
    first = client.created(name="mine")
    answers = [client("POST", "/allocations", {"resource_class": "bm", key: first[key]}) for key in ("name", "uuid")]
    assert [(answer.status, answer.body["faultstring"]) for answer in answers] == [
        (409, "An allocation with name mine already exists."),
        (409, f"An allocation with UUID {first['uuid']} already exists."),
    ]


def test_a_uuid_in_capitals_is_the_same(client):
    shown = client.created(uuid=MISSING.upper())
    assert shown["uuid"] == MISSING
    assert client("GET", f"/allocations/{MISSING.upper()}").body == shown


def test_a_name_like_a_uuid_is_no_address(client):
    shown = client.created(name=MISSING)
    assert shown["name"] == MISSING
    assert client("GET", f"/allocations/{MISSING}").status == 404


#: One for the choice, and seven for a claim on a known provider, events included.  The node is read and written; the
#: record is two: what else has its name, its uuid or its node, and its row.
_STATEMENTS = 12


def test_the_number_of_statements(client, own_insert, monkeypatch):
    """They take a round trip each, and most of the time; see test_statement_budget."""
    monkeypatch.setattr(placing, "_GUESS_AGE", 3600)  # on a slow machine a newer snapshot would be read
    for _ in range(3):
        client.node()
    client.created()  # from here on the names of project and user have ids
    plan = Plan()
    planted(client.database, plan)
    assert client("POST", "/allocations", {"resource_class": "bm"}).status == 201
    statements = plan.counted
    assert len(statements) <= _STATEMENTS + own_insert, statements


# --- backfill --------------------------------------------------------------------------------------------------------


def test_backfill_is_decided_at_once(client):
    node = client.node("n", provision_state="active")
    answer = client("POST", "/allocations", {"node": "n"})
    assert answer.status == 201
    expected = {"state": "active", "node_uuid": node, "resource_class": "bm"}
    assert expected.items() <= answer.body.items()
    assert answer.body["updated_at"]
    assert answer.body == client("GET", "/nodes/n/allocation").body
    again = client("POST", "/allocations", {"node": "n"})
    assert (again.status, again.body["faultstring"]) == (
        409,
        f"An allocation with UUID {answer.body['uuid']} already exists.",
    )
    other = client("POST", "/allocations", {"node": "n", "uuid": MISSING})
    assert (other.status, other.body["faultstring"]) == (
        409,
        f"Node {node} is associated with instance {answer.body['uuid']}.",
    )


def test_a_refused_backfill_leaves_nothing(client):
    client.node("n")
    body = {"node": "n", "resource_class": "x", "traits": ["CUSTOM_A"], "candidate_nodes": ["n"]}
    answer = client("POST", "/allocations", body)
    assert answer.status == 409
    for reason in (
        "state is 'available'",
        "class bm does not match the requested resource class x",
        "traits ['CUSTOM_A']",
    ):
        assert reason in answer.body["faultstring"]
    assert client("GET", "/allocations").body == {"allocations": []}
    assert client("GET", "/nodes/n/allocation").status == 404


# --- list ------------------------------------------------------------------------------------------------------------

BAD_QUERIES = [
    ("foo=1&detail=1", "Unexpected arguments: detail, foo"),
    ("state=active&state=error", "state"),
    ("limit=1&limit=1", "limit"),
    ("limit=0", "Limit must be positive"),
    ("limit=-1", "Limit must be positive"),
    ("limit=x", "Expected an integer for limit: x"),
    ("limit=1.0", "Expected an integer"),
    ("limit=", "Expected an integer"),
    ("limit=9999999999999999999999", "Expected an integer"),
    ("marker=x", "marker"),
    ("marker=", "marker"),
    ("sort_dir=up", "up"),
    ("node=nope", "Node nope could not be found."),
    ("node=a%20b", "a b"),
    ("node=", "Expected a logical name"),
    ("fields=foo,uuid", '"foo"'),
    *((f"sort_key={key}", key) for key in ("foo", "extra", "traits", "candidate_nodes", "node_uuid", "links")),
]


@pytest.mark.parametrize(("query", "sentence"), BAD_QUERIES)
def test_bad_queries(client, query, sentence):
    client.created()
    answer = client("GET", f"/allocations?{query}")
    assert answer.status == 400
    assert sentence in answer.body["faultstring"]


def test_an_unknown_marker_is_missing(client):
    assert client("GET", f"/allocations?marker={MISSING}").status == 404


def test_a_marker_need_not_match_the_filters(client):
    marker, other = client.created(owner="me")["uuid"], client.created(owner="you")["uuid"]
    page = client("GET", f"/allocations?owner=you&marker={marker}").body
    assert [item["uuid"] for item in page["allocations"]] == [other]


@pytest.mark.parametrize("query", ["state=x", "state=allocating", "resource_class=", "owner=", "owner=x"])
def test_what_matches_nothing(client, query):
    client.created()
    assert client("GET", f"/allocations?{query}").body == {"allocations": []}


@pytest.mark.parametrize("kind", ["allocations", "nodes"])
@pytest.mark.parametrize("limit", ["", "limit=100000&"])
def test_the_limit_is_capped_and_the_order_of_creation_may_be_turned(client, monkeypatch, kind, limit):
    monkeypatch.setattr(queries, "MAX_LIMIT", 2)
    made = [client.created(resource_class="x")["uuid"] if kind == "allocations" else client.node() for _ in range(3)]
    for direction, expected in (("asc", made[:2]), ("desc", made[:0:-1])):
        answer = client("GET", f"/{kind}?{limit}sort_dir={direction}").body
        assert [shown["uuid"] for shown in answer[kind]] == expected
        assert "&limit=2&" in answer["next"]


def test_next_repeats_the_whole_query(client):
    client.node("n")
    mine = [client.created(owner="me")["uuid"] for _ in range(3)]
    for _ in range(2):
        client.created(owner="you")
        client.created(resource_class="x", owner="me")
    query = "resource_class=bm&owner=me&state=error&fields=uuid,state&fields=name&sort_key=created_at&sort_dir=desc"
    found, page = [], client("GET", f"/allocations?{query}&limit=2").body
    for _ in range(3):
        found += page["allocations"]
        if "next" not in page:
            break
        base, _, rest = page["next"].partition("?")
        assert base == "http://metal/baremetal/v1/allocations"
        page = client("GET", f"/allocations?{rest}").body
    assert [item["uuid"] for item in found] == mine[::-1]
    assert {*itertools.chain.from_iterable(found)} == {"uuid", "state", "name", "links"}


def test_a_full_page_has_a_next_one_even_if_it_is_the_last(client):
    client.created()
    page = client("GET", "/allocations?limit=1").body
    last = client("GET", "/allocations?" + page["next"].partition("?")[2]).body
    assert last == {"allocations": []}


def test_fields_without_names_are_links_alone(client):
    client.created()
    [item] = client("GET", "/allocations?fields=,&limit=5").body["allocations"]
    assert set(item) == {"links"}


@pytest.mark.parametrize("prefix", ["/baremetal", "/baremetal/v1"])
def test_the_prefix_is_in_the_links(client, prefix):
    shown = client.created()
    page = client("GET", "/allocations/?limit=1", prefix=prefix).body
    assert page["allocations"] == [shown]
    assert page["next"].startswith("http://metal/baremetal/v1/allocations?sort_key=id&sort_dir=asc&limit=1&marker=")


def test_every_filter_with_node(client):
    node = client.node("n")
    shown = client.created(owner=None)
    for query in ("node=n", f"node={node}", "node=n&resource_class=bm", "node=n&state=active"):
        assert client("GET", f"/allocations?{query}").body["allocations"] == [shown], query
    for query in ("node=n&owner=x", "node=n&resource_class=x", "node=n&state=error"):
        assert client("GET", f"/allocations?{query}").body["allocations"] == [], query


# --- one -------------------------------------------------------------------------------------------------------------


def test_show_takes_fields_and_nothing_else(client):
    shown = client.created(name="mine")
    some = client("GET", "/allocations/mine?fields=name,uuid%20").body
    assert some == {key: shown[key] for key in ("name", "uuid", "links")}
    assert client("GET", "/allocations/mine?limit=1").status == 400
    assert client("GET", "/allocations/mine?fields=foo").status == 400
    missing, illegal = client("GET", "/allocations/nope"), client("GET", "/allocations/a b")
    assert (missing.status, missing.body["faultstring"]) == (404, "Allocation nope could not be found.")
    assert (illegal.status, illegal.body["faultstring"]) == (400, "Expected a logical name or UUID but received a b.")


# --- update ----------------------------------------------------------------------------------------------------------

PATCHES = [
    ([{"op": "replace", "path": "/name", "value": "new"}], {"name": "new"}),
    ([{"op": "add", "path": "/name", "value": None}], {"name": None}),
    ([{"op": "remove", "path": "/name"}], {"name": None}),
    ([{"op": "add", "path": "/extra/x~1y", "value": "v"}], {"extra": {"a": 1, "b": {"c": [1, 2]}, "x/y": "v"}}),
    (
        [{"op": "add", "path": "/extra/b/c/-", "value": {"k": [1.5]}}],
        {"extra": {"a": 1, "b": {"c": [1, 2, {"k": [1.5]}]}}},
    ),
    ([{"op": "replace", "path": "/extra/a", "value": True}], {"extra": {"a": True, "b": {"c": [1, 2]}}}),
    ([{"op": "remove", "path": "/extra/b/c/0"}], {"extra": {"a": 1, "b": {"c": [2]}}}),
    ([{"op": "replace", "path": "/extra", "value": {"z": None}}], {"extra": {"z": None}}),
    ([{"op": "remove", "path": "/extra"}], {"extra": {}}),
    ([{"op": "add", "path": "/extra", "value": None}], {"extra": {}}),
]


@pytest.mark.parametrize(("operations", "changed"), PATCHES)
def test_what_a_patch_changes(client, operations, changed):
    before = client.created(name="mine", extra={"a": 1, "b": {"c": [1, 2]}})
    answer = client("PATCH", "/allocations/mine", operations)
    assert answer.status == 200
    assert answer.body == {**before, **changed, "updated_at": answer.body["updated_at"]}
    assert answer.body["updated_at"] > before["updated_at"]
    assert client("GET", f"/allocations/{before['uuid']}").body == answer.body
    assert type(answer.body["extra"].get("a")) is type(changed.get("extra", before["extra"]).get("a"))


@pytest.mark.parametrize("operations", [[], [{"op": "replace", "path": "/extra/a", "value": 1}]])
def test_a_patch_that_changes_nothing(client, operations):
    before = client.created(name="mine", extra={"a": 1})
    assert client("PATCH", "/allocations/mine", operations).body == before


BAD_PATCHES = [
    [{"op": "add", "path": f"/{name}", "value": "x"}]
    for name in ("owner", "state", "traits", "uuid", "foo", "", "na~1me", "node_uuid")
]
BAD_PATCHES += [
    [{"op": "test", "path": "/name", "value": "mine"}],
    [{"op": "move", "from": "/name", "path": "/extra/a"}],
    [{"op": "copy", "from": "/name", "path": "/extra/a"}],
    [{"path": "/name", "value": "x"}],
    [{"op": "add", "value": "x"}],
    [{"op": "add", "path": "/name"}],
    {"op": "add"},
    [1],
    [{"op": "add", "path": "/name", "value": [1]}],
    [{"op": "add", "path": "/extra/f", "value": 1.5}],
    [{"op": "add", "path": "/extra", "value": "x"}],
    [{"op": "add", "path": "/extra/a/b", "value": 1}],
    [{"op": "add", "path": "/extra/x/y", "value": 1}],
    [{"op": "add", "path": "/extra/~2", "value": 1}],
    [{"op": "replace", "path": "/extra/x", "value": 1}],
    [{"op": "remove", "path": "/extra/x"}],
    [{"op": "add", "path": "/name/x", "value": 1}],
    [{"op": "add", "path": "name", "value": "x"}],
    [{"op": "add", "path": "", "value": {"name": "x"}}],
    [{"op": "add", "path": "/name", "value": "a b"}],
    [{"op": "add", "path": "/name", "value": ""}],
    [{"op": "add", "path": "/name", "value": 5}],
    [{"op": "add", "path": "/extra/a", "value": 2}, {"op": "remove", "path": "/extra/x"}],
]


@pytest.mark.parametrize("operations", BAD_PATCHES, ids=json.dumps)
def test_a_refused_patch_changes_nothing(client, operations):
    before = client.created(name="mine", extra={"a": 1})
    answer = client("PATCH", "/allocations/mine", operations)
    assert (answer.status, answer.body["faultcode"]) == (400, "Client")
    assert client("GET", f"/allocations/{before['uuid']}").body == before


def test_a_patch_is_applied_to_what_there_is(client):
    client.created(name="mine")
    client.created(name="yours")
    taken = client("PATCH", "/allocations/mine", [{"op": "add", "path": "/name", "value": "yours"}])
    assert (taken.status, taken.body["faultstring"]) == (409, "An allocation with name yours already exists.")
    assert client("PATCH", "/allocations/nope", []).status == 404
    assert client("PATCH", "/allocations/a b", []).status == 400


def test_an_active_allocation_is_renamed_and_keeps_its_node(client):
    client.node("n")
    before = client.created(name="mine")
    after = client("PATCH", "/allocations/mine", [{"op": "add", "path": "/name", "value": "n2"}]).body
    assert (after["node_uuid"], after["state"]) == (before["node_uuid"], "active")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/allocations", {"node": "n"}),
        ("PATCH", "/allocations/mine", []),
        ("DELETE", "/allocations/mine", None),
        ("DELETE", "/nodes/n/allocation", None),
    ],
)
def test_a_write_that_collides_has_the_attempts_of_the_option(database, monkeypatch, method, path, body):
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


# --- delete, and the allocation of a node ----------------------------------------------------------------------------


def test_delete(client):
    node = client.node("n")
    shown = client.created(name="mine")
    answer = client("DELETE", "/allocations/mine")
    assert (answer.status, answer.body, answer.headers.get("content-type")) == (204, None, None)
    assert client("DELETE", f"/allocations/{shown['uuid']}").status == 404
    assert client("GET", "/allocations").body == {"allocations": []}
    assert client.created()["node_uuid"] == node


def test_delete_of_a_node_in_use(client):
    node = client.node("n")
    shown = client.created()
    client.change(node, provision_state="active")
    for path in (f"/allocations/{shown['uuid']}", "/nodes/n/allocation"):
        answer = client("DELETE", path)
        assert (answer.status, answer.body["faultstring"]) == (
            409,
            f"Cannot remove allocation {shown['uuid']} for node {node}, because the node is active "
            "(and maintenance mode is off)",
        )
    client.change(node, maintenance=True)
    assert client("DELETE", "/nodes/n/allocation").status == 204
    assert client("DELETE", "/nodes/n/allocation").status == 404


def test_the_allocation_of_a_node(client):
    node = client.node("n")
    assert client("GET", "/nodes/n/allocation").body["faultstring"] == "Allocation for node n was not found."
    shown = client.created()
    for ident in (node, "n"):
        assert client("GET", f"/nodes/{ident}/allocation").body == shown
    assert client("GET", "/nodes/n/allocation?fields=uuid").body == {key: shown[key] for key in ("uuid", "links")}
    assert client("GET", "/nodes/n/allocation?fields=foo").status == 400
    assert client("GET", "/nodes/n/allocation?limit=1").status == 400
    assert client("GET", "/nodes/nope/allocation").status == 400
    assert client("DELETE", "/nodes/nope/allocation").status == 404


# --- methods and versions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("PUT", path) for path in ("/allocations", "/allocations/x", "/nodes/x/allocation")),
        *(("HEAD", path) for path in ("/allocations", "/allocations/x")),
        *((method, "/allocations") for method in ("DELETE", "PATCH")),
        ("POST", "/allocations/x"),
        *((method, "/nodes/x/allocation") for method in ("POST", "PATCH")),
        *((method, "/nodes/x/allocation/y/z") for method in ("GET", "POST")),
    ],
)
def test_other_methods(client, method, path):
    assert client(method, path, {}).status == 405


@pytest.mark.parametrize(
    ("version", "method", "path", "body", "status"),
    [
        ("1.51", "GET", "/allocations", None, 404),
        ("1.51", "GET", "/allocations/x", None, 404),
        ("1.51", "POST", "/allocations", {"resource_class": "bm"}, 405),
        ("1.51", "DELETE", "/allocations/x", None, 405),
        ("1.51", "GET", "/nodes/n/allocation", None, 404),
        ("1.51", "DELETE", "/nodes/n/allocation", None, 404),
        ("1.52", "GET", "/allocations", None, 200),
        ("1.52", "POST", "/allocations", {"resource_class": "bm"}, 201),
        ("1.52", "GET", "/nodes/n/allocation", None, 404),
        ("1.56", "PATCH", "/allocations/x", [], 405),
        ("1.57", "PATCH", "/allocations/x", [], 404),
        ("1.57", "POST", "/allocations", {"node": "n"}, 400),
        ("1.57", "POST", "/allocations", {"node": None, "resource_class": "bm"}, 400),
        ("1.58", "POST", "/allocations", {"node": "n"}, 409),
        ("1.59", "POST", "/allocations", {"owner": "x", "resource_class": "bm"}, 406),
        ("1.59", "POST", "/allocations", {"owner": None, "resource_class": "bm"}, 406),
        ("1.59", "GET", "/allocations?owner=x", None, 406),
        ("1.59", "GET", "/allocations?fields=owner", None, 400),
        ("1.60", "POST", "/allocations", {"owner": "x", "resource_class": "bm"}, 201),
        ("1.60", "GET", "/allocations?owner=x&fields=owner", None, 200),
    ],
)
def test_versions(client, version, method, path, body, status):
    client.node("n")
    assert client(method, path, body, version).status == status


def test_the_owner_is_shown_from_its_version_on(client):
    client.created(name="mine", owner="me")
    assert set(client("GET", "/allocations/mine", version="1.59").body) == KEYS - {"owner"}
    assert client("GET", "/allocations/mine", version="1.60").body["owner"] == "me"


def test_json_at_the_end_of_a_path(client):
    client.created(name="mine")
    assert client("GET", "/allocations/mine.json", version="1.90").status == 200
    assert client("GET", "/allocations/mine.json", version="1.91").status == 404


def test_no_parameters_where_there_are_none(client):
    client.created(name="mine")
    for method, path, body in (
        ("POST", "/allocations", {"resource_class": "bm"}),
        ("PATCH", "/allocations/mine", []),
        ("DELETE", "/allocations/mine", None),
        ("DELETE", "/nodes/n/allocation", None),
    ):
        assert client(method, f"{path}?foo=1", body).status == 400, path


def test_the_end_of_every_request_for_a_node_is_an_event(client):
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
        provider = client.created(uuid=holder)["node_uuid"]
        assert provider is not None
    finally:
        signals.node_requested.disconnect(listener)
    outcomes = ["no_nodes", "no_traits", "active", "backfilled", "active"]
    assert received == [(outcome, 0) for outcome in outcomes]
