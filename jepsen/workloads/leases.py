"""Leases of one to three seconds that are extended, moved and released, alongside clients of Placement.

The capacity is so small that a claim often needs the resources of an expired lease, which searches and claims at any
worker release.
"""

from __future__ import annotations

import random
import uuid
from typing import Any

from jepsen.client import Client
from jepsen.workloads import bodies
from jepsen.workloads.consumers import Consumers
from jepsen.workloads.workload import Workload

HOSTS, CONSUMERS = 3, 8
TOTALS = {"VCPU": 4}
#: Lengths of leases in seconds.
LENGTHS = (1, 1, 2, 3)


class Leases(Workload):
    name = "leases"
    own_api = True

    def __init__(self) -> None:
        self._hosts = [str(uuid.uuid4()) for _ in range(HOSTS)]
        self._consumers = Consumers(CONSUMERS)

    def prepare(self, client: Client) -> None:
        for host in self._hosts:
            assert client.call("POST", "/resource_providers", {"name": host, "uuid": host}).succeeded
            assert client.call("PUT", f"/resource_providers/{host}/inventories", bodies.stock(0, TOTALS)).succeeded

    def run(self, client: Client, rng: random.Random) -> None:
        weights = {
            self._claim: 30,
            self._move: 8,
            self._extend: 15,
            self._put: 12,
            self._release: 5,
            self._read: 25,
            self._search: 5,
        }
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)
            # Without pauses, few leases would expire.
            client.stopped.wait(rng.uniform(0, 0.1))

    def _claim(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        self._post(client, consumer, rng, {})

    def _move(self, client: Client, rng: random.Random) -> None:
        """Move a consumer, which keeps or changes its expiry."""
        [consumer] = self._consumers.choose(rng)
        read = client.call("GET", f"/v1/claims/{consumer}")
        if read.succeeded:
            fields = {"keep": False, "consumer_generation": read.reply["consumer_generation"]}
            self._post(client, consumer, rng, fields)

    def _post(self, client: Client, consumer: str, rng: random.Random, more: dict[str, Any]) -> None:
        request = {
            "consumer": consumer,
            "project_id": "leases",
            "user_id": "ann",
            "consumer_type": "INSTANCE",
            "query": f"resources=VCPU:{rng.randint(1, 3)}",
            **more,
        }
        body: dict[str, Any] = {"requests": [request]}
        if not more or rng.random() < 0.5:
            body["expires_in"] = rng.choice(LENGTHS)
        self._consumers.count(client, [consumer], client.call("POST", "/v1/claims", body))

    def _extend(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        length = None if rng.random() < 0.1 else rng.choice(LENGTHS)
        extension = client.call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": length})
        self._consumers.count(client, [consumer], extension)

    def _put(self, client: Client, rng: random.Random) -> None:
        """Claim as a client of Placement does, which keeps the expiry."""
        [consumer] = self._consumers.choose(rng)
        path = f"/allocations/{consumer}"
        read = client.call("GET", path)
        if read.succeeded:
            resources = {rng.choice(self._hosts): {"VCPU": rng.randint(1, 3)}}
            body = bodies.claim(39, resources, read.reply.get("consumer_generation"))
            self._consumers.count(client, [consumer], client.call("PUT", path, body))

    def _release(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        path = rng.choice((f"/allocations/{consumer}", f"/v1/claims?consumer={consumer}"))
        self._consumers.count(client, [consumer], client.call("DELETE", path))

    def _read(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._consumers.choose(rng)
        client.call("GET", rng.choice((f"/v1/claims/{consumer}", f"/allocations/{consumer}")))

    def _search(self, client: Client, rng: random.Random) -> None:
        client.call("GET", f"/allocation_candidates?resources=VCPU:{rng.randint(1, TOTALS['VCPU'])}")
