"""A bank: clients move VCPU between accounts, the sum is constant, and each write raises a tick of its client.

Accounts are consumers of one project on the providers of one tree.  A *purse* belongs to one writer: one or two
accounts, and a resource class for its ticks.  Each write of a purse raises the first account's amount of that class by
one.  So a read of all sums shows a vector clock with one component per purse.

A purse with two accounts is written with generations, so a write with an unknown outcome can take effect only before
the next one that succeeds.  A purse with a single account is written without generations, and only the providers of its
VCPU change.  It is retired after a write with an unknown outcome that no read shows, because that write may still take
effect.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jepsen.client import Client
from jepsen.history import Operation
from jepsen.workloads import bodies
from jepsen.workloads.workload import Workload

#: Providers of the tree that all purses share; the first is the root.  Each purse also has its own provider.
SHARED = 3
#: Single-account purses per client, used one after another.
UNGUARDED_PURSES = 2
#: VCPU per purse.
SUM = 12
_PLENTY = 1_000_000


@dataclass(slots=True)
class Account:
    """A consumer, as its only writer last read or wrote it."""

    uuid: str
    vcpu: int = 0
    generation: int | None = None


@dataclass(slots=True)
class Purse:
    """The accounts of one writer; ``provider`` belongs to this purse alone."""

    number: int
    tick_class: str
    provider: str
    accounts: Sequence[Account]
    tick: int = 0

    def note(self, tick: int) -> Mapping[str, Any]:
        return {"bank": {"client": self.number, "tick": tick}}


class Bank(Workload):
    name = "bank"

    def __init__(self) -> None:
        self._owner = bodies.Owner(project=str(uuid.uuid4()))
        self._shared = [str(uuid.uuid4()) for _ in range(SHARED)]
        numbers = itertools.count()
        self._guarded = [_purse(next(numbers), accounts=2) for _ in range(self.clients)]
        self._unguarded = [
            [_purse(next(numbers), accounts=1) for _ in range(UNGUARDED_PURSES)] for _ in range(self.clients)
        ]
        self._purses = [*self._guarded, *itertools.chain(*self._unguarded)]

    def describe(self) -> Mapping[str, Any]:
        ticks = [purse.tick_class for purse in self._purses]
        return {"bank": {"project": self._owner.project, "total": SUM * len(self._purses), "ticks": ticks}}

    # --- setup and final reads ---

    def prepare(self, client: Client) -> None:
        for purse in self._purses:
            assert client.call("PUT", f"/resource_classes/{purse.tick_class}").succeeded
        root, *children = self._shared
        ticks = {purse.tick_class: _PLENTY for purse in self._purses}
        _create(client, root, {"VCPU": _PLENTY, **ticks})
        for child in children:
            _create(client, child, {"VCPU": _PLENTY, **ticks}, root)
        for purse in self._purses:
            _create(client, purse.provider, {"VCPU": _PLENTY, purse.tick_class: _PLENTY}, root)
            first = purse.accounts[0]
            body = bodies.claim(39, {purse.provider: {"VCPU": SUM}}, owner=self._owner)
            assert client.call("PUT", f"/allocations/{first.uuid}", body).succeeded

    def finish(self, client: Client) -> None:
        for path, minor in self._pages():
            client.call("GET", path, minor=minor, note={"bank": "read"})

    def run(self, client: Client, rng: random.Random) -> None:
        position = client.process % self.clients
        guarded, unguarded = self._guarded[position], [*self._unguarded[position]]
        self._read_purse(client, guarded)
        while not client.stopped.is_set():
            if rng.random() < 0.5:
                path, minor = rng.choice(self._pages())
                client.call("GET", path, minor=minor, note={"bank": "read"})
            elif unguarded and rng.random() < 0.3:
                if not self._write_unguarded(client, rng, unguarded[0]):
                    unguarded.pop(0)
            else:
                self._write_guarded(client, rng, guarded)

    def _pages(self) -> Sequence[tuple[str, int]]:
        project, root = self._owner.project, self._shared[0]
        return [
            (f"/usages?project_id={project}", 39),
            (f"/usages?project_id={project}", 37),
            (f"/allocation_candidates?resources=VCPU:1&in_tree={root}", 39),
            (f"/v1/overview?root={root}", 39),
        ]

    # --- with generations ---

    def _write_guarded(self, client: Client, rng: random.Random, purse: Purse) -> None:
        write = rng.choice((self._swap, self._swap, self._move, self._reshape))
        if not write(client, rng, purse).succeeded:
            self._read_purse(client, purse)

    def _swap(self, client: Client, rng: random.Random, purse: Purse) -> Operation:
        """Move an amount between the accounts in one request."""
        minor, amounts = rng.choice(bodies.GUARDED), _random_balances(rng)
        body = self._bodies(rng, purse, minor, amounts)
        return _update_purse(
            client.call("POST", "/allocations", body, minor=minor, note=purse.note(purse.tick + 1)), purse, amounts
        )

    def _reshape(self, client: Client, rng: random.Random, purse: Purse) -> Operation:
        """Move an amount between the accounts, and change the inventory of the purse's provider."""
        read = client.call("GET", f"/resource_providers/{purse.provider}")
        if not read.succeeded:
            return read
        minor, amounts = rng.choice((30, 34, 38, 39)), _random_balances(rng)
        totals = {"VCPU": _PLENTY + rng.randrange(10), purse.tick_class: _PLENTY}
        body = {
            "inventories": {purse.provider: bodies.stock(read.reply["generation"], totals)},
            "allocations": self._bodies(rng, purse, minor, amounts),
        }
        return _update_purse(
            client.call("POST", "/reshaper", body, minor=minor, note=purse.note(purse.tick + 1)), purse, amounts
        )

    def _move(self, client: Client, rng: random.Random, purse: Purse) -> Operation:
        """Move the first account's VCPU to other providers."""
        first, minor = purse.accounts[0], rng.choice(bodies.GUARDED)
        resources = self._random_place(rng, purse, first.vcpu, purse.tick + 1)
        body = bodies.claim(minor, resources, first.generation, self._owner)
        path, note = f"/allocations/{first.uuid}", purse.note(purse.tick + 1)
        return _update_purse(client.call("PUT", path, body, minor=minor, note=note), purse, [first.vcpu])

    def _bodies(self, rng: random.Random, purse: Purse, minor: int, amounts: Sequence[int]) -> Mapping[str, Any]:
        ticks = (purse.tick + 1, 0)
        return {
            account.uuid: bodies.claim(
                minor, self._random_place(rng, purse, amount, tick), account.generation, self._owner
            )
            for account, amount, tick in zip(purse.accounts, amounts, ticks, strict=True)
            if amount or tick or account.generation is not None
        }

    def _read_purse(self, client: Client, purse: Purse) -> bool:
        """Read all accounts; return False if the run ended before a read succeeded."""
        for account in purse.accounts:
            while not (read := client.call("GET", f"/allocations/{account.uuid}")).succeeded:
                if client.stopped.is_set():
                    return False
            account.generation = read.reply.get("consumer_generation")
            account.vcpu = _amount_held(read, "VCPU")
            if account is purse.accounts[0]:
                purse.tick = _amount_held(read, purse.tick_class)
        return True

    # --- without generations ---

    def _write_unguarded(self, client: Client, rng: random.Random, purse: Purse) -> bool:
        """Move the VCPU of the only account; return False if the purse must be retired."""
        if not self._read_purse(client, purse):
            return False
        [account], tick, minor = purse.accounts, purse.tick + 1, rng.choice((12, 13, 27))
        body = bodies.claim(minor, self._random_place(rng, purse, account.vcpu, tick), owner=self._owner)
        call = (
            ("POST", "/allocations", {account.uuid: body})
            if minor == 13
            else ("PUT", f"/allocations/{account.uuid}", body)
        )
        operation = client.call(*call, minor=minor, note=purse.note(tick))
        if not operation.is_open:
            return True
        return self._read_purse(client, purse) and purse.tick == tick

    def _random_place(self, rng: random.Random, purse: Purse, vcpu: int, tick: int) -> bodies.Resources:
        """Return an amount divided between two random providers, and the ticks on a random provider."""
        resources: dict[str, dict[str, int]] = {}
        providers = [*self._shared, purse.provider]
        first, second = rng.sample(providers, 2)
        first_amount = rng.randint(0, vcpu)
        for provider, amount in ((first, first_amount), (second, vcpu - first_amount)):
            if amount:
                resources.setdefault(provider, {})["VCPU"] = amount
        if tick:
            resources.setdefault(rng.choice(providers), {})[purse.tick_class] = tick
        return resources


def _purse(number: int, accounts: int) -> Purse:
    consumers = [Account(str(uuid.uuid4())) for _ in range(accounts)]
    return Purse(number, f"CUSTOM_TICK_{number}", str(uuid.uuid4()), consumers)


def _create(client: Client, provider: str, totals: Mapping[str, int], parent: str | None = None) -> None:
    body = {"name": provider, "uuid": provider, "parent_provider_uuid": parent}
    assert client.call("POST", "/resource_providers", body).succeeded
    assert client.call("PUT", f"/resource_providers/{provider}/inventories", bodies.stock(0, totals)).succeeded


def _random_balances(rng: random.Random) -> Sequence[int]:
    """Return random balances of the two accounts of a purse; 0 for the second one removes its consumer."""
    second = rng.randint(0, SUM)
    return [SUM - second, second]


def _update_purse(operation: Operation, purse: Purse, amounts: Sequence[int]) -> Operation:
    """Update the purse after a successful write; ``amounts`` are the new balances of its first accounts."""
    if operation.succeeded:
        purse.tick += 1
        for account, amount in zip(purse.accounts, amounts, strict=False):
            account.vcpu = amount
            account.generation = (account.generation or 0) + 1
        second = purse.accounts[1]
        if len(amounts) == 2 and not second.vcpu:
            second.generation = None
    return operation


def _amount_held(operation: Operation, resource_class: str) -> int:
    entries = operation.reply["allocations"].values()
    return sum(entry["resources"].get(resource_class, 0) for entry in entries)
