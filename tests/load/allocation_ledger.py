"""Clients that record the allocations of each successful response, to compare them with the state at the end."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable
from typing import Any

from tests.caller import Answer
from tests.load.storm import Call, Storm, claim, new

Held = dict[str, dict[str, int]]
NOTHING: Held = {}


class Books:
    """The allocations that each consumer may have, by the responses to its client."""

    def __init__(self, storm: Storm, providers: list[str]) -> None:
        self._storm, self._providers = storm, providers
        self.possible: dict[str, list[Held]] = {}
        self.answers: collections.Counter[int] = collections.Counter()

    def keep(self, seed: int, enough: Callable[[], bool]) -> None:
        """Run a client: consumers claim, and some of them move or release."""
        chance = random.Random(seed)
        while not enough():
            consumer, held = new(), NOTHING
            for generation, wanted in enumerate(self._wishes(chance)):
                call = (
                    claim(wanted, generation or None, consumer)
                    if wanted
                    else Call("DELETE", f"/allocations/{consumer}")
                )
                answer = self._storm.ask(*call)
                self.answers[answer.status] += 1
                self.possible[consumer] = outcomes(answer, held, wanted)
                if self.possible[consumer] != [wanted]:
                    break
                held = wanted

    def _wishes(self, chance: random.Random) -> list[Held]:
        """Return the first and the second allocations of a consumer."""
        first, second, third = chance.sample(self._providers, 3)
        amounts = {"VCPU": chance.randint(1, 3), "DISK_GB": chance.randint(1, 9)}
        wishes = [{first: amounts, second: {"VCPU": 1}}, {third: amounts, first: {"DISK_GB": 1}}, NOTHING]
        return wishes[: chance.randint(1, 3)]

    def lies(self) -> dict[str, Any]:
        """Return consumers with wrong allocations, and providers with wrong usages."""
        final = {consumer: self._storm.held(consumer) for consumer in self.possible}
        lies: dict[str, Any] = {
            consumer: (held, self.possible[consumer])
            for consumer, held in final.items()
            if held not in self.possible[consumer]
        }
        for provider in self._providers:
            sums = {"VCPU": 0, "DISK_GB": 0}
            for held in final.values():
                for resource_class, amount in held.get(provider, {}).items():
                    sums[resource_class] += amount
            counted = self._storm.get(f"/resource_providers/{provider}/usages")["usages"]
            if counted != sums:
                lies[provider] = (counted, sums)
        return lies


def outcomes(answer: Answer, held: Held, wanted: Held) -> list[Held]:
    """Return the allocations that a consumer may have after a response."""
    if answer.status == 204:
        return [wanted]
    if answer.status == 0:
        return [held, wanted]
    assert answer.status in (409, 503), answer
    unknown = answer.status == 503 and "may or may not be in effect" in answer.error["detail"]
    return [held, wanted] if unknown else [held]
