"""Pairs of valid concurrent writes that conflict unless the service locks the right rows.

Children are created and moved below a provider whose own ancestor moves between trees; resource classes are deleted
while others add inventories of them; new consumers compete for a provider with capacity for one of them.  All names are
new, so that few requests are refused and the writes of each pair often coincide.
"""

from __future__ import annotations

import itertools
import random
import uuid

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.workload import Workload

#: Trees between which the ancestor moves; with few of them, a wrong root of a child would soon be right by chance.
ROOTS = 8
#: VCPU of the contended provider; each consumer takes one.
CAPACITY = 1
#: Attempts of a client to release its claim.
RELEASE_ATTEMPTS = 20


class Families(Workload):
    name = "families"

    def __init__(self) -> None:
        self._roots = [str(uuid.uuid4()) for _ in range(ROOTS)]
        self._moving, self._parent, self._stocked, self._crowded = (str(uuid.uuid4()) for _ in range(4))
        self._prefix, self._numbers = f"CUSTOM_{uuid.uuid4().hex.upper()}", itertools.count()
        #: The newest class, which may be deleted at any time.
        self._newest = f"{self._prefix}_NONE"

    def prepare(self, client: Client) -> None:
        for provider in (*self._roots, self._stocked, self._crowded):
            assert self._create_below(client, provider, None)
        assert self._create_below(client, self._moving, self._roots[0])
        assert self._create_below(client, self._parent, self._moving)
        path = f"/resource_providers/{self._crowded}/inventories"
        assert client.call("PUT", path, bodies.stock(0, {"VCPU": CAPACITY})).succeeded

    def run(self, client: Client, rng: random.Random) -> None:
        weights = {
            self._move: 20,
            self._create_child: 20,
            self._read: 5,
            self._change_classes: 10,
            self._stock: 20,
            self._crowd: 30,
        }
        while not client.stopped.is_set():
            [work] = rng.choices([*weights], [*weights.values()])
            work(client, rng)
        # All clients claim at the same time, and do not release.
        self._claim(client, str(uuid.uuid4()))

    def finish(self, client: Client) -> None:
        self._read(client, random.Random())

    def _read(self, client: Client, rng: random.Random) -> None:
        client.call("GET", f"/resource_providers?in_tree={self._parent}")

    def _move(self, client: Client, rng: random.Random) -> None:
        """Move the ancestor, with all its descendants, to a random tree."""
        body = {"name": self._moving, "parent_provider_uuid": rng.choice(self._roots)}
        client.call("PUT", f"/resource_providers/{self._moving}", body)

    def _create_child(self, client: Client, rng: random.Random) -> None:
        """Create a child of the parent, or a root that is moved there."""
        child = str(uuid.uuid4())
        parent = rng.choice((self._parent, None))
        if self._create_below(client, child, parent) and parent is None:
            body = {"name": child, "parent_provider_uuid": self._parent}
            client.call("PUT", f"/resource_providers/{child}", body)
        while not client.stopped.is_set() and rng.random() < 0.5:
            # Many children are deleted again, so that the trees stay small.
            if client.call("DELETE", f"/resource_providers/{child}").status in (204, 404):
                break

    @staticmethod
    def _create_below(client: Client, provider: str, parent: str | None) -> bool:
        parent_field = {} if parent is None else {"parent_provider_uuid": parent}
        return client.call(
            "POST", "/resource_providers", {"name": provider, "uuid": provider, **parent_field}
        ).succeeded

    def _change_classes(self, client: Client, rng: random.Random) -> None:
        """Create two classes, and delete the first; because of the second, the database cannot reuse its id."""
        number = next(self._numbers)
        first, second = f"{self._prefix}_{number}_A", f"{self._prefix}_{number}_B"
        for name in (first, second):
            client.call("PUT", f"/resource_classes/{name}")
        self._newest = first
        client.call("DELETE", f"/resource_classes/{first}")

    def _stock(self, client: Client, rng: random.Random) -> None:
        path = f"/resource_providers/{self._stocked}/inventories"
        client.call("POST", path, {"resource_class": self._newest, "total": 1})

    def _crowd(self, client: Client, rng: random.Random) -> None:
        """Claim for a new consumer, and release the claim after another request."""
        consumer = str(uuid.uuid4())
        claim = self._claim(client, consumer)
        if claim.succeeded:
            client.call("GET", f"/resource_providers/{self._crowded}/usages")
        for _ in range(RELEASE_ATTEMPTS if claim.succeeded or claim.is_open else 0):
            if client.call("DELETE", f"/allocations/{consumer}").status in (204, 404):
                break

    def _claim(self, client: Client, consumer: str) -> Operation:
        body = bodies.claim(39, {self._crowded: {"VCPU": 1}})
        return client.call("PUT", f"/allocations/{consumer}", body)
