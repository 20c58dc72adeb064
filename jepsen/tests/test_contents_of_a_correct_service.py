"""Check ``contents`` on a service that is correct by construction: its histories violate nothing.

Clients and losses of the last commits run in random steps.  A write takes effect in one step between its beginning and
its end; an open one at any later time, or never.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from jepsen.checker.contents import contents
from jepsen.tests.handwritten_histories import call, error, history, loss
from jepsen.tests.test_contents import PATH, A, B, C, P

#: Steps after which no operation begins.
LENGTH = 1500


@dataclass(frozen=True)
class State:
    name: str = ""
    generation: int = 0
    inventories: dict[str, Any] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)


class SimulatedService:
    """One provider of a correct service, clients with random steps, and the history of their operations."""

    def __init__(self, seed, *, lives, losses):
        self.rng, self.now = random.Random(seed), 0
        self.operations, self.events = [], []
        #: Committed states that are not lost; None: the provider does not exist.
        self.states = [None]
        self._lives = lives
        running = [self.client(chance_of_open) for chance_of_open in (0.0, 0.0, 0.1, 0.2)]
        running += [self.lose() for _ in range(losses)]
        while running:
            self.now += 1
            client = self.rng.choice(running)
            running += next(client, None) or ()
            if client.gi_frame is None:
                running = [other for other in running if other is not client]

    def pause(self):
        for _ in range(self.rng.randrange(4)):
            yield

    def client(self, chance_of_open):
        while self.now < LENGTH:
            write = self.rng.random() < 0.5
            yield from self.call(*self.choose(), chance_of_open) if write else self.read()

    def call(self, method, below, body, chance_of_open):
        began, is_open = self.now, self.rng.random() < chance_of_open
        if is_open:
            # The write takes effect at any time, or never.
            yield [self.late(method, below, body)] if self.rng.random() < 0.7 else []
        yield from self.pause()
        status, reply = (0, None) if is_open else self.write(method, below, body)
        yield from self.pause()
        path = PATH.removesuffix(f"/{P}") if (method, below) == ("POST", "") else f"{PATH}{below}"
        self.record(began, None if is_open else self.now, method, path, body, status, reply)

    def read(self):
        """Read the generation first, as the service does, and then the contents."""
        began, kind = self.now, self.rng.choice(("inventories", "traits", "name"))
        below, key = ("", "generation") if kind == "name" else (f"/{kind}", "resource_provider_generation")
        yield from self.pause()
        generation = self.states[-1] and self.states[-1].generation
        yield from self.pause()
        if generation is None or self.states[-1] is None:
            status, reply = 404, error("missing")
        else:
            status, reply = 200, {key: generation, kind: getattr(self.states[-1], kind)}
        yield from self.pause()
        self.record(began, self.now, "GET", f"{PATH}{below}", None, status, reply)

    def record(self, began, ended, method, path, body, status, reply):
        self.operations.append(call(began, ended, method, path, body, status=status, reply=reply))

    def late(self, *arguments):
        for _ in range(self.rng.randrange(60)):
            yield
        self.write(*arguments)

    def lose(self):
        for _ in range(self.rng.randrange(50, 300)):
            yield
        began = self.now
        yield from self.pause()
        del self.states[self.rng.randint(1, len(self.states)) :]
        yield from self.pause()
        self.events.append(loss(began, self.now + 1))

    def choose(self):
        """Return a write that is valid now, or was shortly before."""
        generation = (self.states[-1] or State()).generation - self.rng.choice((0, 0, 0, 1))
        name, total, guard = f"C{self.rng.randrange(3)}", self.rng.randint(1, 9), {
            "resource_provider_generation": generation}  # fmt: skip
        create = ("POST", "", {"uuid": P, "name": f"n{total}"})
        if self.states == [None] or (self._lives and self.rng.random() < 0.1):
            return create
        writes = [
            ("PUT", "", {"name": f"n{total}"}),
            ("PUT", "/traits", {**guard, "traits": self.rng.sample([A, B, C], 2)}),
            ("DELETE", "/traits", None),
            ("PUT", "/inventories", {**guard, "inventories": {name: {"total": total}}}),
            ("POST", "/inventories", {"resource_class": name, "total": total}),
            ("PUT", f"/inventories/{name}", {**guard, "total": total}),
            ("DELETE", f"/inventories/{name}", None),
            *([("DELETE", "", None)] if self._lives else []),
        ]
        return self.rng.choice(writes)

    def write(self, method, below, body):
        """Commit a write; return the status and the body of its response."""
        state, (kind, _, key) = self.states[-1], below.strip("/").partition("/")
        if (method, below) == ("POST", ""):
            if state is not None:
                return 409, error("exists")
            self.states.append(State(body["name"]))
            return 200, {"uuid": P}
        if state is None:
            return 404, error("missing")
        if method == "PUT" and kind and body["resource_provider_generation"] != state.generation:
            return 409, error("resource provider generation conflict")
        self.states.append(new_state := state_after(state, method, kind, key, body))
        if method == "DELETE":
            return 204, None
        return 200, {"resource_provider_generation" if kind else "generation": new_state.generation}


def state_after(state, method, kind, key, body):
    match method, kind, key:
        case "DELETE", "", _:
            return None
        case "PUT", "", _:
            return replace(state, name=body["name"])
        case _, "traits", _:
            names = sorted(body["traits"] if body else [])
            return replace(state, traits=names, generation=state.generation + (names != state.traits))
        case "PUT", _, "":
            stocked = body["inventories"]
        case "POST", _, _:
            stocked = state.inventories | {body["resource_class"]: {"total": body["total"]}}
        case "PUT", _, _:
            stocked = state.inventories | {key: {"total": body["total"]}}
        case _:
            stocked = {name: record for name, record in state.inventories.items() if name != key}
    return replace(state, inventories=stocked, generation=state.generation + 1)


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize("losses", [0, 2])
@pytest.mark.parametrize("seed", range(5))
def test_a_correct_service_violates_nothing(seed, lives, losses):
    run = SimulatedService(seed, lives=lives, losses=losses)
    assert contents(history(*run.operations, events=run.events)) == []
    kinds = {(operation.method, operation.path) for operation in run.operations if operation.succeeded}
    assert len(kinds) > 8
