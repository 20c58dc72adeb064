"""Consumers that come, move and go."""

from __future__ import annotations

import random
import uuid
from typing import Any

from placement.extensions.loading.demo.service import DemoClient

_RACK_A = "0a7c1f5e-6b1d-4c3e-8f2a-5d9e7b3c1a01"
#: What each kind of consumer asks for.
QUERIES = {
    "small": "resources=DISK_GB:20&resources1=VCPU:2,MEMORY_MB:4096",
    "medium": "resources=DISK_GB:80&resources1=VCPU:4,MEMORY_MB:16384&required1=HW_CPU_X86_AVX2",
    "large": f"resources=DISK_GB:200&resources1=VCPU:16,MEMORY_MB:65536&member_of={_RACK_A}",
    "training": "resources=DISK_GB:500&resources_numa=VCPU:12,MEMORY_MB:131072&resources_gpu0=PGPU:1"
    "&resources_gpu1=PGPU:1&resources_nic=SRIOV_NET_VF:1&same_subtree=_numa,_gpu0,_gpu1,_nic&group_policy=none",
}
_IN_SERVICE = "&root_required=!COMPUTE_STATUS_DISABLED&limit=100"
_PROJECTS = {"webshop": 38, "research": 22, "analytics": 18, "platform": 14, "games": 8}
_USERS = ("ada", "grace", "edsger", "barbara")


class Tenants:
    """The consumers that hold something, and what each of them has claimed."""

    def __init__(self, service: DemoClient, chooser: random.Random) -> None:
        self._service = service
        self._chooser = chooser
        #: The bodies of their claims, with the kind of each.
        self._claims: dict[str, tuple[str, dict[str, Any]]] = {}

    def owner(self, project: str | None = None) -> dict[str, str]:
        """Return a project, by default one that is chosen, and one of its users."""
        named = project or self._chooser.choices([*_PROJECTS], [*_PROJECTS.values()])[0]
        return {"project_id": named, "user_id": self._chooser.choice(_USERS)}

    def new(self) -> str:
        """Return the uuid of a new consumer."""
        return str(uuid.UUID(int=self._chooser.getrandbits(128), version=4))

    def claim(self, consumer: str, kind: str, owner: dict[str, str]) -> None:
        """Have a consumer claim one of the places that its query finds; none, if there is no place."""
        consumer_type = "TRAINING" if kind == "training" else "INSTANCE"
        self._put(consumer, kind, {**owner, "consumer_type": consumer_type, "consumer_generation": None})

    def release(self, consumer: str) -> None:
        """Give back what a consumer holds, if there was a place for it."""
        if known := self._claims.pop(consumer, None):
            self._service.send("DELETE", f"/allocations/{consumer}", caller=_caller(known[1]))

    def move_one_from(self, providers: set[str]) -> None:
        """Have one of the consumers that hold something of the providers claim another place."""
        for consumer, (kind, claim) in self._claims.items():
            if providers & claim["allocations"].keys():
                self._put(consumer, kind, {**claim, "consumer_generation": 1})
                return

    def _put(self, consumer: str, kind: str, claim: dict[str, Any]) -> None:
        found = self._service.send("GET", f"/allocation_candidates?{QUERIES[kind]}{_IN_SERVICE}")
        if found["allocation_requests"]:
            place = self._chooser.choice(found["allocation_requests"])["allocations"]
            claim = {**claim, "allocations": place}
            self._service.send("PUT", f"/allocations/{consumer}", claim, caller=_caller(claim))
            self._claims[consumer] = kind, claim


def _caller(claim: dict[str, Any]) -> str:
    """Return the user who claims, as a token of noauth2."""
    return f"{claim['user_id']}:{claim['project_id']}"
