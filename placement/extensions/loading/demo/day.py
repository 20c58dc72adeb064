"""The schedule of the demonstration's past day.

Hours are counted from the beginning of the day, in the afternoon: evening servers are deleted, jobs run at night, the
load rises in the morning, and the day ends in the afternoon with the servers that stay.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

from placement.extensions.loading.demo.service import DemoClient
from placement.extensions.loading.demo.tenants import Tenants

HOURS = 24
#: Consumers that stay: kind, number, and number created before the day begins.
_STAYING = (("small", 130, 40), ("medium", 70, 25), ("large", 25, 10), ("training", 9, 3))
#: Consumers that are released: kind, number, range of the hour of creation, range of the lifetime in hours, project.
_PASSING = (
    ("small", 45, (-1.0, -0.1), (1.5, 7.5), None),
    ("medium", 22, (-1.0, -0.1), (1.5, 7.5), None),
    ("training", 4, (1.0, 4.0), (6.0, 9.0), "research"),
    ("medium", 16, (6.0, 10.0), (1.0, 3.0), "analytics"),
    ("small", 30, (14.0, 23.0), (0.3, 2.5), None),
    ("medium", 12, (15.0, 22.0), (0.5, 3.0), "games"),
)
_MACHINES = tuple(f"rack-c-u{number:02}" for number in range(1, 11))
#: Hours at which machines are allocated.
_MACHINE_ALLOCATIONS = (-0.5, -0.4, 15.4, 20.1)
#: The host that is disabled, and the maximum number of servers moved from it.
_DISABLED, _MAX_MOVES = "compute-16", 30

#: An hour, and the action at that hour.
Action = tuple[float, Callable[[], object]]


def plan(service: DemoClient) -> list[Action]:
    """Return the actions of the day, in order.  They result in the cloud that the documentation shows."""
    chooser = random.Random(1)
    tenants = Tenants(service, chooser)
    actions = [
        *_staying_servers(tenants, chooser),
        *_passing_servers(tenants, chooser),
        *_out_of_service(service, tenants),
    ]
    actions.append((23.3, functools.partial(_shrink, service, "compute-03-numa0")))
    if service.has("/baremetal/v1"):
        actions += _machines(service)
    return sorted(actions, key=lambda action: action[0])


def _staying_servers(tenants: Tenants, chooser: random.Random) -> Iterator[Action]:
    for kind, number, early in _STAYING:
        for index in range(number):
            hour = chooser.uniform(-1, -0.1) if index < early else chooser.triangular(13, HOURS - 0.1, 16)
            yield hour, functools.partial(tenants.claim, tenants.new_uuid(), kind, tenants.owner())


def _passing_servers(tenants: Tenants, chooser: random.Random) -> Iterator[Action]:
    for kind, number, hours, lifetimes, project in _PASSING:
        for _ in range(number):
            consumer, hour = tenants.new_uuid(), chooser.uniform(*hours)
            yield hour, functools.partial(tenants.claim, consumer, kind, tenants.owner(project))
            end = min(hour + chooser.uniform(*lifetimes), HOURS - chooser.uniform(0.1, 0.6))
            yield end, functools.partial(tenants.release, consumer)


def _out_of_service(service: DemoClient, tenants: Tenants) -> Iterator[Action]:
    yield 17.2, functools.partial(_disable, service, _DISABLED)
    providers = {service.uuid(f"{_DISABLED}-numa{number}") for number in range(2)}
    for number in range(_MAX_MOVES):
        yield 17.3 + number * 0.03, functools.partial(tenants.move_consumer_from, providers)


def _machines(service: DemoClient) -> Iterator[Action]:
    for number, name in enumerate(_MACHINES):
        yield -1.1 + number * 0.01, functools.partial(_offer, service, name)
    for number, hour in enumerate(_MACHINE_ALLOCATIONS):
        record = {"name": f"database-{number}", "resource_class": "large"}
        yield hour, functools.partial(service.send, "POST", "/baremetal/v1/allocations", record)


def _disable(service: DemoClient, name: str) -> None:
    """Disable a host as nova does, by a trait."""
    path = f"/resource_providers/{service.uuid(name)}/traits"
    document = service.send("GET", path)
    service.send("PUT", path, {**document, "traits": [*document["traits"], "COMPUTE_STATUS_DISABLED"]})


def _shrink(service: DemoClient, name: str) -> None:
    """Remove memory that is in use, as if a module had failed."""
    path = f"/resource_providers/{service.uuid(name)}"
    used = service.send("GET", f"{path}/usages")["usages"]["MEMORY_MB"]
    inventory = service.send("GET", f"{path}/inventories/MEMORY_MB")
    service.send("PUT", f"{path}/inventories/MEMORY_MB", {**inventory, "total": max(used // 2, 8192)})


def _offer(service: DemoClient, name: str) -> None:
    """Enroll a machine and make it available."""
    node = {"name": name, "driver": "ipmi", "resource_class": "large"}
    path = f"/baremetal/v1/nodes/{service.send('POST', '/baremetal/v1/nodes', node)['uuid']}"
    service.send("PUT", f"{path}/states/power", {"target": "power off"})
    for verb in ("manage", "provide"):
        service.send("PUT", f"{path}/states/provision", {"target": verb})
