"""A small believable cloud to click through, for ``placement-serve --demo``: ``make demo`` (docs: commands).

The providers are those of ``cloud.yaml``; consumers and machines are made by requests, as clients make them.  It is the
same at each start, but for random uuids.
"""

from __future__ import annotations

import json
import logging
import random
import uuid
from importlib import resources
from typing import Any
from wsgiref.types import WSGIApplication

import webob

from placement.db.database import Database
from placement.extensions.loading.description import described
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import YamlSource

#: How many of each kind of consumer, in the order in which they come; and what each asks for.
_KINDS = (
    (130, "small", "resources=DISK_GB:20&resources1=VCPU:2,MEMORY_MB:4096"),
    (70, "medium", "resources=DISK_GB:80&resources1=VCPU:4,MEMORY_MB:16384&required1=HW_CPU_X86_AVX2"),
    (25, "large", "resources=DISK_GB:200&resources1=VCPU:16,MEMORY_MB:65536&member_of={rack_a}"),
    (
        9,
        "training",
        "resources=DISK_GB:500&resources_numa=VCPU:12,MEMORY_MB:131072&resources_gpu0=PGPU:1&resources_gpu1=PGPU:1"
        "&resources_nic=SRIOV_NET_VF:1&same_subtree=_numa,_gpu0,_gpu1,_nic&group_policy=none",
    ),
)
_RACK_A = "0a7c1f5e-6b1d-4c3e-8f2a-5d9e7b3c1a01"
_IN_SERVICE = "&root_required=!COMPUTE_STATUS_DISABLED&limit=100"
_PROJECTS = ("webshop", "research", "analytics", "platform", "games")
_USERS = ("ada", "grace", "edsger", "barbara")
_MACHINES = tuple(f"rack-c-u{number:02}" for number in range(1, 11))
#: Machines that are allocated.
_TAKEN = 4


def fill(database: Database, application: WSGIApplication) -> None:
    """Make the cloud in an empty database, of which the application is the service, with noauth2."""
    load(database, described(YamlSource(resources.files(__name__).joinpath("cloud.yaml").read_text(encoding="utf-8"))))
    logging.disable(logging.INFO)  # a line for each of a thousand requests
    try:
        _fill(_Service(application))
    finally:
        logging.disable(logging.NOTSET)


def _fill(service: _Service) -> None:
    chooser = random.Random(1)
    for number, kind, query in _KINDS:
        for _ in range(number):
            _claim(service, chooser, query.format(rack_a=_RACK_A), kind)
    _shrink(service, "compute-03-numa0")
    if not service.has("/baremetal/v1"):
        return
    for name in _MACHINES:
        _offer(service, name)
    for number in range(_TAKEN):
        service.send("POST", "/baremetal/v1/allocations", {"name": f"database-{number}", "resource_class": "large"})


class _Service:
    """Sends requests to the application as an administrator."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def has(self, path: str) -> bool:
        """Return whether there is a route."""
        request = webob.Request.blank(path, base_url="http://127.0.0.1", headers={"X-Auth-Token": "admin"})
        return bool(request.get_response(self._application).status_code != 404)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Return the document of the reply, None without one; raises RuntimeError if the request is refused."""
        request = webob.Request.blank(path, method=method, base_url="http://127.0.0.1")
        request.headers["X-Auth-Token"] = "admin"
        request.headers["OpenStack-API-Version"] = "placement 1.39"
        request.headers["X-OpenStack-Ironic-API-Version"] = "latest"
        if body is not None:
            request.content_type = "application/json"
            request.body = json.dumps(body).encode()
        reply = request.get_response(self._application)
        if reply.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {reply.status} {reply.text}")
        return reply.json if reply.body else None


def _claim(service: _Service, chooser: random.Random, query: str, kind: str) -> None:
    """Have a new consumer claim one of the places that the query finds; none, if there is no place."""
    candidates = service.send("GET", f"/allocation_candidates?{query}{_IN_SERVICE}")["allocation_requests"]
    if not candidates:
        return
    claim = {
        "allocations": chooser.choice(candidates)["allocations"],
        "project_id": chooser.choice(_PROJECTS),
        "user_id": chooser.choice(_USERS),
        "consumer_generation": None,
        "consumer_type": "TRAINING" if kind == "training" else "INSTANCE",
    }
    service.send("PUT", f"/allocations/{uuid.UUID(int=chooser.getrandbits(128), version=4)}", claim)


def _shrink(service: _Service, name: str) -> None:
    """Take away memory that is in use, as if a module had failed."""
    (provider,) = service.send("GET", f"/resource_providers?name={name}")["resource_providers"]
    path = f"/resource_providers/{provider['uuid']}"
    used = service.send("GET", f"{path}/usages")["usages"]["MEMORY_MB"]
    inventory = service.send("GET", f"{path}/inventories/MEMORY_MB")
    service.send("PUT", f"{path}/inventories/MEMORY_MB", {**inventory, "total": max(used // 2, 8192)})


def _offer(service: _Service, name: str) -> None:
    """Record a machine and offer it."""
    node = {"name": name, "driver": "ipmi", "resource_class": "large"}
    path = f"/baremetal/v1/nodes/{service.send('POST', '/baremetal/v1/nodes', node)['uuid']}"
    service.send("PUT", f"{path}/states/power", {"target": "power off"})
    for verb in ("manage", "provide"):
        service.send("PUT", f"{path}/states/provision", {"target": verb})
