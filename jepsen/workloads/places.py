"""Clients of POST /v1/claims, one consumer or many in a call, beside clients of Placement on the same providers.

A call is repeated when its reply is lost, and sometimes when it is not: an equal request is answered with what the
consumer holds.  Consumers are moved with their generation, and placed apart from others or together with them, which
move meanwhile.  Of calls for all or nothing, some have a request that fits nowhere, or a consumer that others use.
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

#: Each host is a tree, with a provider of disks below its root.
HOSTS = 8
TOTALS, DISKS = {"VCPU": 8, "MEMORY_MB": 8192}, {"DISK_GB": 100}
#: Consumers that all clients share, and those that each client claims at once.
SHARED, BULK = 6, 20
#: How often a call without a reply is sent again.
REPEATS = 3
STRATEGIES: Sequence[Any] = (*(each.value for each in Preference), {"spread_over": "root"})


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

    def run(self, client: Client, chance: random.Random) -> None:
        self._bulks[client.process] = Consumers(BULK)
        works = {
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
            [work] = chance.choices([*works], [*works.values()])
            work(client, chance)

    # --- claims ---

    def _claim(self, client: Client, chance: random.Random) -> None:
        consumers = self._shared.choose(chance)
        body = self._body(chance, consumers, _query(chance, self._hosts), **_copies(chance))
        if chance.random() < 0.3:
            self._add_conditions(chance, body)
        self._post(client, chance, consumers, body)

    def _move(self, client: Client, chance: random.Random) -> None:
        [consumer] = self._shared.choose(chance)
        shown = client.call("GET", f"/v1/claims/{consumer}")
        if not (shown.succeeded or shown.status == 404):
            return
        generation = shown.reply.get("consumer_generation")
        move = {"keep": False, "consumer_generation": generation, **_copies(chance)}
        body = self._body(chance, [consumer], _query(chance, self._hosts), **move)
        if chance.random() < 0.6:
            self._add_conditions(chance, body, consumer)
        self._post(client, chance, [consumer], body)
        if chance.random() < 0.5:
            client.call("GET", f"/allocations/{consumer}")

    def _claim_many(self, client: Client, chance: random.Random) -> None:
        """Claim for twenty consumers at once, and release them."""
        consumers = self._bulks[client.process].all
        body = self._body(chance, consumers, _query(chance)) | {"all_or_nothing": chance.random() < 0.5}
        self._post(client, chance, consumers, body)
        self._delete(client, consumers)

    def _claim_all(self, client: Client, chance: random.Random) -> None:
        """Claim for some consumers or none of them; one may have no place, or hold something."""
        own, shared = self._bulks[client.process].choose(chance, 3), self._shared.choose(chance)
        consumers = own + shared if chance.random() < 0.4 else own
        body = self._body(chance, consumers, _query(chance)) | {"all_or_nothing": True}
        if chance.random() < 0.4:
            chance.choice(body["requests"])["query"] = f"resources=VCPU:{chance.choice((6, 8, 9))}"
        if chance.random() < 0.4:
            self._add_conditions(chance, body, *own[:1])
        self._post(client, chance, consumers, body)
        for consumer in own:
            client.call("GET", f"/v1/claims/{consumer}")
        self._delete(client, own)

    def _claim_apart(self, client: Client, chance: random.Random) -> None:
        """Claim for some consumers in different trees, and sometimes apart from those that others use."""
        consumers = self._bulks[client.process].choose(chance, 3)
        body = self._body(chance, consumers, _query(chance)) | {"all_or_nothing": chance.random() < 0.5}
        others = self._shared.choose(chance, chance.randint(1, 3)) if chance.random() < 0.5 else []
        body["apart_from"] = consumers + others
        self._post(client, chance, consumers, body)
        self._delete(client, consumers)

    def _claim_together(self, client: Client, chance: random.Random) -> None:
        consumers = self._bulks[client.process].choose(chance, 2)
        body = self._body(chance, consumers, _query(chance))
        body["together_with"] = consumers if chance.random() < 0.5 else self._shared.choose(chance)
        self._post(client, chance, consumers, body)
        self._delete(client, consumers)

    def _add_conditions(self, chance: random.Random, body: dict[str, Any], *own: str) -> None:
        """Have the places apart from consumers that others use, and move, or together with one of them.

        Calls that name all of these name each other's.
        """
        if chance.random() < 0.6:
            others = self._shared.choose(chance, chance.choice((1, 2, SHARED)))
            body["apart_from"] = [*dict.fromkeys([*own, *others])]
        else:
            body["together_with"] = self._shared.choose(chance)

    def _body(self, chance: random.Random, consumers: Sequence[str], query: Any, **more: Any) -> dict[str, Any]:
        owner = {"project_id": "places", "user_id": "ann", "consumer_type": "INSTANCE"}
        requests = [{"consumer": consumer, **owner, "query": query, **more} for consumer in consumers]
        return {"requests": requests, "strategy": chance.choice(STRATEGIES)}

    def _post(
        self, client: Client, chance: random.Random, consumers: Sequence[str], body: Mapping[str, Any]
    ) -> Operation:
        """Claim, until there is a reply or the call was sent often; and sometimes once more."""
        for _ in range(REPEATS):
            claimed = client.call("POST", "/v1/claims", body)
            if not claimed.is_open:
                break
        if not claimed.is_open and chance.random() < 0.2:
            claimed = client.call("POST", "/v1/claims", body)
        self._count(client, consumers, claimed)
        return claimed

    def _count(self, client: Client, consumers: Sequence[str], called: Operation) -> None:
        for pool in (self._shared, self._bulks[client.process]):
            pool.count(client, consumers, called)

    # --- others ---

    def _release(self, client: Client, chance: random.Random) -> None:
        self._delete(client, self._shared.choose(chance, chance.randint(1, 3)))

    def _delete(self, client: Client, consumers: Sequence[str]) -> None:
        path = f"/v1/claims?{'&'.join(f'consumer={consumer}' for consumer in consumers)}"
        self._count(client, consumers, client.call("DELETE", path))

    def _put(self, client: Client, chance: random.Random) -> None:
        """Claim as a client of Placement does, which has chosen the place itself."""
        consumers = self._shared.choose(chance)
        path = f"/allocations/{consumers[0]}"
        shown = client.call("GET", path)
        if not shown.succeeded:
            return
        resources = {chance.choice(self._hosts): {"VCPU": chance.randint(1, 3)}}
        body = bodies.claim(39, resources, shown.reply.get("consumer_generation"))
        self._shared.count(client, consumers, client.call("PUT", path, body))

    def _read(self, client: Client, chance: random.Random) -> None:
        [consumer] = self._shared.choose(chance)
        path = chance.choice(
            (f"/v1/claims/{consumer}", f"/allocations/{consumer}", f"/resource_providers/{chance.choice(self._hosts)}")
        )
        client.call("GET", path)


def _query(chance: random.Random, hosts: Sequence[str] = ()) -> Any:
    """Return a query in one of its notations, sometimes for one of these hosts."""
    group: dict[str, Any] = {"resources": {"VCPU": chance.randint(1, 3)}}
    if chance.random() < 0.5:
        group["resources"]["MEMORY_MB"] = 512
    if chance.random() < 0.1:
        group["resources"]["DISK_GB"] = 2
    if hosts and chance.random() < 0.3:
        group["in_tree"] = chance.choice(hosts)
    if chance.random() < 0.1:
        return {"groups": {"": group, "_DISK": {"resources": {"DISK_GB": 1}}}}
    if chance.random() < 0.3:
        return {"groups": {"": group}}
    amounts = ",".join(f"{name}:{amount}" for name, amount in group["resources"].items())
    return f"resources={amounts}" + (f"&in_tree={group['in_tree']}" if "in_tree" in group else "")


def _copies(chance: random.Random) -> dict[str, int]:
    """Return how many copies a request asks for."""
    return {"count": chance.randint(2, 3)} if chance.random() < 0.2 else {}
