"""Trees whose providers are created, moved, renamed and deleted during claims on them, with short-lived classes.

All clients work on a few providers below a few roots, and on a few classes and names, so that most writes coincide with
others of the same provider, tree, class or name.  A deleted provider is created again under the same uuid.  After many
writes, or one with an unknown outcome, another uuid takes its place.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Sequence
from typing import Any

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.workload import Workload

ROOTS, PROVIDERS, CLASSES, NAMES = 2, 8, 3, 12
#: Total of each class on each provider.
TOTAL = 4
#: Writes after which another uuid takes the place of a provider.
WRITES = 60


class Trees(Workload):
    name = "trees"

    def __init__(self) -> None:
        unique = uuid.uuid4().hex
        self._roots = [str(uuid.uuid4()) for _ in range(ROOTS)]
        self._providers = [str(uuid.uuid4()) for _ in range(PROVIDERS)]
        self._writes = dict.fromkeys(self._providers, 0)
        self._classes = [f"CUSTOM_{unique.upper()}_{number}" for number in range(CLASSES)]
        self._names = [f"{unique}-{number}" for number in range(NAMES)]
        self._replacing = threading.Lock()

    def prepare(self, client: Client) -> None:
        for root in self._roots:
            assert client.call("POST", "/resource_providers", {"name": root, "uuid": root}).succeeded
        for resource_class in self._classes:
            assert client.call("PUT", f"/resource_classes/{resource_class}").succeeded

    def run(self, client: Client, rng: random.Random) -> None:
        weights = {
            self._create: 20,
            self._move: 15,
            self._rename: 5,
            self._delete: 5,
            self._stock: 15,
            self._set_traits_or_aggregates: 10,
            self._add_class: 8,
            self._delete_class: 6,
            self._claim: 20,
            self._read: 20,
        }
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)

    # --- providers ---

    def _create(self, client: Client, rng: random.Random) -> None:
        """Create a provider, and at once the inventories that other clients try to claim."""
        provider = rng.choice(self._providers)
        body = {"name": rng.choice(self._names), "uuid": provider, "parent_provider_uuid": self._parent(rng)}
        creation = client.call("POST", "/resource_providers", body)
        self._count(provider, creation)
        if creation.succeeded:
            path = f"/resource_providers/{provider}/inventories"
            self._count(provider, client.call("PUT", path, bodies.stock(0, self._totals(rng))))

    def _move(self, client: Client, rng: random.Random) -> None:
        provider = rng.choice(self._providers)
        parent = None if rng.random() < 0.2 else self._parent(rng)
        body = {"name": rng.choice(self._names), "parent_provider_uuid": parent}
        self._count(provider, client.call("PUT", f"/resource_providers/{provider}", body))

    def _rename(self, client: Client, rng: random.Random) -> None:
        """Change only the name, as versions without trees do."""
        provider, body = rng.choice(self._providers), {"name": rng.choice(self._names)}
        self._count(provider, client.call("PUT", f"/resource_providers/{provider}", body, minor=13))

    def _delete(self, client: Client, rng: random.Random) -> None:
        provider = rng.choice(self._providers)
        self._count(provider, client.call("DELETE", f"/resource_providers/{provider}"))

    def _count(self, provider: str, operation: Operation) -> None:
        with self._replacing:
            if provider in self._writes:
                self._writes[provider] += 1
                if operation.is_open or self._writes[provider] >= WRITES:
                    successor = str(uuid.uuid4())
                    self._providers[self._providers.index(provider)] = successor
                    del self._writes[provider]
                    self._writes[successor] = 0

    def _parent(self, rng: random.Random) -> str:
        return rng.choice(self._roots if rng.random() < 0.4 else self._providers)

    # --- contents ---

    def _stock(self, client: Client, rng: random.Random) -> None:
        """Replace, add or remove inventories."""
        provider = self._parent(rng)
        path, resource_class = f"/resource_providers/{provider}/inventories", rng.choice(self._classes)
        read = client.call("GET", f"/resource_providers/{provider}")
        generation = read.reply["generation"] if read.succeeded else 0
        guard = {"resource_provider_generation": generation}
        match rng.choice(("replace", "replace", "add", "change", "remove", "remove all")):
            case "replace":
                operation = client.call("PUT", path, bodies.stock(generation, self._totals(rng)))
            case "add":
                operation = client.call("POST", path, {"resource_class": resource_class, "total": TOTAL})
            case "change":
                operation = client.call("PUT", f"{path}/{resource_class}", {**guard, "total": TOTAL + 1})
            case "remove":
                operation = client.call("DELETE", f"{path}/{resource_class}")
            case _:
                operation = client.call("DELETE", path)
        self._count(provider, operation)

    def _set_traits_or_aggregates(self, client: Client, rng: random.Random) -> None:
        """Replace or remove traits, or replace aggregates."""
        provider = self._parent(rng)
        path = f"/resource_providers/{provider}"
        read = client.call("GET", path)
        guard = {"resource_provider_generation": read.reply["generation"] if read.succeeded else 0}
        match rng.choice(("traits", "traits", "no traits", "aggregates", "aggregates")):
            case "traits":
                operation = client.call("PUT", f"{path}/traits", {**guard, "traits": bodies.sample(rng, bodies.TRAITS)})
            case "no traits":
                operation = client.call("DELETE", f"{path}/traits")
            case _:
                body = {**guard, "aggregates": bodies.sample(rng, self._roots)}
                operation = client.call("PUT", f"{path}/aggregates", body)
        self._count(provider, operation)

    def _add_class(self, client: Client, rng: random.Random) -> None:
        client.call("PUT", f"/resource_classes/{rng.choice(self._classes)}")

    def _delete_class(self, client: Client, rng: random.Random) -> None:
        client.call("DELETE", f"/resource_classes/{rng.choice(self._classes)}")

    def _claim(self, client: Client, rng: random.Random) -> None:
        """Claim one unit on one or two providers, which may lack inventory of the class, and release it."""
        consumer, resource_class = str(uuid.uuid4()), rng.choice(self._classes)
        providers = {self._parent(rng) for _ in range(rng.randint(1, 2))}
        body = bodies.claim(39, {provider: {resource_class: 1} for provider in sorted(providers)})
        claim = client.call("PUT", f"/allocations/{consumer}", body)
        if rng.random() < 0.5:
            self._read(client, rng)
        while (claim.succeeded or claim.is_open) and not client.stopped.is_set():
            release = client.call("DELETE", f"/allocations/{consumer}")
            if release.succeeded or release.status == 404:
                return

    def _totals(self, rng: random.Random) -> dict[str, int]:
        classes: Sequence[str] = rng.sample(self._classes, rng.randint(0, CLASSES))
        return dict.fromkeys(classes, TOTAL)

    # --- reads ---

    def _read(self, client: Client, rng: random.Random) -> None:
        provider, resource_class = self._parent(rng), rng.choice(self._classes)
        pages: Any = (
            f"/resource_providers?in_tree={provider}",
            f"/resource_providers/{provider}",
            *(f"/resource_providers/{provider}/{kind}" for kind in ("usages", "inventories", "traits", "aggregates")),
            f"/v1/overview?root={provider}",
            f"/allocation_candidates?resources={resource_class}:1&in_tree={provider}",
        )
        client.call("GET", rng.choice(pages))
