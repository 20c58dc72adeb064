"""Clients that contend for few consumers and few providers, of which the capacity is small.

Consumers are written with the generation that was read, with null, and by versions without generations; alone and
several at once; deleted and read.  Inventories, traits and aggregates of the providers are replaced with a generation.
A consumer is replaced by a new one after some calls, and when the outcome of a write is unknown: the search for an
order of the calls takes a time that grows with the calls of one consumer, and doubles with each that is open.
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
#: Of each provider; a claim takes 1 to 3 of one or two providers.
TOTALS = (4, 7)
#: After how many calls a consumer is replaced by a new one.
CALLS = 60
#: How many claims there are before a project is new, and how many of the newest ones are used.
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
            created = client.call("POST", "/resource_providers", {"name": provider, "uuid": provider})
            assert created.succeeded, created
            stocked = client.call("PUT", f"/resource_providers/{provider}/inventories", bodies.stock(0, {"VCPU": 6}))
            assert stocked.succeeded, stocked

    def run(self, client: Client, chance: random.Random) -> None:
        works = {
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
            [work] = chance.choices([*works], [*works.values()])
            work(client, chance)

    # --- consumers ---

    def _put_guarded(self, client: Client, chance: random.Random) -> None:
        consumer, minor = self._choose(chance), chance.choice(bodies.GUARDED)
        resources = {} if chance.random() < 0.1 else self._resources(chance)
        body = bodies.claim(minor, resources, self._generation(client, consumer), self._owner(chance))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _put_new(self, client: Client, chance: random.Random) -> None:
        consumer, minor = self._choose(chance), chance.choice(bodies.GUARDED)
        body = bodies.claim(minor, self._resources(chance), None, self._owner(chance))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _put_unguarded(self, client: Client, chance: random.Random) -> None:
        consumer, minor = self._choose(chance), chance.choice(bodies.UNGUARDED)
        body = bodies.claim(minor, self._resources(chance), owner=self._owner(chance))
        self._write(client, [consumer], "PUT", f"/allocations/{consumer}", body, minor)

    def _post(self, client: Client, chance: random.Random) -> None:
        """Write several at once; from 1.13 on, and with generations from 1.28 on."""
        consumers = chance.sample(self._consumers, chance.randint(1, 3))
        minor = chance.choice((13, *bodies.GUARDED))
        body = {
            consumer: bodies.claim(
                minor,
                {} if chance.random() < 0.2 else self._resources(chance),
                self._generation(client, consumer) if minor >= 28 else None,
                self._owner(chance),
            )
            for consumer in consumers
        }
        self._write(client, consumers, "POST", "/allocations", body, minor)

    def _delete(self, client: Client, chance: random.Random) -> None:
        consumer = self._choose(chance)
        self._write(client, [consumer], "DELETE", f"/allocations/{consumer}", None, None)

    def _read(self, client: Client, chance: random.Random) -> None:
        minor = chance.choice((*bodies.UNGUARDED, *bodies.GUARDED))
        client.call("GET", f"/allocations/{self._choose(chance)}", minor=minor)

    def _generation(self, client: Client, consumer: str) -> int | None:
        shown = client.call("GET", f"/allocations/{consumer}")
        return shown.reply.get("consumer_generation") if shown.succeeded else None

    def _write(
        self, client: Client, consumers: list[str], method: str, path: str, body: Any, minor: int | None
    ) -> None:
        written = client.call(method, path, body, minor=minor)
        for consumer in consumers:
            self._count(client, consumer, written)

    def _count(self, client: Client, consumer: str, written: Operation) -> None:
        with self._replacing:
            if consumer not in self._consumers:
                return
            self._calls[consumer] += 1
            if not written.is_open and self._calls[consumer] < CALLS:
                return
            successor = str(uuid.uuid4())
            self._consumers[self._consumers.index(consumer)] = successor
            self._calls[successor] = 0
        while not client.stopped.is_set():
            released = client.call("DELETE", f"/allocations/{consumer}")
            if released.succeeded or released.status == 404:
                return

    def _choose(self, chance: random.Random) -> str:
        return chance.choice(self._consumers)

    def _resources(self, chance: random.Random) -> bodies.Resources:
        providers = chance.sample(self._providers, chance.randint(1, 2))
        return {provider: {"VCPU": chance.randint(1, 3)} for provider in providers}

    def _owner(self, chance: random.Random) -> bodies.Owner:
        return bodies.Owner(chance.choice(("red", "blue", self._recent_project(chance))), chance.choice(("ann", "bob")))

    def _recent_project(self, chance: random.Random) -> str:
        """Return one of the newest projects: a database that loses commits may give their ids to others."""
        return f"project-{next(self._claims) // CLAIMS_OF_PROJECT - chance.randrange(RECENT)}"

    # --- providers ---

    def _write_provider(self, client: Client, chance: random.Random) -> None:
        path = f"/resource_providers/{chance.choice(self._providers)}"
        shown = client.call("GET", path)
        if not shown.succeeded:
            return
        generation = shown.reply["generation"]
        guard = {"resource_provider_generation": generation}
        match chance.choice(("inventories", "traits", "no traits", "aggregates")):
            case "inventories":
                client.call("PUT", f"{path}/inventories", bodies.stock(generation, {"VCPU": chance.randint(*TOTALS)}))
            case "traits":
                client.call("PUT", f"{path}/traits", {**guard, "traits": bodies.some(chance, bodies.TRAITS)})
            case "no traits":
                client.call("DELETE", f"{path}/traits")
            case "aggregates":
                client.call("PUT", f"{path}/aggregates", {**guard, "aggregates": bodies.some(chance, self._aggregates)})

    def _read_provider(self, client: Client, chance: random.Random) -> None:
        about = chance.choice(("", "/inventories", "/traits", "/aggregates", "/usages", "/allocations"))
        client.call("GET", f"/resource_providers/{chance.choice(self._providers)}{about}")
