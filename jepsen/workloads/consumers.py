"""The consumers that the clients of a run share, each of them until it was used often or an outcome is unknown.

The search for an order of the calls takes a time that grows with the calls of one consumer, and doubles with each that
is open.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterable, Sequence

from jepsen.client import Client
from jepsen.history import Operation

#: After how many calls a consumer is replaced by a new one.
CALLS = 60


class Consumers:
    """A number of consumers; threads share it."""

    def __init__(self, number: int) -> None:
        self._present = [str(uuid.uuid4()) for _ in range(number)]
        self._calls = dict.fromkeys(self._present, 0)
        self._replacing = threading.Lock()

    @property
    def all(self) -> Sequence[str]:
        """Those that are in use."""
        return [*self._present]

    def choose(self, chance: random.Random, number: int = 1) -> list[str]:
        """Return some of them, each once."""
        return chance.sample(self._present, number)

    def count(self, client: Client, consumers: Iterable[str], called: Operation) -> None:
        """Count a call about these consumers; those that are not used any more are released, and others come."""
        for consumer in self._replaced(consumers, called):
            while not client.stopped.is_set():
                released = client.call("DELETE", f"/allocations/{consumer}")
                if released.succeeded or released.status == 404:
                    break

    def _replaced(self, consumers: Iterable[str], called: Operation) -> Sequence[str]:
        """Return the consumers in whose place others have come."""
        replaced = []
        with self._replacing:
            for consumer in consumers:
                if consumer not in self._calls:
                    continue
                self._calls[consumer] += 1
                if called.is_open or self._calls[consumer] >= CALLS:
                    replaced.append(consumer)
                    del self._calls[consumer]
                    successor = str(uuid.uuid4())
                    self._present[self._present.index(consumer)] = successor
                    self._calls[successor] = 0
        return replaced
