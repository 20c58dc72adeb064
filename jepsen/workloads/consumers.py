"""Consumers shared by the clients of a run, each replaced after many operations or an unknown outcome.

The time to search for an order grows with the number of operations on a consumer, and doubles with each open one.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterable, Sequence

from jepsen.client import Client
from jepsen.history import Operation

#: Operations after which a consumer is replaced by a new one.
CALLS = 60


class Consumers:
    """A fixed number of consumers; thread-safe."""

    def __init__(self, number: int) -> None:
        self._present = [str(uuid.uuid4()) for _ in range(number)]
        self._calls = dict.fromkeys(self._present, 0)
        self._replacing = threading.Lock()

    @property
    def all(self) -> Sequence[str]:
        """Consumers in use."""
        return [*self._present]

    def choose(self, rng: random.Random, number: int = 1) -> list[str]:
        """Return distinct random consumers."""
        return rng.sample(self._present, number)

    def count(self, client: Client, consumers: Iterable[str], operation: Operation) -> None:
        """Count an operation on these consumers; replace those that are used up, and release their allocations."""
        for consumer in self._replace_used_up(consumers, operation):
            while not client.stopped.is_set():
                release = client.call("DELETE", f"/allocations/{consumer}")
                if release.succeeded or release.status == 404:
                    break

    def _replace_used_up(self, consumers: Iterable[str], operation: Operation) -> Sequence[str]:
        """Count an operation on these consumers; replace those that are used up, and return them."""
        replaced = []
        with self._replacing:
            for consumer in consumers:
                if consumer not in self._calls:
                    continue
                self._calls[consumer] += 1
                if operation.is_open or self._calls[consumer] >= CALLS:
                    replaced.append(consumer)
                    del self._calls[consumer]
                    successor = str(uuid.uuid4())
                    self._present[self._present.index(consumer)] = successor
                    self._calls[successor] = 0
        return replaced
