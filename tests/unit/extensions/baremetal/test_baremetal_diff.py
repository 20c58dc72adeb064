"""The comparison of two Bare Metal API services: differences, the shrinking of a run, and generated requests."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tools.baremetal import known, node_requests, replies, requests, runs
from tools.baremetal.servers import CLASSIC, SYMBOL, Reply, Request, Server, unknown
from tools.baremetal.world import World

ROOT = Path(__file__).resolve().parents[4]
A_UUID, B_UUID = "0c1d8a3e-4f0f-4f26-9c59-9b3b4a3a0001", "0c1d8a3e-4f0f-4f26-9c59-9b3b4a3a0002"
SHOW = Request("GET", "/v1/allocations/a1")


class Scripted(Server):
    """A service that takes its responses from a dictionary, by method and path, and records the requests."""

    def __init__(self, url="http://a:1", answers=None):
        super().__init__(url)
        self.answers, self.received = answers or {}, []

    def _send(self, request):
        self.received.append((request.method, self.substitute(request.path)))
        answer = self.answers.get(self.received[-1], Reply(404, {}, error("Client", "nothing there")))
        return answer.pop(0) if isinstance(answer, list) else answer


def error(fault, sentence):
    return json.dumps({"error_message": json.dumps({"faultcode": fault, "faultstring": sentence, "debuginfo": None})})


def reply(document, status=200, **headers):
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(document))


def lines(a, b, request=SHOW, alike=False, servers=None):
    """Return the differences between two responses."""
    pair = runs.Pair(*(servers or (Scripted("http://a:1"), Scripted("http://b:2/baremetal"))), alike=alike)
    return pair._compare(request, replies.comparable(a, pair.a), replies.comparable(b, pair.b))


def test_dates_and_base_urls_do_not_differ():
    a = {"created_at": "2026-11-20T08:11:35.396209+00:00", "links": [{"href": "http://a:1/v1/allocations/x"}]}
    b = {"created_at": "2026-11-21T09:00:00.000001+00:00", "links": [{"href": "http://b:2/baremetal/v1/allocations/x"}]}
    assert lines(reply(a), reply(b)) == []


def test_the_order_of_traits_in_a_sentence_does_not_differ():
    a, b = ({"last_error": f"no nodes have the requested traits {names}."} for names in ("A_1, B, C", "C, A_1, B"))
    assert lines(reply(a), reply(b)) == []
    assert lines(reply(a), reply({"last_error": "no nodes have the requested traits A_1, B, D."}))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"created_at": "2026-11-20T08:11:35.396209+00:00"}, {"created_at": "2026-11-20 08:11:35"}),
        ({"updated_at": None}, {"updated_at": "2026-11-20T08:11:35.396209+00:00"}),
        ({"links": ["http://a:1/v1/x"]}, {"links": ["http://b:2/v1/x"]}),
        ({"maintenance": False}, {"maintenance": 0}),
        ({"traits": ["A", "B"]}, {"traits": ["B", "A"]}),
        ({"traits": []}, {"traits": ["A"]}),
        ({"name": "x"}, {}),
        ({}, {"name": None}),
    ],
)
def test_other_values_differ(a, b):
    assert lines(reply(a), reply(b))


def test_statuses_and_headers_that_clients_read_differ():
    assert lines(reply({}), reply({}, 201)) == ["status: A=200 B=201"]
    differs = lines(reply({}, x_openstack_ironic_api_version="1.52", date="now"), reply({}, date="later"))
    assert [line.partition(":")[0] for line in differs] == ["headers.x-openstack-ironic-api-version"]
    assert lines(reply({}, x_openstack_request_id="req-1"), reply({}, x_openstack_request_id="req-2")) == []


def test_uuids_that_the_services_choose_are_compared_by_their_symbol():
    servers = Scripted("http://a:1"), Scripted("http://b:2")
    for server, uuid in zip(servers, (A_UUID, B_UUID), strict=True):
        server.answers["POST", "/v1/allocations"] = reply({"uuid": uuid}, 201)
        server.send(Request("POST", "/v1/allocations", {}, makes="$a1$"))
        server.send(Request("GET", "/v1/allocations/$a1$"))
        assert server.received[-1] == ("GET", f"/v1/allocations/{uuid}")
    a, b = ({"uuid": uuid, "last_error": f"Failed: {uuid}"} for uuid in (A_UUID, B_UUID))
    assert lines(reply(a), reply(b), servers=servers) == []
    assert lines(reply(a), reply({**b, "uuid": A_UUID}), servers=servers)


def test_a_symbol_without_a_uuid_becomes_an_unused_uuid():
    server = Scripted()
    assert server.substitute("/v1/nodes/$n1$") == f"/v1/nodes/{unknown('$n1$')}"
    assert SYMBOL.fullmatch("$n1$")


def test_messages_differ_only_if_one_of_a_conflict_lacks_a_name():
    request = Request("POST", "/v1/allocations", {"resource_class": "gold", "name": "a-1"})
    a = Reply(409, {}, error("Client", "The name 'a-1' is used."))
    assert lines(a, Reply(409, {}, error("Client", "taken: a-1")), request) == []
    assert len(lines(a, Reply(409, {}, error("Client", "taken")), request)) == 1
    assert len(lines(a, Reply(409, {}, error("Server", "taken: a-1")), request)) == 1
    assert lines(a, Reply(409, {}, json.dumps({"error_message": "taken: a-1"})), request)
    two_mistakes = (Reply(400, {}, error("Client", text)) for text in ("no name 'a-1'", "no class 'gold'"))
    assert lines(*two_mistakes, request) == []


NODE = {"uuid": A_UUID, "driver": "fake-hardware", "updated_at": None, "conductor": None}
ROUTING = Reply(404, {}, json.dumps({"error_message": json.dumps({"code": 404, "title": "x", "description": ""})}))
EMPTY_LIST = reply({"allocations": []})
MISSING, BAD = Reply(404, {}, error("Client", "gone")), Reply(400, {}, error("Client", "bad"))


@pytest.mark.parametrize(
    ("sent_request", "a", "b", "reverse"),
    [
        # Intended differences; ``reverse``: whether the exchanged responses differ.
        (Request("GET", "/v1/ports"), reply({"ports": []}), ROUTING, True),
        (Request("HEAD", "/v1"), reply({}), Reply(405, {}, ""), True),
        (Request("POST", "/v1", {}), reply({"id": "v1"}), Reply(405, {}, error("Client", "no")), True),
        (Request("GET", "/v1/allocations?node=x&owner=y"), Reply(500, {}, error("Server", "oh")), EMPTY_LIST, True),
        (Request("GET", "/v1/allocations?fields=a,b&fields=c"), BAD, EMPTY_LIST, True),
        (Request("GET", "/v1/nodes?fields=created_at"), BAD, reply({"nodes": []}), True),
        (Request("GET", "/v1/allocations?marker=x&limit=y"), MISSING, BAD, False),
        (Request("GET", "/v1/allocations/x.json", version=90), reply({}), MISSING, False),
        (Request("GET", "/v1/nodes/x"), reply({**NODE, "conductor": "peer"}), reply(NODE), True),
        (Request("GET", "/v1/nodes/x"), reply({**NODE, "updated_at": "2026-11-20T08:11:35+00:00"}), reply(NODE), True),
    ],
)
def test_intended_differences_are_not_reported(sent_request, a, b, reverse):
    assert lines(a, b, sent_request) == []
    assert lines(a, b, sent_request, alike=True)
    assert bool(lines(b, a, sent_request)) == reverse


@pytest.mark.parametrize(
    ("sent_request", "a", "b"),
    [
        (Request("GET", "/v1/nodes"), reply({"nodes": []}), ROUTING),
        (Request("GET", "/v1/allocations/x.json", version=91), reply({}), MISSING),
        (Request("DELETE", "/v1/allocations/x"), MISSING, BAD),
        (Request("GET", "/v1/allocations?node=x"), Reply(500, {}, error("Server", "oh")), EMPTY_LIST),
        (Request("GET", "/v1/nodes?fields=uuid"), BAD, reply({"nodes": []})),
        (Request("GET", "/v1/nodes/x"), reply({**NODE, "conductor": "peer"}), reply({**NODE, "conductor": "other"})),
    ],
)
def test_a_difference_similar_to_an_intended_one_is_reported(sent_request, a, b):
    assert lines(a, b, sent_request)


def test_an_internal_error_of_the_original_is_a_refusal_here():
    a, b = Reply(500, {}, error("Server", "boom")), Reply(409, {}, error("Client", "no"))
    assert lines(a, b) == []
    assert lines(a, b, alike=True)
    assert lines(b, a)
    assert lines(a, reply({}))


def test_only_the_filters_are_ignored_in_next():
    request = Request("GET", "/v1/allocations?resource_class=x&limit=1")
    page = {"allocations": [], "next": "http://a:1/v1/allocations?sort_key=id&sort_dir=asc&limit=1&marker=u"}

    def b(query):
        return reply({"allocations": [], "next": f"http://b:2/baremetal/v1/allocations?{query}"})

    assert lines(reply(page), b("resource_class=x&sort_key=id&sort_dir=asc&limit=1&marker=u"), request) == []
    assert lines(reply(page), b("resource_class=x&sort_key=id&sort_dir=asc&limit=2&marker=u"), request)
    assert lines(reply(page), b("state=x&sort_key=id&sort_dir=asc&limit=1&marker=u"), request)


def test_a_request_that_meets_a_locked_node_is_repeated(monkeypatch):
    monkeypatch.setattr("tools.baremetal.servers.time.sleep", lambda _: None)
    locked = Reply(409, {}, error("Client", "Node x is locked by host peer"))
    server = Scripted(answers={("DELETE", "/v1/nodes/x"): [locked, locked, Reply(204, {}, "")]})
    assert server.send(Request("DELETE", "/v1/nodes/x")).status == 204
    assert len(server.received) == 3


def test_an_allocation_is_finished_once_its_node_is_unlocked(monkeypatch):
    monkeypatch.setattr("tools.baremetal.servers.time.sleep", lambda _: None)
    unlocked = {"reservation": None, "provision_state": "available", "target_provision_state": None}
    unlocked["target_power_state"] = None
    node_path = "/v1/nodes/n?fields=reservation,provision_state,target_provision_state,target_power_state"
    answers = {
        ("GET", "/v1/allocations/u"): [reply({"state": "allocating"}), reply({"state": "active", "node_uuid": "n"})],
        ("GET", node_path): [reply({**unlocked, "reservation": "peer"}), reply(unlocked)],
    }
    server = Scripted(answers=answers)
    allocation = server.finish(Request("POST", "/v1/allocations", {}), reply({"uuid": "u"}, 201))
    assert allocation == {"state": "active", "node_uuid": "n"}
    assert len(server.received) == 4


# ------------------------------------------------------------------------------------------------------- shrinking


@pytest.mark.parametrize("needed", [set(), {3}, {0, 9}, {2, 3, 17}, set(range(20))])
def test_shrinking_keeps_exactly_the_requests_that_are_needed(needed):
    sequence = [Request("GET", f"/{number}") for number in range(20)]
    last = Request("GET", "/last")

    def fails(trial):
        return trial[-1] is last and needed <= {sequence.index(request) for request in trial[:-1]}

    shortest = runs.shortest([*sequence, last], fails, seconds=60)
    assert shortest == [*(sequence[number] for number in sorted(needed)), last]


def test_shrinking_removes_requests_that_depend_on_each_other_together():
    """One request creates a node and another deletes it: without the first, the second causes another difference."""
    sequence = [Request("GET", f"/{number}") for number in range(8)]

    def fails(trial):
        return (sequence[2] in trial) == (sequence[3] in trial)

    assert len(runs.shortest(sequence, fails, seconds=60)) == 1


def test_shrinking_ends_in_time():
    sequence = [Request("GET", f"/{number}") for number in range(20)]
    assert runs.shortest(sequence, lambda _: True, seconds=0) == sequence


def test_a_shrunk_run_has_the_same_difference(monkeypatch):
    first, second, third = (Request("GET", f"/{number}") for number in range(3))
    at = {
        "012": ("body.name: A=1 B=2", third),
        "12": ("status: A=200 B=404", third),  # a different difference
        "02": ("body.name: A=1 B=3", third),
        "2": ("body.name: A=1 B=2", first),  # at another request
    }

    def play(pair, sequence):
        line, request = at["".join(request.path[1:] for request in sequence)]
        return runs.Difference(request, [line], (reply({}), reply({})))

    monkeypatch.setattr(runs, "play", play)
    difference = play(None, [first, second, third])
    assert runs.shrunk(None, [first, second, third], difference, seconds=60) == [first, third]


# ------------------------------------------------------------------------------------------------------------ requests


def read_world(path):
    """Return the document at a path of a service with one active node."""
    node = {
        "uuid": A_UUID,
        "resource_class": "gold",
        "traits": [],
        "instance_uuid": B_UUID,
        "provision_state": "active",
    }
    if path.startswith("/v1/allocations"):
        return {"allocations": [{"node_uuid": A_UUID}]}
    return {"nodes": [node]} if path.startswith("/v1/nodes?") else node


def generate_requests(seed):
    world = World(seed, read_world)
    for request in requests.first_requests(world):
        document = {"uuid": request.makes, **request.body} if request.makes else {}
        world.note(request, reply(document, 201))
        yield request
    for _ in range(200):
        request = requests.random_request(world)
        if request.allocates and request.makes:
            world.note(request, reply({"name": None, "uuid": request.makes}, 201))
        yield request


def test_a_seed_gives_the_same_requests():
    assert list(generate_requests(5)) == list(generate_requests(5))
    assert list(generate_requests(5)) != list(generate_requests(6))


def test_every_kind_of_request_is_generated():
    generated = [request for seed in range(5) for request in generate_requests(seed)]
    kinds = {
        (request.method, *("*" if n == 1 else part for n, part in enumerate(request.route[:3])))
        for request in generated
    }
    for kind in (
        ("POST", "allocations"),
        ("GET", "allocations"),
        ("GET", "allocations", "*"),
        ("PATCH", "allocations", "*"),
        ("DELETE", "allocations", "*"),
        ("GET", "nodes", "*", "allocation"),
        ("DELETE", "nodes", "*", "allocation"),
        ("POST", "nodes"),
        ("PATCH", "nodes", "*"),
        ("DELETE", "nodes", "*"),
        ("PUT", "nodes", "*", "states"),
        ("PUT", "nodes", "*", "traits"),
        ("DELETE", "nodes", "*", "maintenance"),
        ("GET",),
    ):
        assert kind in kinds, kind
    assert any("node" in (request.body or {}) for request in generated if request.allocates)
    assert {request.version for request in generated} >= {1, 52, 57, 58, 60, 90, 91, 115, None}
    assert any(CLASSIC not in request.headers for request in generated)


def test_a_world_follows_renames_and_successful_deletions():
    world = World(1, read_world)
    for uuid in (A_UUID, B_UUID):
        world.note(Request("POST", "/v1/nodes", {}, makes=uuid), reply({"uuid": uuid, "name": f"n-{uuid}"}, 201))
    world.note(Request("PATCH", f"/v1/nodes/n-{A_UUID}", []), reply({"name": "new"}))
    world.note(Request("DELETE", f"/v1/nodes/{B_UUID}"), Reply(204, {}, ""))
    world.note(Request("DELETE", f"/v1/nodes/{A_UUID}"), Reply(409, {}, ""))
    assert [(node.uuid, node.name) for node in world.nodes] == [(A_UUID, "new")]


def test_no_request_creates_a_record_that_the_reference_cannot_delete():
    """The reference creates an allocation even if its uuid is invalid."""
    requests = [
        request
        for seed in range(20)
        for request in generate_requests(seed)
        if request.allocates and isinstance(request.body, dict)
    ]
    uuids = [uuid for request in requests if (uuid := request.body.get("uuid"))]
    assert uuids
    assert [uuid for uuid in uuids if not re.fullmatch(r"[0-9a-f-]{36}|\$a\d+\$", uuid)] == []


def test_the_query_of_a_request_contains_no_space():
    world = World(1, lambda _: None)
    world.random = random.Random(0)
    for _ in range(50):
        request = node_requests.list_nodes(world)
        assert " " not in request.path


# ---------------------------------------------------------------------------------------------------------- documents


def test_every_intended_difference_is_documented_with_its_reason():
    section = (ROOT / "docs/divergences.rst").read_text().partition("\nDifferences from Ironic\n")[2]
    titles = re.findall(r"^(\S.*)\n  \S", section, re.MULTILINE)
    assert {divergence.title for divergence in known.DIVERGENCES} <= set(titles)
    assert len({divergence.title for divergence in known.DIVERGENCES}) == len(known.DIVERGENCES)
