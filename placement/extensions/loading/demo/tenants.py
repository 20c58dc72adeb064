"""Consumers of the demonstration, which are claimed, moved and released."""

from __future__ import annotations

import random
import uuid
from typing import Any

from placement.extensions.loading.demo.service import DemoClient

_RACK_A = "0a7c1f5e-6b1d-4c3e-8f2a-5d9e7b3c1a01"
#: The query of each kind of consumer.
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
    """The consumers of the demonstration and their claims."""

    def __init__(self, service: DemoClient, chooser: random.Random) -> None:
        self._service = service
        self._chooser = chooser
        #: The kind of each consumer and the body of its claim, by uuid.
        self._claims: dict[str, tuple[str, dict[str, Any]]] = {}

    def owner(self, project: str | None = None) -> dict[str, str]:
        """Return an owner: the project, by default a random one, and a random user."""
        project = project or self._chooser.choices([*_PROJECTS], [*_PROJECTS.values()])[0]
        return {"project_id": project, "user_id": self._chooser.choice(_USERS)}

    def new_uuid(self) -> str:
        """Return a reproducible uuid for a new consumer."""
        return str(uuid.UUID(int=self._chooser.getrandbits(128), version=4))

    def claim(self, consumer: str, kind: str, owner: dict[str, str]) -> None:
        """Claim a random candidate, if any, for a consumer."""
        consumer_type = "TRAINING" if kind == "training" else "INSTANCE"
        self._put(consumer, kind, {**owner, "consumer_type": consumer_type, "consumer_generation": None})

    def release(self, consumer: str) -> None:
        """Release a consumer if it has a claim."""
        if consumer in self._claims:
            _, claim = self._claims.pop(consumer)
            self._service.send("DELETE", f"/allocations/{consumer}", caller=_caller(claim))

    def move_consumer_from(self, providers: set[str]) -> None:
        """Move the first consumer with an allocation on these providers."""
        for consumer, (kind, claim) in self._claims.items():
            if providers & claim["allocations"].keys():
                self._put(consumer, kind, {**claim, "consumer_generation": 1})
                return

    def _put(self, consumer: str, kind: str, claim: dict[str, Any]) -> None:
        document = self._service.send("GET", f"/allocation_candidates?{QUERIES[kind]}{_IN_SERVICE}")
        if candidates := document["allocation_requests"]:
            claim = {**claim, "allocations": self._chooser.choice(candidates)["allocations"]}
            self._service.send("PUT", f"/allocations/{consumer}", claim, caller=_caller(claim))
            self._claims[consumer] = kind, claim


def _caller(claim: dict[str, Any]) -> str:
    """Return the ``noauth2`` token of the owner of a claim."""
    return f"{claim['user_id']}:{claim['project_id']}"
