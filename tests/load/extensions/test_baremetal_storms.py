"""Concurrent requests for nodes, beside Placement clients: no node is allocated twice, and no free node is refused.

After each storm the `storm` fixture looks for 5xx in the responses, and for flaws in the database: a node with two
holders, a holder of type BAREMETAL without a record, a unit that is reserved although its node is available.
"""

from __future__ import annotations

import collections
import itertools
import random
import threading
import time

import pytest

from tests import running
from tests.children import PATIENCE, until
from tests.load.soundness import flaws
from tests.load.storm import Call, Storm, claim, new, statuses
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS
from tests.run_length import LONG

NODES, ALLOCATIONS = "/baremetal/v1/nodes", "/baremetal/v1/allocations"
ROUNDS = 10 if LONG else 1
CLIENTS = 12

rounds = pytest.mark.parametrize("round_", range(ROUNDS))


class Machines:
    """Nodes of one class, and requests for them."""

    def __init__(self, storm, number=0, **columns):
        self.storm, self.resource_class = storm, f"class-{new()}"
        self.unit = f"CUSTOM_{self.resource_class.upper().replace('-', '_')}"
        self.nodes = [self.add(**columns) for _ in range(number)]

    def add(self, node=None, **columns):
        """Create a node that can be allocated; return its uuid."""
        node = node or new()
        body = {"uuid": node, "driver": "fake-hardware", "resource_class": self.resource_class, **columns}
        assert self.storm.ask("POST", NODES, body).status == 201
        self.power(node, "power off")
        for target in ("manage", "provide"):
            assert self.provision(node, target).status == 202
        return node

    def power(self, node, target):
        assert self.storm.ask("PUT", f"{NODES}/{node}/states/power", {"target": target}).status == 202

    def provision(self, node, target):
        return self.storm.ask("PUT", f"{NODES}/{node}/states/provision", {"target": target})

    def request(self, **columns):
        """Return a request for one of the nodes."""
        return Call("POST", ALLOCATIONS, {"uuid": new(), "resource_class": self.resource_class, **columns})

    def outcomes(self, requests):
        """Return the documents of the allocations; each must be active or in error."""
        allocations = [self.storm.get(f"{ALLOCATIONS}/{request.body['uuid']}") for request in requests]
        assert {allocation["state"] for allocation in allocations} <= {"active", "error"}
        return allocations

    def nodes_of(self, requests):
        """Return the nodes of the active allocations; each node must have the uuid of its allocation."""
        active = {
            allocation["uuid"]: allocation["node_uuid"]
            for allocation in self.outcomes(requests)
            if allocation["state"] == "active"
        }
        assert self.holders() == {node: uuid for uuid, node in active.items()}
        return active

    def holders(self):
        """Return the holders by node, which both APIs must show."""
        nodes = self.storm.get(f"{NODES}/detail?resource_class={self.resource_class}")["nodes"]
        holders = {node["uuid"]: node["instance_uuid"] for node in nodes if node["instance_uuid"]}
        for node in self.nodes:
            answer = self.storm.ask("GET", f"/resource_providers/{node}/allocations")
            if answer.status == 200:
                assert [*answer.body["allocations"]] == ([holders[node]] if node in holders else [])
        return holders


@rounds
@pytest.mark.parametrize("surplus", [0, 5])
def test_as_many_requests_as_there_are_nodes_are_active(storm, round_, surplus):
    machines = Machines(storm, CLIENTS)
    requests = [machines.request() for _ in range(CLIENTS + surplus)]
    assert statuses(storm.together(*requests)) == {201: CLIENTS + surplus}
    assert set(machines.nodes_of(requests).values()) == {*machines.nodes}
    in_error = [
        allocation["last_error"] for allocation in machines.outcomes(requests) if allocation["state"] == "error"
    ]
    assert len(in_error) == surplus
    assert all("no available nodes match" in error for error in in_error)


@rounds
def test_a_request_fails_only_if_all_its_candidates_are_taken(storm, round_):
    machines = Machines(storm, CLIENTS)
    chance = random.Random(round_)
    requests = [machines.request(candidate_nodes=chance.sample(machines.nodes, 3)) for _ in range(CLIENTS)]
    assert statuses(storm.together(*requests)) == {201: CLIENTS}
    allocated_nodes = set(machines.nodes_of(requests).values())
    for allocation in machines.outcomes(requests):
        candidates = {*allocation["candidate_nodes"]}
        assert (
            allocation["node_uuid"] in candidates if allocation["state"] == "active" else candidates <= allocated_nodes
        )


@rounds
def test_owners_get_only_their_nodes(storm, round_):
    machines = Machines(storm)
    first_owner, second_owner = new(), new()
    owned = {
        first_owner: [machines.add(owner=first_owner) for _ in range(3)]
        + [machines.add(owner=second_owner, lessee=first_owner)],
        second_owner: [machines.add(owner=second_owner) for _ in range(3)],
    }
    machines.nodes = [*itertools.chain(*owned.values())]
    requests = [machines.request(owner=owner) for owner, nodes in owned.items() for _ in range(len(nodes) + 1)]
    assert statuses(storm.together(*requests)) == {201: len(requests)}
    nodes_by_allocation = machines.nodes_of(requests)
    # A node owned by one project and leased to the other may go to either.
    assert len(nodes_by_allocation) == len(machines.nodes)
    for allocation in machines.outcomes(requests):
        if allocation["state"] == "active":
            node = storm.get(f"{NODES}/{allocation['node_uuid']}")
            assert allocation["owner"] in (node["owner"], node["lessee"])


@rounds
def test_a_name_goes_to_one_allocation_and_a_node_to_the_allocation_of_its_name(storm, round_):
    machines = Machines(storm)
    names = {f"n{new()}": None for _ in range(CLIENTS)}
    machines.nodes = [machines.add(name=name) for name in names]
    named = dict(zip(names, machines.nodes, strict=True))
    requests = [machines.request(name=name) for name in names]
    answers = storm.together(*requests, *[machines.request(name=name) for name in names])
    assert statuses(answers) == {201: CLIENTS, 409: CLIENTS}
    for name, node in named.items():
        assert storm.get(f"{ALLOCATIONS}/{name}")["node_uuid"] == node


@rounds
def test_clients_of_both_apis_share_the_nodes(storm, round_):
    machines = Machines(storm, CLIENTS)
    requests = [machines.request() for _ in range(CLIENTS)]
    claims = [claim({node: {machines.unit: 1}}) for node in machines.nodes]
    answers = storm.together(*requests, *claims)
    assert statuses(answers[:CLIENTS]) == {201: CLIENTS}
    outcomes = machines.outcomes(requests)
    active = [allocation for allocation in outcomes if allocation["state"] == "active"]
    placed = [call for call, answer in zip(claims, answers[CLIENTS:], strict=True) if answer.status == 204]
    assert len(active) + len(placed) == CLIENTS
    instances = {allocation["node_uuid"]: allocation["uuid"] for allocation in active}
    for call in placed:
        [node] = call.body["allocations"]
        instances[node] = call.path.split("/")[2]
    assert machines.holders() == instances


@rounds
def test_one_of_many_writers_sets_the_holder_of_a_node(storm, round_):
    """Clients set the instance of one node by instance_uuid, a claim and an allocation."""
    machines = Machines(storm, 1)
    [node] = machines.nodes
    by_hand = [[{"op": "add", "path": "/instance_uuid", "value": new()}] for _ in range(4)]
    patches = [Call("PATCH", f"{NODES}/{node}", body) for body in by_hand]
    claims = [claim({node: {machines.unit: 1}}) for _ in range(4)]
    requests = [machines.request() for _ in range(4)]
    answers = storm.together(*patches, *claims, *requests)
    successes = [answer.status for answer in answers[:8]].count(200) + [answer.status for answer in answers].count(204)
    active = [allocation for allocation in machines.outcomes(requests) if allocation["state"] == "active"]
    assert successes + len(active) == 1
    assert len(machines.holders()) == 1


@rounds
def test_no_request_fails_if_there_is_a_node_for_each_client(storm, round_):
    """Each client holds at most one node, so there is always a free node for the next request."""
    machines = Machines(storm, 6)

    def work():
        states = []
        for _ in range(10):
            request = machines.request()
            assert storm.ask(*request).status == 201
            states.append(storm.get(f"{ALLOCATIONS}/{request.body['uuid']}")["state"])
            assert storm.ask("DELETE", f"{ALLOCATIONS}/{request.body['uuid']}").status == 204
        return states

    states = collections.Counter(itertools.chain(*storm.together(*[work] * 6)))
    assert states == {"active": 60}
    assert machines.holders() == {}


class Churn:
    """Clients of both APIs that make all kinds of writes to a few nodes, each in its own thread."""

    #: The kinds of writes that must succeed in each run.
    NEEDED = ("allocate", "delete", "provision", "maintain", "associate", "steal", "replace")

    def __init__(self, machines, seconds):
        self.machines, self.storm, self.end = machines, machines.storm, time.monotonic() + seconds
        self.names = [f"n{new()}" for _ in range(3)]
        self.allocations = []

    def run(self, *works):
        """Run each client until the end; return the number of writes by kind and status."""
        writes = collections.Counter()

        def continues():
            now = time.monotonic()
            # A slow machine makes few writes, and most writes of some kinds are refused or need others beside them.
            is_incomplete = not all(has_succeeded(writes, kind) for kind in self.NEEDED)
            return now < self.end or (is_incomplete and now < self.end + PATIENCE)

        def repeat(work, seed):
            chance = random.Random(seed)
            while continues():
                writes[work.__name__, work(chance).status] += 1

        self.storm.together(*(lambda work=work, seed=seed: repeat(work, seed) for seed, work in enumerate(works)))
        return writes

    def node(self, chance):
        return f"{NODES}/{chance.choice(self.machines.nodes)}"

    def allocation(self, chance):
        return f"{ALLOCATIONS}/{chance.choice([*self.names, *self.allocations[-6:]] or self.names)}"

    def allocate(self, chance):
        columns = {}
        if chance.random() < 0.3:
            columns["name"] = chance.choice(self.names)
        if chance.random() < 0.5:
            columns["candidate_nodes"] = chance.sample(self.machines.nodes, 2)
        request = self.machines.request(**columns)
        self.allocations.append(request.body["uuid"])
        return self.storm.ask(*request)

    def delete(self, chance):
        return self.storm.ask("DELETE", self.allocation(chance))

    def rename(self, chance):
        body = [{"op": "add", "path": "/name", "value": chance.choice(self.names)}]
        return self.storm.ask("PATCH", self.allocation(chance), body)

    def provision(self, chance):
        target = chance.choice(("active", "deleted", "deleted", "manage", "provide", "provide"))
        return self.storm.ask("PUT", f"{self.node(chance)}/states/provision", {"target": target})

    def maintain(self, chance):
        if chance.random() < 0.4:
            return self.storm.ask("PUT", f"{self.node(chance)}/maintenance", {"reason": None})
        return self.storm.ask("DELETE", f"{self.node(chance)}/maintenance")

    def reclassify(self, chance):
        value = chance.choice((self.machines.resource_class, self.machines.resource_class.upper(), f"{new()}"))
        return self.storm.ask("PATCH", self.node(chance), [{"op": "add", "path": "/resource_class", "value": value}])

    def associate(self, chance):
        operation = {"op": "add", "path": "/instance_uuid", "value": new()}
        if chance.random() < 0.6:
            operation = {"op": "remove", "path": "/instance_uuid"}
        return self.storm.ask("PATCH", self.node(chance), [operation])

    def claim(self, chance):
        """Claim like nova, and delete the claim."""
        consumer, node = new(), chance.choice(self.machines.nodes)
        answer = self.storm.ask(*claim({node: {self.machines.unit: 1}}, consumer=consumer))
        if answer.status == 204:
            answer = self.storm.ask("DELETE", f"/allocations/{consumer}")
        return answer

    def steal(self, chance):
        """Delete or move the holder of a node as a Placement client."""
        document = self.storm.ask("GET", f"/resource_providers/{chance.choice(self.machines.nodes)}/allocations").body
        consumers = [*document.get("allocations", {})]
        if not consumers:
            return self.storm.ask("GET", "/")
        if chance.random() < 0.5:
            return self.storm.ask("DELETE", f"/allocations/{consumers[0]}")
        generation = self.storm.get(f"/allocations/{consumers[0]}").get("consumer_generation")
        other = chance.choice(self.machines.nodes)
        return self.storm.ask(*claim({other: {self.machines.unit: 1}}, generation, consumers[0]))

    def replace(self, chance):
        """Delete a node, and create it again."""
        node = chance.choice(self.machines.nodes)
        answer = self.storm.ask("DELETE", f"{NODES}/{node}")
        if answer.status == 204:
            body = {"uuid": node, "driver": "fake-hardware", "resource_class": self.machines.resource_class}
            answer = self.storm.ask("POST", NODES, body)
            self.storm.ask("PUT", f"{NODES}/{node}/states/power", {"target": "power on"})
        return answer


def has_succeeded(writes, kind):
    """Whether a write of a kind succeeded."""
    return any(
        number for (write_kind, status), number in [*writes.items()] if write_kind == kind and 200 <= status < 300
    )


def test_concurrent_writes_of_both_apis_leave_a_consistent_state(service):
    """The provider of a recreated node starts with generation 0, so generations prove nothing here."""
    storm = Storm(service.url)
    machines = Machines(storm, 5)
    churn = Churn(machines, 60 if LONG else 2.5)
    writes = churn.run(
        *[churn.allocate] * 4,
        *[churn.delete] * 2,
        *[churn.provision] * 2,
        *(churn.rename, churn.maintain, churn.reclassify, churn.associate, churn.claim, churn.steal, churn.replace),
    )
    assert all(has_succeeded(writes, kind) for kind in churn.NEEDED), writes
    check_both_directions(storm, machines)
    assert [event for event in storm.history if event.answer.status >= 500] == []
    with opened(service.database_url) as database:
        assert flaws(database) == {}


def check_both_directions(storm, machines):
    """Check that active allocations and the nodes that name them agree in both directions."""
    records = {allocation["uuid"]: allocation for allocation in storm.get(ALLOCATIONS)["allocations"]}
    assert {allocation["state"] for allocation in records.values()} <= {"active", "error"}
    nodes = {node["uuid"]: node for node in storm.get(f"{NODES}/detail")["nodes"] if node["uuid"] in machines.nodes}
    active = {
        uuid: allocation["node_uuid"]
        for uuid, allocation in records.items()
        if allocation["node_uuid"] in machines.nodes
    }
    assert {node["allocation_uuid"]: uuid for uuid, node in nodes.items() if node["allocation_uuid"]} == active
    for uuid, node in nodes.items():
        consumers = [*storm.get(f"/resource_providers/{uuid}/allocations")["allocations"]]
        assert consumers == ([node["instance_uuid"]] if node["instance_uuid"] else [])
        assert node["allocation_uuid"] in (None, node["instance_uuid"])


class AllocationClients:
    """Clients that each create and delete one allocation at a time, while workers are killed."""

    def __init__(self, machines):
        self.machines, self.storm = machines, machines.storm
        self.is_done, self.violations, self.statuses = threading.Event(), [], collections.Counter()

    def run_client(self, by_placement):
        """Create allocations, and delete them by one of the two APIs."""
        while not self.is_done.is_set():
            request = self.machines.request()
            path = f"{ALLOCATIONS}/{request.body['uuid']}"
            status = self.storm.ask(*request).status
            self.statuses["POST", status] += 1
            # A client that lost its connection reads its allocation, and sends nothing else while it holds a node.
            state = self.until(path, 200, 404).body.get("state")
            if not status and not state:
                # A COMMIT that the killed worker has sent may still take effect: the same request waits for it.
                self.until(ALLOCATIONS, 201, 409, method="POST", body=request.body)
                state = self.until(path, 200, 404).body.get("state")
            if status and state != "active":
                self.violations.append((request, status, state))
            if state:
                self.end(path, f"/allocations/{request.body['uuid']}" if by_placement else path)

    def end(self, path, deleted_path):
        status = self.storm.ask("DELETE", deleted_path).status
        self.statuses["DELETE", status] += 1
        if not status:
            self.until(deleted_path, 204, 404, method="DELETE")
        if self.until(path, 200, 404).status != 404:
            self.violations.append((path, "still exists"))

    def until(self, path, *statuses, method="GET", body=None):
        """Repeat a request until there is a response; return it."""
        answers = []

        def send():
            answers.append(self.storm.ask(method, path, body))
            assert answers[-1].status in (0, *statuses), answers[-1]
            return answers[-1].status

        until(send, f"{method} {path} got no response")
        return answers[-1]

    @property
    def lost_responses(self):
        return sum(number for (_, status), number in self.statuses.items() if status == 0)

    def wait_for_allocations(self, number):
        """Wait until a number of further allocations have been created."""
        goal = self.statuses["POST", 201] + number
        until(lambda: self.statuses["POST", 201] >= goal)


def test_a_killed_worker_leaves_no_partial_write(database_url):
    """Each allocation exists with its node, or neither exists and the node is free."""
    options = {"baremetal": {"enabled": True}, **OPTIONS}
    with running.uwsgi(database_url, 3, options, module=APPLICATION, flags=()) as service:
        clients = AllocationClients(Machines(Storm(service.url), 4))
        threads = [threading.Thread(target=clients.run_client, args=(number % 2,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for number in itertools.count(1):
                clients.wait_for_allocations(5)
                killed = service.kill_worker()
                service.wait_until(lambda killed=killed: killed not in service.workers)
                if number >= (50 if LONG else 3) and clients.lost_responses:
                    break
        finally:
            clients.is_done.set()
            for thread in threads:
                thread.join()
        assert clients.violations == []
        assert {status for _, status in clients.statuses} == {0, 201, 204}, clients.statuses
        assert clients.machines.holders() == {}
        check_both_directions(clients.storm, clients.machines)
    with opened(database_url) as database:
        assert flaws(database) == {}
