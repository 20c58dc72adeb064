"""Clients of POST /v1/claims with one or many consumers, alongside clients of Placement on the same providers.

A request is repeated if its response is lost, and sometimes otherwise: the response to an equal request shows the
holding.  Consumers are moved with their generation, and placed apart from or together with others, which move
meanwhile.  Some all-or-nothing requests contain a query that fits nowhere, or a consumer that other clients use.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.consumers import Consumers
from jepsen.workloads.workload import Workload
from placement.extensions.v1.pick.strategy import Preference

#: Hosts; each is a tree, with a provider of disks below its root.
HOSTS = 8
TOTALS, DISKS = {"VCPU": 8, "MEMORY_MB": 8192}, {"DISK_GB": 100}
#: Consumers shared by all clients, and consumers of each client for batches.
SHARED, BULK = 6, 20
#: Attempts to get a response.
REPEATS = 3
STRATEGIES: Sequence[Any] = (*(preference.value for preference in Preference), {"spread_over": "root"})


class Places(Workload):
    name = "places"
    own_api = True

    def __init__(self) -> None:
        self._hosts = [str(uuid.uuid4()) for _ in range(HOSTS)]
        self._shared = Consumers(SHARED)
        self._bulks: dict[int, Consumers] = {}

    def prepare(self, client: Client) -> None:
        for host in self._hosts:
            disk = str(uuid.uuid4())
            for provider, parent, totals in ((host, None, TOTALS), (disk, host, DISKS)):
                body = {"name": provider, "uuid": provider, "parent_provider_uuid": parent}
                assert client.call("POST", "/resource_providers", body).succeeded
                path = f"/resource_providers/{provider}/inventories"
                assert client.call("PUT", path, bodies.stock(0, totals)).succeeded

    def run(self, client: Client, rng: random.Random) -> None:
        self._bulks[client.process] = Consumers(BULK)
        weights = {
            self._claim: 25,
            self._move: 20,
            self._claim_many: 6,
            self._claim_all: 14,
            self._claim_apart: 10,
            self._claim_together: 8,
            self._release: 12,
            self._put: 20,
            self._read: 10,
        }
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)

    # --- claims ---

    def _claim(self, client: Client, rng: random.Random) -> None:
        consumers = self._shared.choose(rng)
        body = self._body(rng, consumers, _query(rng, self._hosts), **_copies(rng))
        if rng.random() < 0.3:
            self._add_conditions(rng, body)
        self._post(client, rng, consumers, body)

    def _move(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._shared.choose(rng)
        read = client.call("GET", f"/v1/claims/{consumer}")
        if not (read.succeeded or read.status == 404):
            return
        generation = read.reply.get("consumer_generation")
        move = {"keep": False, "consumer_generation": generation, **_copies(rng)}
        body = self._body(rng, [consumer], _query(rng, self._hosts), **move)
        if rng.random() < 0.6:
            self._add_conditions(rng, body, consumer)
        self._post(client, rng, [consumer], body)
        if rng.random() < 0.5:
            client.call("GET", f"/allocations/{consumer}")

    def _claim_many(self, client: Client, rng: random.Random) -> None:
        """Claim for twenty consumers at once, and release them."""
        consumers = self._bulks[client.process].all
        body = self._body(rng, consumers, _query(rng)) | {"all_or_nothing": rng.random() < 0.5}
        self._post(client, rng, consumers, body)
        self._delete(client, consumers)

    def _claim_all(self, client: Client, rng: random.Random) -> None:
        """Claim for all of some consumers or for none; one of them may fit nowhere, or already hold resources."""
        bulk, shared = self._bulks[client.process].choose(rng, 3), self._shared.choose(rng)
        consumers = bulk + shared if rng.random() < 0.4 else bulk
        body = self._body(rng, consumers, _query(rng)) | {"all_or_nothing": True}
        if rng.random() < 0.4:
            rng.choice(body["requests"])["query"] = f"resources=VCPU:{rng.choice((6, 8, 9))}"
        if rng.random() < 0.4:
            self._add_conditions(rng, body, *bulk[:1])
        self._post(client, rng, consumers, body)
        for consumer in bulk:
            client.call("GET", f"/v1/claims/{consumer}")
        self._delete(client, bulk)

    def _claim_apart(self, client: Client, rng: random.Random) -> None:
        """Claim for some consumers in different trees, and sometimes apart from consumers that others use."""
        consumers = self._bulks[client.process].choose(rng, 3)
        body = self._body(rng, consumers, _query(rng)) | {"all_or_nothing": rng.random() < 0.5}
        shared = self._shared.choose(rng, rng.randint(1, 3)) if rng.random() < 0.5 else []
        body["apart_from"] = consumers + shared
        self._post(client, rng, consumers, body)
        self._delete(client, consumers)

    def _claim_together(self, client: Client, rng: random.Random) -> None:
        consumers = self._bulks[client.process].choose(rng, 2)
        body = self._body(rng, consumers, _query(rng))
        body["together_with"] = consumers if rng.random() < 0.5 else self._shared.choose(rng)
        self._post(client, rng, consumers, body)
        self._delete(client, consumers)

    def _add_conditions(self, rng: random.Random, body: dict[str, Any], *consumers: str) -> None:
        """Add ``apart_from`` or ``together_with``, with consumers that other clients use and move.

        Requests that name all shared consumers name each other's consumers.
        """
        if rng.random() < 0.6:
            shared = self._shared.choose(rng, rng.choice((1, 2, SHARED)))
            body["apart_from"] = [*dict.fromkeys([*consumers, *shared])]
        else:
            body["together_with"] = self._shared.choose(rng)

    def _body(self, rng: random.Random, consumers: Sequence[str], query: Any, **more: Any) -> dict[str, Any]:
        owner = {"project_id": "places", "user_id": "ann", "consumer_type": "INSTANCE"}
        requests = [{"consumer": consumer, **owner, "query": query, **more} for consumer in consumers]
        return {"requests": requests, "strategy": rng.choice(STRATEGIES)}

    def _post(self, client: Client, rng: random.Random, consumers: Sequence[str], body: Mapping[str, Any]) -> Operation:
        """Send a claim; repeat it if the response is lost, and sometimes otherwise."""
        for _ in range(REPEATS):
            operation = client.call("POST", "/v1/claims", body)
            if not operation.is_open:
                break
        if not operation.is_open and rng.random() < 0.2:
            operation = client.call("POST", "/v1/claims", body)
        self._count(client, consumers, operation)
        return operation

    def _count(self, client: Client, consumers: Sequence[str], operation: Operation) -> None:
        for pool in (self._shared, self._bulks[client.process]):
            pool.count(client, consumers, operation)

    # --- other operations ---

    def _release(self, client: Client, rng: random.Random) -> None:
        self._delete(client, self._shared.choose(rng, rng.randint(1, 3)))

    def _delete(self, client: Client, consumers: Sequence[str]) -> None:
        path = f"/v1/claims?{'&'.join(f'consumer={consumer}' for consumer in consumers)}"
        self._count(client, consumers, client.call("DELETE", path))

    def _put(self, client: Client, rng: random.Random) -> None:
        """Claim on a provider of the client's choice, as clients of Placement do."""
        consumers = self._shared.choose(rng)
        path = f"/allocations/{consumers[0]}"
        read = client.call("GET", path)
        if not read.succeeded:
            return
        resources = {rng.choice(self._hosts): {"VCPU": rng.randint(1, 3)}}
        body = bodies.claim(39, resources, read.reply.get("consumer_generation"))
        self._shared.count(client, consumers, client.call("PUT", path, body))

    def _read(self, client: Client, rng: random.Random) -> None:
        [consumer] = self._shared.choose(rng)
        path = rng.choice(
            (f"/v1/claims/{consumer}", f"/allocations/{consumer}", f"/resource_providers/{rng.choice(self._hosts)}")
        )
        client.call("GET", path)


def _query(rng: random.Random, hosts: Sequence[str] = ()) -> Any:
    """Return a query in a random notation, sometimes for one of these hosts."""
    group: dict[str, Any] = {"resources": {"VCPU": rng.randint(1, 3)}}
    if rng.random() < 0.5:
        group["resources"]["MEMORY_MB"] = 512
    if rng.random() < 0.1:
        group["resources"]["DISK_GB"] = 2
    if hosts and rng.random() < 0.3:
        group["in_tree"] = rng.choice(hosts)
    if rng.random() < 0.1:
        return {"groups": {"": group, "_DISK": {"resources": {"DISK_GB": 1}}}}
    if rng.random() < 0.3:
        return {"groups": {"": group}}
    amounts = ",".join(f"{name}:{amount}" for name, amount in group["resources"].items())
    return f"resources={amounts}" + (f"&in_tree={group['in_tree']}" if "in_tree" in group else "")


def _copies(rng: random.Random) -> dict[str, int]:
    """Return the field of a request for a random number of copies; empty for one copy."""
    return {"count": rng.randint(2, 3)} if rng.random() < 0.2 else {}
