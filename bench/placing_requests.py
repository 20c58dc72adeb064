"""Requests of ``POST /v1/claims``, and the allocations in their responses."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator, Mapping
from typing import Any

import claims
import load

#: A query for a small part of a flat host of ``fill.py``.
FLAT = "resources=VCPU:1,DISK_GB:10,MEMORY_MB:256"
#: A query for two devices of different boards, a NIC and processors on one NUMA node of a "numa" host.
NUMA = (
    "resources_N=VCPU:2,MEMORY_MB:2048&resources_G=PGPU:1&resources_H=PGPU:1&resources_V=SRIOV_NET_VF:1"
    "&group_policy=isolate&same_subtree=_N,_G,_H,_V"
)

#: Allocations of a consumer: amounts by class, by the uuid of the provider.
Allocations = Mapping[str, Mapping[str, int]]


def body(query: str, count: int, strategy: str = "spread") -> dict[str, Any]:
    """Return the body of a request that claims the same for a number of new consumers."""
    owner = {"consumer_type": "INSTANCE", "project_id": "bench-project", "user_id": "bench-user"}
    requests = [{"consumer": claims.new_uuid(), **owner, "query": query} for _ in range(count)]
    return {"requests": requests, "strategy": strategy}


class Replies:
    """The raw responses of a run, which are parsed afterwards so that the load generator stays fast."""

    def __init__(self) -> None:
        self._kept: list[load.Answer] = []

    def client(self, server: load.Server, query: str, count: int = 1, calls: int | None = None) -> load.Client:
        """Claim for ``count`` new consumers per request, endlessly unless ``calls`` is given."""
        sent = 0
        while calls is None or sent < calls:
            sent += 1
            self.add((yield server.request("POST", "/v1/claims", body(query, count))))

    def add(self, answer: load.Answer | None) -> None:
        """Add a response."""
        if answer is not None:
            self._kept.append(answer)

    def __len__(self) -> int:
        return len(self._kept)

    def results(self, first: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the results of all consumers from a response on; a response without results yields one refusal."""
        for status, data in self._kept[first:]:
            try:
                yield from json.loads(data)["results"]
            except (ValueError, KeyError):
                yield {"status": status, "outcome": "no result", "error": {"code": data[:200].decode(errors="replace")}}

    def holdings(self) -> dict[str, Allocations]:
        """Return the allocations of each consumer according to the responses."""
        return {
            result["consumer"]: {
                provider: allocation["resources"] for provider, allocation in result["allocations"].items()
            }
            for result in self.results()
            if result["status"] == 200
        }

    def outcomes(self, first: int = 0) -> collections.Counter[str]:
        """Return the numbers of results from a response on, by "claimed" or the status and code of the error."""
        return collections.Counter(
            "claimed" if result["status"] == 200 else f"{result['status']} {result['error']['code']}"
            for result in self.results(first)
        )
