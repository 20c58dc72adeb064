"""Clients that contend for few consumers and few providers with a small capacity.

Consumers are written with the generation last read, with null, and by versions without generations; alone and in
batches; deleted and read.  Inventories, traits and aggregates of the providers are replaced with a generation.  A
consumer is replaced by a new one after some operations, and after a write with an unknown outcome: the time to search
for an order grows with the number of operations on a consumer, and doubles with each open one.
"""

from __future__ import annotations

import itertools
import random
import threading
import uuid
from typing import Any

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.workload import Workload

CONSUMERS, PROVIDERS, AGGREGATES = 4, 3, 2
#: Range of totals per provider; a claim takes 1 to 3 from one or two providers.
TOTALS = (4, 7)
#: Operations after which a consumer is replaced by a new one.
CALLS = 60
#: Claims per project, and number of the newest projects that claims choose from.
CLAIMS_OF_PROJECT, RECENT = 30, 8


class Registers(Workload):
    name = "registers"

    def __init__(self) -> None:
        self._providers = [str(uuid.uuid4()) for _ in range(PROVIDERS)]
        self._aggregates = [str(uuid.uuid4()) for _ in range(AGGREGATES)]
        self._consumers = [str(uuid.uuid4()) for _ in range(CONSUMERS)]
        self._calls = dict.fromkeys(self._consumers, 0)
        self._replacing = threading.Lock()
        self._claims = itertools.count()

    def prepare(self, client: Client) -> None:
        for provider in self._providers:
            creation = client.call("POST", "/resource_providers", {"name": provider, "uuid": provider})
            assert creation.succeeded, creation
            write = client.call("PUT", f"/resource_providers/{provider}/inventories", bodies.stock(0, {"VCPU": 6}))
            assert write.succeeded, write

    def run(self, client: Client, rng: random.Random) -> None:
        weights = {
            self._put_guarded: 30,
            self._put_new: 10,
            self._put_unguarded: 10,
            self._post: 15,
            self._delete: 8,
            self._read: 10,
            self._write_provider: 12,
            self._read_provider: 8,
        }
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)

    # --- consumers ---

    def _put_guarded(self, client: Client, rng: random.Random) -> None:
        consumer, minor = self._choose(rng), rng.choice(bodies.GUARDED)
        resources = {} if rng.random() < 0.1 else self._resources(rng)
        body = bodies.claim(minor, resources, self._generation(client, consumer), self._owner(rng))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _put_new(self, client: Client, rng: random.Random) -> None:
        consumer, minor = self._choose(rng), rng.choice(bodies.GUARDED)
        body = bodies.claim(minor, self._resources(rng), None, self._owner(rng))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _put_unguarded(self, client: Client, rng: random.Random) -> None:
        consumer, minor = self._choose(rng), rng.choice(bodies.UNGUARDED)
        body = bodies.claim(minor, self._resources(rng), owner=self._owner(rng))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _post(self, client: Client, rng: random.Random) -> None:
        """Write up to three consumers at once, with generations since 1.28."""
        consumers = rng.sample(self._consumers, rng.randint(1, 3))
        minor = rng.choice((13, *bodies.GUARDED))
        body = {
            consumer: bodies.claim(
                minor,
                {} if rng.random() < 0.2 else self._resources(rng),
                self._generation(client, consumer) if minor >= 28 else None,
                self._owner(rng),
            )
            for consumer in consumers
        }
        self._write(client, consumers, "POST", "/allocations", body, minor)

    def _delete(self, client: Client, rng: random.Random) -> None:
        consumer = self._choose(rng)
        self._write(client, [consumer], "DELETE", f"/allocations/{consumer}", None, None)

    def _read(self, client: Client, rng: random.Random) -> None:
        minor = rng.choice((*bodies.UNGUARDED, *bodies.GUARDED))
        client.call("GET", f"/allocations/{self._choose(rng)}", minor=minor)

    def _generation(self, client: Client, consumer: str) -> int | None:
        read = client.call("GET", f"/allocations/{consumer}")
        return read.reply.get("consumer_generation") if read.succeeded else None

    def _write(
        self, client: Client, consumers: list[str], method: str, path: str, body: Any, minor: int | None
    ) -> None:
        operation = client.call(method, path, body, minor=minor)
        for consumer in consumers:
            self._count(client, consumer, operation)

    def _count(self, client: Client, consumer: str, operation: Operation) -> None:
        with self._replacing:
            if consumer not in self._consumers:
                return
            self._calls[consumer] += 1
            if not operation.is_open and self._calls[consumer] < CALLS:
                return
            successor = str(uuid.uuid4())
            self._consumers[self._consumers.index(consumer)] = successor
            self._calls[successor] = 0
        while not client.stopped.is_set():
            release = client.call("DELETE", f"/allocations/{consumer}")
            if release.succeeded or release.status == 404:
                return

    def _choose(self, rng: random.Random) -> str:
        return rng.choice(self._consumers)

    def _resources(self, rng: random.Random) -> bodies.Resources:
        providers = rng.sample(self._providers, rng.randint(1, 2))
        return {provider: {"VCPU": rng.randint(1, 3)} for provider in providers}

    def _owner(self, rng: random.Random) -> bodies.Owner:
        return bodies.Owner(rng.choice(("red", "blue", self._recent_project(rng))), rng.choice(("ann", "bob")))

    def _recent_project(self, rng: random.Random) -> str:
        """Return one of the newest projects, whose ids a database that loses commits may reuse."""
        return f"project-{next(self._claims) // CLAIMS_OF_PROJECT - rng.randrange(RECENT)}"

    # --- providers ---

    def _write_provider(self, client: Client, rng: random.Random) -> None:
        path = f"/resource_providers/{rng.choice(self._providers)}"
        read = client.call("GET", path)
        if not read.succeeded:
            return
        generation = read.reply["generation"]
        guard = {"resource_provider_generation": generation}
        match rng.choice(("inventories", "traits", "no traits", "aggregates")):
            case "inventories":
                client.call("PUT", f"{path}/inventories", bodies.stock(generation, {"VCPU": rng.randint(*TOTALS)}))
            case "traits":
                client.call("PUT", f"{path}/traits", {**guard, "traits": bodies.sample(rng, bodies.TRAITS)})
            case "no traits":
                client.call("DELETE", f"{path}/traits")
            case "aggregates":
                client.call("PUT", f"{path}/aggregates", {**guard, "aggregates": bodies.sample(rng, self._aggregates)})

    def _read_provider(self, client: Client, rng: random.Random) -> None:
        page = rng.choice(("", "/inventories", "/traits", "/aggregates", "/usages", "/allocations"))
        client.call("GET", f"/resource_providers/{rng.choice(self._providers)}{page}")
