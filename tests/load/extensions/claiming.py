"""Calls of /v1/claims in a storm, and hosts with a resource class unique to the storm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.caller import Answer
from tests.load.storm import Call, Storm, name, new

#: Codes of a lack of capacity, for the request itself or for another one that must be placed together with it.
NO_ROOM = {"placement.v1.no_room", "placement.v1.nothing_placed"}
CONCURRENT_UPDATE = "placement.concurrent_update"


def request(query: str, consumer: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one request of a call: a consumer, by default a new one, claims the resources of the query."""
    owner = {"consumer_type": "INSTANCE", "project_id": "p", "user_id": "u"}
    return {"consumer": consumer or new(), **owner, "query": query, **more}


def claiming(*requests: dict[str, Any], **options: Any) -> Call:
    """Return a call with these requests."""
    return Call("POST", "/v1/claims", {"requests": [*requests], **options})


def releasing(consumers: Iterable[str]) -> Call:
    return Call("DELETE", "/v1/claims?" + "&".join(f"consumer={consumer}" for consumer in consumers))


def results(answers: Iterable[Answer]) -> Iterator[dict[str, Any]]:
    """Yield the results of all requests of these calls; a call is 200 or 409."""
    for answer in answers:
        assert answer.status in (200, 409), answer
        assert answer.body["claimed"] == sum(result["status"] == 200 for result in answer.body["results"]), answer
        yield from answer.body["results"]


def refused_consumers(results: Iterable[dict[str, Any]]) -> set[str]:
    """Return the consumers refused for lack of capacity; raise AssertionError for any other refusal."""
    errors = {result["consumer"]: result["error"]["code"] for result in results if result["status"] != 200}
    assert set(errors.values()) <= NO_ROOM, errors
    return {*errors}


class Hosts:
    """Providers of a class that nothing else uses, each a tree."""

    def __init__(self, storm: Storm, *totals: int) -> None:
        self._storm, self.resource_class = storm, name("C")
        assert storm.ask("PUT", f"/resource_classes/{self.resource_class}").status == 201
        self.totals = {storm.provider(**{self.resource_class: total}): total for total in totals}

    def query(self, amount: int = 1) -> str:
        return f"resources={self.resource_class}:{amount}"

    def usage(self) -> dict[str, int]:
        return {host: self._storm.usage(host, self.resource_class) for host in self.totals}

    def free(self) -> list[int]:
        """Return the free amount of each host, the largest first."""
        usage = self.usage()
        return sorted((total - usage[host] for host, total in self.totals.items()), reverse=True)

    def amount_of(self, consumer: str) -> int:
        """Return the amount of this class that a consumer holds; it must hold nothing else."""
        allocations = self._storm.allocations(consumer)
        for host, amounts in allocations.items():
            assert host in self.totals, allocations
            assert {*amounts} == {self.resource_class}, allocations
        return sum(amounts[self.resource_class] for amounts in allocations.values())

    def host_of(self, consumer: str) -> str:
        """Return the only host of a consumer's allocations."""
        [host] = self._storm.allocations(consumer)
        return host
