"""A member of a project can neither read nor change nodes of other projects (docs: baremetal-owners)."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import pytest

from placement.extensions.baremetal.api import TABLE
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.policy import Policy
from tests import web

ME, YOU = "mine", "yours"
#: A member of the project ME.
MEMBER = {"HTTP_X_AUTH_TOKEN": f"user:{ME}", "HTTP_X_ROLES": "member,reader"}
INSTANCE = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa"


@pytest.fixture
def member(client):
    return functools.partial(client, headers=MEMBER)


def add(name, value):
    return [{"op": "add", "path": f"/{name}", "value": value}]


# --- rules -----------------------------------------------------------------------------------------------------------

#: Routes about one node or allocation.
SINGLE_OBJECT_ROUTES = [(method, path) for path, methods in TABLE.items() if "{" in path for method in methods]
BODIES = {
    "/v1/nodes/{node}": [],
    "/v1/nodes/{node}/maintenance": {},
    "/v1/nodes/{node}/states/power": {"target": "power on"},
    "/v1/nodes/{node}/states/provision": {"target": "manage"},
    "/v1/nodes/{node}/traits": {"traits": []},
    "/v1/allocations/{allocation}": [],
}


@pytest.mark.parametrize(("method", "path"), SINGLE_OBJECT_ROUTES)
def test_the_rule_of_an_endpoint_is_checked_for_the_node_or_allocation_too(client, monkeypatch, method, path):
    """Other rules are not checked, except the rules of reading and of allocating nodes of any owner."""
    client.node("n", traits=["CUSTOM_A"])
    allocation = client.create_allocation()["uuid"] if "allocation" in path else None
    targets, authorize = [], Policy.authorize

    def note(self, rule, context, target=None):
        targets.append(rule)
        return authorize(self, rule, context, target)

    monkeypatch.setattr(Policy, "authorize", note)
    filled_path = path.format(node="n", allocation=allocation, trait="CUSTOM_A").removeprefix("/v1")
    answer = client(method, filled_path, BODIES.get(path) if method in ("PUT", "PATCH") else None)
    assert answer.status < 300, answer
    rule = TABLE[path][method].policy
    assert targets.count(rule) >= 2
    reading_rules = {"baremetal:node:get", "baremetal:allocation:get"}
    assert set(targets) - reading_rules - {rule, "baremetal:allocation:create_restricted"} == set()


# --- reads -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["", "&sort_key=description", "&sort_key=name&sort_dir=desc"])
@pytest.mark.parametrize("path", ["/nodes", "/nodes/detail"])
def test_a_foreign_node_as_a_marker_is_unknown(client, member, path, order):
    """The nodes after it would reveal its value."""
    client.node("a", owner=ME, details={"description": "a"})
    foreign = client.node("b", owner=YOU, details={"description": "b"})
    client.node("c", lessee=ME, details={"description": "c"})
    assert member("GET", f"{path}?marker={foreign}{order}").status == 404
    assert client("GET", f"{path}?marker={foreign}{order}").status == 200


@pytest.mark.parametrize("path", ["/nodes", "/nodes/detail"])
@pytest.mark.parametrize("query", [f"project={YOU}", f"owner={YOU}"])
def test_a_filter_by_a_foreign_project_shows_no_foreign_node(client, member, path, query):
    client.node("foreign", owner=YOU)
    client.node("leased", owner=YOU, lessee=ME)
    client.node("mine", owner=ME)
    assert [node["name"] for node in member("GET", f"{path}?{query}").body["nodes"]] == ["leased"]
    assert len(client("GET", f"{path}?{query}").body["nodes"]) == 2


def test_a_marker_need_not_match_the_other_filters(client, member):
    """A node that changed after its page was read is still a valid marker."""
    marker = client.node("a", owner=ME, resource_class="other")
    node = client.node("b", lessee=ME)
    listed = member("GET", f"/nodes?resource_class=bm&marker={marker}").body["nodes"]
    assert [listed_node["uuid"] for listed_node in listed] == [node]


def test_a_foreign_allocation_as_a_marker_is_unknown(client, member):
    client.create_allocation(owner=ME)
    foreign = client.create_allocation(owner=YOU)["uuid"]
    mine = client.create_allocation(owner=ME)
    assert member("GET", f"/allocations?marker={foreign}").status == 404
    assert client("GET", f"/allocations?marker={foreign}").body["allocations"] == [mine]


def test_a_foreign_node_as_a_parent_is_unknown(client, member):
    client.node("child", owner=ME)
    near, far = client.node("near", lessee=ME), client.node("far", owner=YOU)
    refused = member("PATCH", "/nodes/child", add("parent_node", "far"))
    unknown = member("PATCH", "/nodes/child", add("parent_node", "none"))
    assert (refused.status, refused.body["faultstring"]) == (400, unknown.body["faultstring"].replace("none", "far"))
    assert member("PATCH", "/nodes/child", add("parent_node", far)).status == 400
    assert member("PATCH", "/nodes/child", add("parent_node", "near")).body["parent_node"] == near
    assert client("PATCH", "/nodes/child", add("parent_node", "far")).body["parent_node"] == far


# --- writes ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stale(monkeypatch):
    """Return a function that makes the next read of a node return the member as its owner and lessee."""
    get = Node.get.__func__
    reads = []

    def read(cls, db, ident, *options):
        stored_node = get(cls, db, ident, *options)
        return replace(stored_node, owner=ME, lessee=ME) if reads and reads.pop() else stored_node

    monkeypatch.setattr(Node, "get", classmethod(read))
    return lambda: reads.append(True)


#: Existing traits: the creation of a trait would make the request read the node again.
_TRAITS = {"traits": ["HW_CPU_X86_VMX"]}
WRITES = [
    ("PUT", "/maintenance", {"reason": "broken"}),
    ("DELETE", "/maintenance", None),
    ("PUT", "/states/power", {"target": "power off"}),
    ("PUT", "/states/provision", {"target": "manage"}),
    ("PUT", "/states/provision", {"target": "deleted"}),
    ("PUT", "/traits", _TRAITS),
    ("PUT", "/traits/HW_CPU_X86_VMX", None),
    ("DELETE", "/traits/CUSTOM_A", None),
    ("DELETE", "/traits", None),
    ("PATCH", "", add("extra/a", 1)),
    ("PATCH", "", add("resource_class", "other")),
    ("PATCH", "", add("instance_uuid", INSTANCE)),
    ("DELETE", "", None),
]


@pytest.fixture
def deleting(tmp_path, monkeypatch):
    """Let owners delete their nodes."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps({"baremetal:node:delete": "role:member and project_id:%(node.owner)s"}))
    monkeypatch.setattr(web, "configuration", functools.partial(web.configuration, oslo_policy__policy_file=policy))


@pytest.mark.parametrize("owners", [{"owner": YOU}, {"owner": YOU, "lessee": ME}], ids=["another owner", "only leased"])
@pytest.mark.parametrize(("method", "path", "body"), WRITES)
@pytest.mark.usefixtures("deleting")
def test_a_node_that_changes_hands_before_it_is_locked_is_not_changed(
    client, member, stale, method, path, body, owners
):
    node = client.node("n", traits=["CUSTOM_A"], **owners)
    before = client("GET", f"/nodes/{node}").body
    stale()
    answer = member(method, f"/nodes/n{path}", body)
    if "lessee" in owners and "/states/" in path:
        # A lessee may do this, too; an available node is not undeployed.
        assert answer.status == (400 if body == {"target": "deleted"} else 202), answer
    else:
        assert answer.status == (403 if "lessee" in owners else 404), answer
        assert client("GET", f"/nodes/{node}").body == before


@pytest.mark.parametrize("previous", [{"owner": ME}, {"lessee": ME}])
@pytest.mark.parametrize("instance", [None, INSTANCE])
def test_a_node_that_changes_hands_before_it_is_locked_is_not_recorded(client, member, monkeypatch, instance, previous):
    foreign = client.node("n", owner=YOU, provision_state="active")
    if instance is not None:
        assert client("PATCH", "/nodes/n", add("instance_uuid", instance)).status == 200
    find = Node.find.__func__
    monkeypatch.setattr(Node, "find", classmethod(lambda cls, db, ident: replace(find(cls, db, ident), **previous)))
    monkeypatch.setattr(Node, "get", classmethod(lambda cls, db, ident, *_: find(cls, db, ident)))
    assert member("POST", "/allocations", {"node": "n"}).status == 409
    assert client("GET", "/allocations").body == {"allocations": []}
    associated = [node["uuid"] for node in client("GET", "/nodes?associated=true&fields=uuid").body["nodes"]]
    assert associated == ([] if instance is None else [foreign])


def test_a_foreign_allocation_is_not_locked(client, member, monkeypatch):
    """Otherwise a member could block allocations of other projects."""
    foreign = client.create_allocation(name="theirs", owner=YOU)
    mine = client.create_allocation(name="mine", owner=ME)
    locked = []
    lock = Record.lock.__func__
    monkeypatch.setattr(
        Record, "lock", classmethod(lambda cls, db, ident: locked.append(ident) or lock(cls, db, ident))
    )
    assert member("PATCH", "/allocations/theirs", add("extra/a", 1)).status == 404
    assert locked == []
    assert member("PATCH", "/allocations/mine", add("extra/a", 1)).body["extra"] == {"a": 1}
    assert locked == [mine["uuid"]]
    assert client("GET", f"/allocations/{foreign['uuid']}").body == foreign


def test_a_name_that_passes_to_a_foreign_allocation_does_not_address_it(client, member, monkeypatch):
    """The request locks the allocation that it found, not the allocation that has the name afterwards."""
    allocation = client.create_allocation(name="old", owner=ME)
    client.create_allocation(name="new", owner=YOU)
    get = Record.get.__func__
    monkeypatch.setattr(
        Record, "get", classmethod(lambda cls, db, ident: get(cls, db, "old" if ident == "new" else ident))
    )
    assert member("PATCH", "/allocations/new", add("extra/a", 1)).body["uuid"] == allocation["uuid"]


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PATCH", add("extra/a", 1))])
def test_an_allocation_created_by_another_project_meanwhile_stays(client, member, monkeypatch, method, body):
    """The new allocation has the uuid and the node of the allocation that the caller may change."""
    client.node("n", owner=ME, lessee=YOU)
    made = client.create_allocation(owner=ME)
    before = client.database.read(lambda db: Record.get(db, made["uuid"]))
    assert client("DELETE", f"/allocations/{made['uuid']}").status == 204
    foreign = client.create_allocation(uuid=made["uuid"], owner=YOU)
    get, stale = Record.get.__func__, [before]
    monkeypatch.setattr(
        Record, "get", classmethod(lambda cls, db, ident: stale.pop() if stale else get(cls, db, ident))
    )
    assert member(method, f"/allocations/{made['uuid']}", body).status == 404
    assert client("GET", f"/allocations/{foreign['uuid']}").body == foreign
    assert foreign["state"] == "active"
