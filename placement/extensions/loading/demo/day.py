"""The day that the demonstration has behind it: what happens when.

Hours count from the beginning of the day, which is in the afternoon: servers of the evening go, jobs run at night, the
load rises in the morning, and the day ends in the afternoon with the servers that stay.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

from placement.extensions.loading.demo.service import DemoClient
from placement.extensions.loading.demo.tenants import Tenants

HOURS = 24
#: How many of each kind stay, and how many of them are there before the day begins.
_STAYING = (("small", 130, 40), ("medium", 70, 25), ("large", 25, 10), ("training", 9, 3))
#: Those that go: kind, number, the hours in which they come, the hours for which they stay, and their project.
_PASSING = (
    ("small", 45, (-1.0, -0.1), (1.5, 7.5), None),
    ("medium", 22, (-1.0, -0.1), (1.5, 7.5), None),
    ("training", 4, (1.0, 4.0), (6.0, 9.0), "research"),
    ("medium", 16, (6.0, 10.0), (1.0, 3.0), "analytics"),
    ("small", 30, (14.0, 23.0), (0.3, 2.5), None),
    ("medium", 12, (15.0, 22.0), (0.5, 3.0), "games"),
)
_MACHINES = tuple(f"rack-c-u{number:02}" for number in range(1, 11))
#: When machines are allocated.
_TAKEN = (-0.5, -0.4, 15.4, 20.1)
#: The host that is taken out of service, and how many of its servers are moved at most.
_DISABLED, _MOVED = "compute-16", 30

#: An hour, and what happens then.
Deed = tuple[float, Callable[[], object]]


def plan(service: DemoClient) -> list[Deed]:
    """Return what happens, in order.  What stands at the end is the cloud that the documents show."""
    chooser = random.Random(1)
    tenants = Tenants(service, chooser)
    found = [*_staying(tenants, chooser), *_passing(tenants, chooser), *_out_of_service(service, tenants)]
    found.append((23.3, functools.partial(_shrink, service, "compute-03-numa0")))
    if service.has("/baremetal/v1"):
        found += _machines(service)
    return sorted(found, key=lambda deed: deed[0])


def _staying(tenants: Tenants, chooser: random.Random) -> Iterator[Deed]:
    for kind, number, early in _STAYING:
        for place in range(number):
            hour = chooser.uniform(-1, -0.1) if place < early else chooser.triangular(13, HOURS - 0.1, 16)
            yield hour, functools.partial(tenants.claim, tenants.new(), kind, tenants.owner())


def _passing(tenants: Tenants, chooser: random.Random) -> Iterator[Deed]:
    for kind, number, hours, lengths, project in _PASSING:
        for _ in range(number):
            consumer, hour = tenants.new(), chooser.uniform(*hours)
            yield hour, functools.partial(tenants.claim, consumer, kind, tenants.owner(project))
            until = min(hour + chooser.uniform(*lengths), HOURS - chooser.uniform(0.1, 0.6))
            yield until, functools.partial(tenants.release, consumer)


def _out_of_service(service: DemoClient, tenants: Tenants) -> Iterator[Deed]:
    yield 17.2, functools.partial(_disable, service, _DISABLED)
    parts = {service.uuid(f"{_DISABLED}-numa{number}") for number in range(2)}
    for number in range(_MOVED):
        yield 17.3 + number * 0.03, functools.partial(tenants.move_one_from, parts)


def _machines(service: DemoClient) -> Iterator[Deed]:
    for number, name in enumerate(_MACHINES):
        yield -1.1 + number * 0.01, functools.partial(_offer, service, name)
    for number, hour in enumerate(_TAKEN):
        record = {"name": f"database-{number}", "resource_class": "large"}
        yield hour, functools.partial(service.send, "POST", "/baremetal/v1/allocations", record)


def _disable(service: DemoClient, name: str) -> None:
    """Take a host out of service, as nova does it."""
    path = f"/resource_providers/{service.uuid(name)}/traits"
    found = service.send("GET", path)
    service.send("PUT", path, {**found, "traits": [*found["traits"], "COMPUTE_STATUS_DISABLED"]})


def _shrink(service: DemoClient, name: str) -> None:
    """Take away memory that is in use, as if a module had failed."""
    path = f"/resource_providers/{service.uuid(name)}"
    used = service.send("GET", f"{path}/usages")["usages"]["MEMORY_MB"]
    inventory = service.send("GET", f"{path}/inventories/MEMORY_MB")
    service.send("PUT", f"{path}/inventories/MEMORY_MB", {**inventory, "total": max(used // 2, 8192)})


def _offer(service: DemoClient, name: str) -> None:
    """Record a machine and offer it."""
    node = {"name": name, "driver": "ipmi", "resource_class": "large"}
    path = f"/baremetal/v1/nodes/{service.send('POST', '/baremetal/v1/nodes', node)['uuid']}"
    service.send("PUT", f"{path}/states/power", {"target": "power off"})
    for verb in ("manage", "provide"):
        service.send("PUT", f"{path}/states/provision", {"target": verb})
