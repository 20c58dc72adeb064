"""Writes that are all possible, each beside another that it must not overlook.

Children are born and moved below a provider whose own ancestor moves from tree to tree; resource classes are deleted
while others add inventory of them; new consumers crowd on a provider that has room for some of them.  All names are
new, so that hardly a call is refused and each pair of writes meets often.
"""

from __future__ import annotations

import itertools
import random
import uuid

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.workload import Workload

#: Trees between which the ancestor moves: a child with a wrong root has the right one when it comes back.
ROOTS = 8
#: VCPU of the provider on which consumers crowd; each takes one.
ROOM = 1
#: How often a client tries to give back what it holds.
TRIES = 20


class Families(Workload):
    name = "families"

    def __init__(self) -> None:
        self._roots = [str(uuid.uuid4()) for _ in range(ROOTS)]
        self._moving, self._parent, self._stocked, self._crowded = (str(uuid.uuid4()) for _ in range(4))
        self._prefix, self._numbers = f"CUSTOM_{uuid.uuid4().hex.upper()}", itertools.count()
        #: The class that was created last, and may be deleted at any time.
        self._newest = f"{self._prefix}_NONE"

    def prepare(self, client: Client) -> None:
        for provider in (*self._roots, self._stocked, self._crowded):
            assert self._bear_below(client, provider, None)
        assert self._bear_below(client, self._moving, self._roots[0])
        assert self._bear_below(client, self._parent, self._moving)
        path = f"/resource_providers/{self._crowded}/inventories"
        assert client.call("PUT", path, bodies.stock(0, {"VCPU": ROOM})).succeeded

    def run(self, client: Client, chance: random.Random) -> None:
        works = {
            self._move: 20,
            self._bear: 20,
            self._read: 5,
            self._change_classes: 10,
            self._stock: 20,
            self._crowd: 30,
        }
        while not client.stopped.is_set():
            [work] = chance.choices([*works], [*works.values()])
            work(client, chance)
        # All at once, and what is claimed stays.
        self._claim(client, str(uuid.uuid4()))

    def finish(self, client: Client) -> None:
        self._read(client, random.Random())

    def _read(self, client: Client, chance: random.Random) -> None:
        client.call("GET", f"/resource_providers?in_tree={self._parent}")

    def _move(self, client: Client, chance: random.Random) -> None:
        """Move the ancestor with all that is below it to another tree, or to the same one again."""
        body = {"name": self._moving, "parent_provider_uuid": chance.choice(self._roots)}
        client.call("PUT", f"/resource_providers/{self._moving}", body)

    def _bear(self, client: Client, chance: random.Random) -> None:
        """Create a child below the ancestor, or a root that moves there."""
        child = str(uuid.uuid4())
        parent = chance.choice((self._parent, None))
        if self._bear_below(client, child, parent) and parent is None:
            body = {"name": child, "parent_provider_uuid": self._parent}
            client.call("PUT", f"/resource_providers/{child}", body)
        while not client.stopped.is_set() and chance.random() < 0.5:
            # Many of them go again, so that the trees stay small.
            if client.call("DELETE", f"/resource_providers/{child}").status in (204, 404):
                break

    @staticmethod
    def _bear_below(client: Client, provider: str, parent: str | None) -> bool:
        above = {} if parent is None else {"parent_provider_uuid": parent}
        return client.call("POST", "/resource_providers", {"name": provider, "uuid": provider, **above}).succeeded

    def _change_classes(self, client: Client, chance: random.Random) -> None:
        """Create two classes, and delete the first: the database cannot give its id to another one."""
        number = next(self._numbers)
        first, second = f"{self._prefix}_{number}_A", f"{self._prefix}_{number}_B"
        for name in (first, second):
            client.call("PUT", f"/resource_classes/{name}")
        self._newest = first
        client.call("DELETE", f"/resource_classes/{first}")

    def _stock(self, client: Client, chance: random.Random) -> None:
        path = f"/resource_providers/{self._stocked}/inventories"
        client.call("POST", path, {"resource_class": self._newest, "total": 1})

    def _crowd(self, client: Client, chance: random.Random) -> None:
        """Claim for a new consumer, and give it back after another call."""
        consumer = str(uuid.uuid4())
        claimed = self._claim(client, consumer)
        if claimed.succeeded:
            client.call("GET", f"/resource_providers/{self._crowded}/usages")
        for _ in range(TRIES if claimed.succeeded or claimed.is_open else 0):
            if client.call("DELETE", f"/allocations/{consumer}").status in (204, 404):
                break

    def _claim(self, client: Client, consumer: str) -> Operation:
        body = bodies.claim(39, {self._crowded: {"VCPU": 1}})
        return client.call("PUT", f"/allocations/{consumer}", body)
