"""The writing routes of the Bare Metal API, as scenarios like the ones in tests/db/writes.py.

``$node`` is a node and a provider; ``$consumer`` is an allocation and a consumer.  The class, the owner and the type of
consumers exist before the request of a scenario.
"""

from __future__ import annotations

from typing import Any

from placement.db.feed import GONE, SHAPE, USAGE
from tests.db.scenarios import Call, Write

_NEWEST = 115


def bare(target: str, body: Any = None) -> Call:
    """Return a request of the newest version to a path below ``/baremetal/v1``."""
    method, path = target.split()
    return Call(f"{method} /baremetal/v1{path}", body, _NEWEST)


def node(name: str, resource_class: str = "bm $RUN") -> Call:
    return bare("POST /nodes", {"uuid": f"${name}", "driver": "fake-hardware", "resource_class": resource_class})


def provision(name: str, target: str) -> Call:
    return bare(f"PUT /nodes/${name}/states/provision", {"target": target})


def ready(name: str) -> tuple[Call, ...]:
    """Return the requests that make a node available."""
    powered = bare(f"PUT /nodes/${name}/states/power", {"target": "power off"})
    return node(name), powered, provision(name, "manage"), provision(name, "provide")


def allocation(consumer: str = "consumer", **columns: Any) -> Call:
    return bare(
        "POST /allocations", {"uuid": f"${consumer}", "resource_class": "bm $RUN", "extra": {"a": 1}, **columns}
    )


def patch(target: str, path: str, value: Any = None) -> Call:
    operation = {"op": "remove"} if value is None else {"op": "add", "value": value}
    return bare(f"PATCH {target}", [{**operation, "path": path}])


def maintenance(name: str = "node") -> Call:
    return bare(f"PUT /nodes/${name}/maintenance", {"reason": "disk"})


def traits(*names: str) -> Call:
    return bare("PUT /nodes/$node/traits", {"traits": [*names]})


#: Another node, with a holder, so that every name has an id.
KNOWN = (*ready("node_before"), allocation("consumer_before", name="before-$RUN"))
FREE = (*KNOWN, *ready("node"))
HELD = (*FREE, allocation())
ACTIVE = (*HELD, provision("node", "active"))
PAIR = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2")

NODES = (
    Write("create a node", KNOWN, node("node"), {"node": SHAPE}, 201),
    Write("rename a node", FREE, patch("/nodes/$node", "/name", "named-$RUN"), {}, 200),
    Write(
        "reclassify a node that is held",
        (*HELD, node("node_2", "other $RUN")),
        patch("/nodes/$node", "/resource_class", "other $RUN"),
        {"node": SHAPE},
        200,
    ),
    Write(
        "assign a node by hand",
        (*FREE, *ready("node_2"), patch("/nodes/$node_2", "/instance_uuid", "$consumer_2")),
        patch("/nodes/$node", "/instance_uuid", "$consumer"),
        {"node": USAGE},
        200,
    ),
    Write("unassign a node by hand", HELD, patch("/nodes/$node", "/instance_uuid"), {"node": USAGE}, 200),
    Write("deploy", HELD, provision("node", "active"), {"node": SHAPE}, 202),
    Write("undeploy", ACTIVE, provision("node", "deleted"), {"node": SHAPE}, 202),
    Write(
        "power on",
        (*KNOWN, node("node"), provision("node", "manage"), provision("node", "provide")),
        bare("PUT /nodes/$node/states/power", {"target": "power on"}),
        {"node": SHAPE},
        202,
    ),
    Write("begin maintenance", HELD, maintenance(), {"node": SHAPE}, 202),
    Write(
        "end maintenance",
        (*FREE, maintenance()),
        bare("DELETE /nodes/$node/maintenance"),
        {"node": SHAPE},
        202,
    ),
    Write("set traits of a node", FREE, traits(*PAIR), {"node": SHAPE}),
    Write("add a trait to a node", FREE, bare("PUT /nodes/$node/traits/HW_CPU_X86_AVX"), {"node": SHAPE}),
    Write(
        "remove a trait from a node",
        (*FREE, traits(*PAIR)),
        bare("DELETE /nodes/$node/traits/HW_CPU_X86_AVX"),
        {"node": SHAPE},
    ),
    Write("remove traits from a node", (*FREE, traits(*PAIR)), bare("DELETE /nodes/$node/traits"), {"node": SHAPE}),
    Write("delete a node that is held", (*HELD, maintenance()), bare("DELETE /nodes/$node"), {"node": GONE}),
)

ALLOCATIONS = (
    Write("allocate", (*FREE, traits(*PAIR)), allocation(traits=[*PAIR], name="a-$RUN"), {"node": USAGE}, 201),
    Write("allocate where no node is free", KNOWN, allocation(), {}, 201),
    Write(
        "allocate in place of an allocation that has ended",
        (*HELD, Call("DELETE /allocations/$consumer")),
        allocation(),
        {"node": USAGE},
        201,
    ),
    Write(
        "backfill",
        (*FREE, provision("node", "active")),
        allocation(node="$node"),
        {"node": SHAPE},
        201,
    ),
    Write(
        "backfill for an instance",
        (*FREE, patch("/nodes/$node", "/instance_uuid", "$consumer"), provision("node", "active")),
        bare("POST /allocations", {"node": "$node"}),
        {},
        201,
    ),
    Write("rename an allocation", HELD, patch("/allocations/$consumer", "/name", "named-$RUN"), {}, 200),
    Write("delete an allocation", HELD, bare("DELETE /allocations/$consumer"), {"node": USAGE}),
    Write("delete the allocation of a node", HELD, bare("DELETE /nodes/$node/allocation"), {"node": USAGE}),
)

ACCEPTED = (*NODES, *ALLOCATIONS)

REFUSED = (
    Write("an allocation of a name that is taken", FREE, allocation(name="before-$RUN"), status=409),
    Write("an allocation of a uuid that is taken", HELD, allocation(), status=409),
    Write("an allocation of a node that is needed", ACTIVE, bare("DELETE /allocations/$consumer"), status=409),
    Write("a backfill of a node that is not in use", FREE, allocation(node="$node"), status=409),
    Write("a node that is held by another", HELD, patch("/nodes/$node", "/instance_uuid", "$consumer_2"), status=409),
    Write("deleting a node that is held", HELD, bare("DELETE /nodes/$node"), status=409),
    Write(
        "a name of a node that is taken",
        (*HELD, patch("/nodes/$node_before", "/name", "named-$RUN")),
        patch("/nodes/$node", "/name", "named-$RUN"),
        status=409,
    ),
)

#: No route has a dry run.
DRY_RUN_NAMES = ()

#: The writes with the most statements.
DEADLY = ("allocate", "undeploy", "delete a node that is held")

MALFORMED = (
    ("POST", "/baremetal/v1/nodes", {"name": "x"}),
    ("PATCH", "/baremetal/v1/nodes/$node", [{"op": "test", "path": "/name", "value": "x"}]),
    ("PUT", "/baremetal/v1/nodes/$node/traits", {"traits": "x"}),
    ("PUT", "/baremetal/v1/nodes/$node/states/power", {}),
    ("PUT", "/baremetal/v1/nodes/$node/states/provision", {}),
    ("PUT", "/baremetal/v1/nodes/$node/maintenance", {"reason": 1}),
    ("POST", "/baremetal/v1/allocations", {"traits": "x"}),
    ("PUT", "/baremetal/v1/nodes/$node/traits/CUSTOM_T", [1]),
    ("PATCH", "/baremetal/v1/allocations/$consumer", {"op": "add"}),
)

#: All of the API's tables are state of nodes and allocations.
HOUSEKEEPING = ()
