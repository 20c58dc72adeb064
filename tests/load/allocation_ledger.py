"""Clients that record the allocations of each successful response, to compare them with the state at the end."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from typing import Any

from tests.caller import Answer
from tests.load.storm import Call, Storm, claim, new

Allocations = dict[str, dict[str, int]]
NOTHING: Allocations = {}


class AllocationLedger:
    """The allocations that each consumer may have, according to the responses to its client."""

    def __init__(self, storm: Storm, providers: list[str]) -> None:
        self._storm, self._providers = storm, providers
        self.possible: dict[str, list[Allocations]] = {}
        self.answers: collections.Counter[int] = collections.Counter()

    def run_client(self, seed: int, is_done: Callable[[], bool]) -> None:
        """Run a client whose consumers claim; some of them move, and some are released."""
        chance = random.Random(seed)
        while not is_done():
            consumer, current = new(), NOTHING
            for generation, requested in enumerate(self._requested_allocations(chance)):
                call = (
                    claim(requested, generation or None, consumer)
                    if requested
                    else Call("DELETE", f"/allocations/{consumer}")
                )
                answer = self._storm.ask(*call)
                self.answers[answer.status] += 1
                self.possible[consumer] = possible_allocations(answer, current, requested)
                if self.possible[consumer] != [requested]:
                    break
                current = requested

    def _requested_allocations(self, chance: random.Random) -> list[Allocations]:
        """Return the successive allocations of a consumer; empty ones release it."""
        first, second, third = chance.sample(self._providers, 3)
        amounts = {"VCPU": chance.randint(1, 3), "DISK_GB": chance.randint(1, 9)}
        states = [{first: amounts, second: {"VCPU": 1}}, {third: amounts, first: {"DISK_GB": 1}}, NOTHING]
        return states[: chance.randint(1, 3)]

    def discrepancies(self) -> dict[str, Any]:
        """Return the consumers with wrong allocations, and the providers with wrong usages."""
        final = {consumer: self._storm.allocations(consumer) for consumer in self.possible}
        discrepancies: dict[str, Any] = {
            consumer: (allocations, self.possible[consumer])
            for consumer, allocations in final.items()
            if allocations not in self.possible[consumer]
        }
        for provider in self._providers:
            sums = {"VCPU": 0, "DISK_GB": 0}
            for allocations in final.values():
                for resource_class, amount in allocations.get(provider, {}).items():
                    sums[resource_class] += amount
            counted = self._storm.get(f"/resource_providers/{provider}/usages")["usages"]
            if counted != sums:
                discrepancies[provider] = (counted, sums)
        return discrepancies


def possible_allocations(answer: Answer, current: Allocations, requested: Allocations) -> list[Allocations]:
    """Return the allocations that a consumer may have after a response."""
    if answer.status == 204:
        return [requested]
    if answer.status == 0:
        return [current, requested]
    assert answer.status in (409, 503), answer
    unknown = answer.status == 503 and "may or may not be in effect" in answer.error["detail"]
    return [current, requested] if unknown else [current]
