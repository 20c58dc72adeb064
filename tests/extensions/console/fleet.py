"""A small cloud for the tests of the console, created by requests to the service."""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

import sqlalchemy as sa

from placement.db.schema.tables import utcnow
from placement.extensions.v1.history.tables import usage_samples, usage_shares
from tests import web
from tests.made import opened

ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39", "Content-Type": "application/json"}
#: A name that would be a script, a tag or an expression if it were not escaped.
HOSTILE = "<script>document.title='caught'</script>\"'&{{7*7}}"
CONSUMER = "0b1c6a2e-3d7f-4f0c-8a62-51f0c0d8a001"
#: The name of a deleted provider, and a consumer whose allocations were released.
GONE = "<b>gone</b>"
GONE_CONSUMER = "9d41f7b2-3d7f-4f0c-8a62-51f0c0d8a002"


def send(app: Any, method: str, path: str, body: Any = None) -> Any:
    """Send a request of an administrator, which must succeed; return the document of the response."""
    reply = web.ask(app, method, path, ADMIN, None if body is None else json.dumps(body).encode())
    assert reply.status_int < 300, reply.text
    return reply.json if reply.body else None


def provider(
    app: Any,
    name: str,
    parent: str | None = None,
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
    **inventories: int | dict[str, Any],
) -> str:
    """Create a provider; return its uuid.

    Args:
        inventories: By class, the total or all fields.
    """
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    path = f"/resource_providers/{identity}"
    document = {"name": name, "uuid": identity} | ({"parent_provider_uuid": parent} if parent else {})
    generation = send(app, "POST", "/resource_providers", document)["generation"]
    bodies = {
        "inventories": {
            "inventories": {
                name: {"total": amount} if isinstance(amount, int) else amount for name, amount in inventories.items()
            }
        },
        "traits": {"traits": list(traits)},
        "aggregates": {"aggregates": list(aggregates)},
    }
    for noun, body in bodies.items():
        stated = {"resource_provider_generation": generation, **body}
        generation = send(app, "PUT", f"{path}/{noun}", stated)["resource_provider_generation"]
    return identity


def fill(app: Any) -> dict[str, str]:
    """Create a cloud of two hosts, one with NUMA nodes and GPUs, and a shared pool; return the uuids by name."""
    aggregate = "c5a54d7e-52a1-4d38-9b5b-7c8a8fd6a111"
    uuids = {}

    def make(name: str, *args: Any, **values: Any) -> None:
        uuids[name] = provider(app, name, *args, **values)

    send(app, "PUT", "/traits/CUSTOM_RED")
    make("cn1", aggregates=(aggregate,), MEMORY_MB={"total": 65536, "reserved": 4096})
    for numa in ("cn1-numa0", "cn1-numa1"):
        make(numa, uuids["cn1"], traits=("HW_NUMA_ROOT",), VCPU={"total": 32, "allocation_ratio": 2.0})
        make(f"{numa}-gpu", uuids[numa], traits=("CUSTOM_RED",), VGPU=4)
    make(HOSTILE, traits=("COMPUTE_STATUS_DISABLED",), VCPU=16, MEMORY_MB=32768)
    make("pool", traits=("MISC_SHARES_VIA_AGGREGATE",), aggregates=(aggregate,), DISK_GB=10000)
    make("empty")
    owner = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE", "consumer_generation": None}
    allocations = {
        uuids["cn1-numa0"]: {"resources": {"VCPU": 48}},
        uuids["pool"]: {"resources": {"DISK_GB": 500}},
        uuids[HOSTILE]: {"resources": {"VCPU": 16}},
    }
    send(app, "PUT", f"/allocations/{CONSUMER}", {"allocations": allocations, **owner})
    path = f"/resource_providers/{uuids[HOSTILE]}"
    generation = send(app, "GET", path)["generation"]
    send(app, "DELETE", f"/resource_providers/{provider(app, GONE, VGPU=1)}")
    released = {"allocations": {uuids["pool"]: {"resources": {"DISK_GB": 7}}}, **owner}
    send(app, "PUT", f"/allocations/{GONE_CONSUMER}", released)
    send(app, "DELETE", f"/allocations/{GONE_CONSUMER}")
    reduction = {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": 12}}}
    send(app, "PUT", f"{path}/inventories", reduction)
    return uuids


def lease(app: Any, seconds: int | None) -> str:
    """Claim 1 DISK_GB for this many seconds, or without an expiry; return the uuid of the consumer."""
    consumer = str(uuid.uuid4())
    owner = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE"}
    request = {"consumer": consumer, "query": "resources=DISK_GB:1", **owner}
    assert send(app, "POST", "/v1/claims", {"requests": [request], "expires_in": seconds})["claimed"] == 1
    return consumer


def present_hour() -> datetime.datetime:
    """Return the current whole hour."""
    return utcnow().replace(minute=0, second=0, microsecond=0)


def sample(url: str, hour: datetime.datetime) -> None:
    """Replace all samples with a month of samples: a usage of VCPU that grows to 64 of 140, and a deleted class.

    Args:
        hour: The current hour, which gets no sample.
    """
    rows = [
        {
            "at": hour - hours * datetime.timedelta(hours=1),
            "resource_class": "VCPU",
            "capacity": 140,
            "used": 64 - hours // 12,
        }
        for hours in range(1, 30 * 24)
    ]
    rows.append({"at": rows[0]["at"], "resource_class": "CUSTOM_GONE", "capacity": 1, "used": 1})
    with opened(url) as database:
        database.write(lambda db: db.execute(sa.delete(usage_samples)))
        database.write(lambda db: db.execute(sa.insert(usage_samples), rows))


#: The aggregate of ``share``, and the number of hours that it covers.
SHARED_AGGREGATE = "c5a54d7e-52a1-4d38-9b5b-7c8a8fd6a111"
SHARED_HOURS = 6


def share(url: str, hour: datetime.datetime | None = None) -> None:
    """Insert shares of VCPU of a growing project, of a project without usage in the last hour, and of an aggregate.

    Args:
        hour: The hour of ``sample``; None for tests that compare no times.
    """
    hour = hour or present_hour()
    names = ("dimension", "place", "name", "capacity", "used")
    rows = [
        {
            "at": hour - ago * datetime.timedelta(hours=1),
            "resource_class": "VCPU",
            **dict(zip(names, values, strict=True)),
        }
        for ago in range(1, SHARED_HOURS + 1)
        for values in (
            ("project", 0, "blue", None, 70 - 10 * ago),
            ("project", 1, HOSTILE, None, 5),
            ("aggregate", 0, SHARED_AGGREGATE, 100, 40),
        )
        if ago > 1 or values[2] == "blue"
    ]
    with opened(url) as database:
        database.write(lambda db: db.execute(sa.delete(usage_shares)))
        database.write(lambda db: db.execute(sa.insert(usage_shares), rows))
