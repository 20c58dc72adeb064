"""Clients of the Bare Metal API that request nodes, alongside clients of Placement and v1 that claim the same nodes."""

from __future__ import annotations

import random
import uuid

from jepsen.client import Client
from jepsen.workloads import bodies
from jepsen.workloads.consumers import Consumers
from jepsen.workloads.workload import Workload

NODES, CONSUMERS = 4, 3


class Machines(Workload):
    name = "machines"
    own_api = True

    def __init__(self) -> None:
        self._class = f"metal-{uuid.uuid4().hex}"
        self._unit = f"CUSTOM_{self._class.upper().replace('-', '_')}"
        self._nodes = [str(uuid.uuid4()) for _ in range(NODES)]
        self._consumers = Consumers(CONSUMERS)

    def prepare(self, client: Client) -> None:
        for node in self._nodes:
            body = {"uuid": node, "driver": "fake-hardware", "resource_class": self._class}
            assert client.call("POST", "/baremetal/v1/nodes", body).succeeded
            # A node is offered once it is available and its power state is known.
            for state, target in (("power", "power off"), ("provision", "manage"), ("provision", "provide")):
                path = f"/baremetal/v1/nodes/{node}/states/{state}"
                assert client.call("PUT", path, {"target": target}).succeeded

    def run(self, client: Client, rng: random.Random) -> None:
        weights = {self._request: 50, self._put: 20, self._claim: 15, self._release: 15, self._read: 10}
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)

    def _request(self, client: Client, rng: random.Random) -> None:
        """Request a node, read which one it is, and release it."""
        allocation = str(uuid.uuid4())
        body = {"uuid": allocation, "resource_class": self._class}
        if rng.random() < 0.2:
            body["candidate_nodes"] = rng.sample(self._nodes, 2)
        path = f"/baremetal/v1/allocations/{allocation}"
        request = client.call("POST", "/baremetal/v1/allocations", body)
        if request.succeeded or request.is_open:
            client.call("GET", path)
        while not client.stopped.is_set():
            release = client.call("DELETE", path)
            if release.succeeded or release.status == 404:
                return

    def _put(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        path = f"/allocations/{consumer}"
        read = client.call("GET", path)
        if read.succeeded:
            resources = {rng.choice(self._nodes): {self._unit: 1}}
            body = bodies.claim(39, resources, read.reply.get("consumer_generation"))
            self._consumers.count(client, [consumer], client.call("PUT", path, body))

    def _claim(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        request = {
            "consumer": consumer,
            "project_id": "machines",
            "user_id": "ann",
            "consumer_type": "INSTANCE",
            "query": f"resources={self._unit}:1",
        }
        self._consumers.count(client, [consumer], client.call("POST", "/v1/claims", {"requests": [request]}))

    def _release(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        self._consumers.count(client, [consumer], client.call("DELETE", f"/allocations/{consumer}"))

    def _read(self, client: Client, rng: random.Random) -> None:
        client.call("GET", f"/baremetal/v1/nodes/{rng.choice(self._nodes)}/allocation")
        client.call("GET", f"/resource_providers/{rng.choice(self._nodes)}/allocations")
