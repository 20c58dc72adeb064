"""The state at the end of a run, read by SQL and from each worker into ``History.final``.

No client writes meanwhile.  The keys:

=============  =======================================================================================================
soundness      Violated invariants of the rows (tests/load/soundness.py), with the rows.
providers      Id, uuid, generation, ids of parent and root.
feed           Writer, number, provider id and kind of change; in this order.
indices        ``database``: a newly built index; ``workers``: for each worker its service, process and digest, and
               its index if that differs.
machines       ``nodes``: uuids; ``holders``: node and consumer, by allocations; ``records``: node and uuid of each
               active record.
=============  =======================================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa

from jepsen.index_contents import as_json, digest
from placement.db.schema.tables import allocations, provider_changes, resource_providers
from placement.extensions.baremetal.tables import baremetal_allocations, baremetal_nodes
from placement.index.refresh import load_index
from tests import caller
from tests.load import soundness
from tests.made import opened
from tests.running import Service

#: Page on which a worker shows its index (jepsen/application.py).
INDEX_PAGE = "/jepsen/index"
#: Seconds within which every worker of a service must respond; a killed worker is restarted first.
_WORKER_TIMEOUT = 300.0
#: Seconds within which leases may still expire and be released.
_SETTLE_TIMEOUT = 60.0
#: Parallel requests; more than a worker has threads.
_PARALLEL_REQUESTS = 8


def read(database_url: str, services: Sequence[Service]) -> dict[str, Any]:
    """Return the state at the end of a run.

    Reads are repeated while leases still expire.

    Args:
        database_url: Direct URL, not through a proxy.
        services: Services whose workers show their indices.

    Raises:
        AssertionError: A worker did not respond, or the state keeps changing.
    """
    until = time.monotonic() + _SETTLE_TIMEOUT
    while True:
        rows = database_state(database_url)
        workers = [worker for number, service in enumerate(services) for worker in _workers(number, service)]
        if database_state(database_url) == rows:
            break
        assert time.monotonic() < until, "the state changes although no client runs"
    built = rows["indices"]["database"]
    rows["indices"]["workers"] = list(_without_matching_indices(workers, digest(built)))
    return rows


def database_state(url: str) -> dict[str, Any]:
    """Return the rows and a newly built index."""
    with opened(url) as database:
        with database.engine.connect() as db:
            state = {
                "providers": _rows(db, _PROVIDERS),
                "feed": _rows(db, _FEED),
                "machines": {
                    "nodes": list(db.execute(sa.select(baremetal_nodes.c.uuid)).scalars()),
                    "holders": _rows(db, _HOLDERS),
                    "records": _rows(db, _RECORDS),
                },
            }
        index = as_json(database.snapshot(load_index).snapshot)
    return {"soundness": inconsistencies(url), **state, "indices": {"database": index}}


def inconsistencies(url: str) -> dict[str, list[str]]:
    """Return the violated invariants of the rows, with the rows."""
    with opened(url) as database:
        return {flaw: list(map(str, rows)) for flaw, rows in soundness.flaws(database).items()}


def newest_numbers(url: str) -> dict[str, int]:
    """Return the newest number of each feed writer, by id; ids of ended writers, stored as negative, are positive."""
    with opened(url) as database, database.engine.connect() as db:
        return {str(abs(writer)): number for writer, number in db.execute(_NEWEST)}


def _workers(number: int, service: Service) -> list[dict[str, Any]]:
    """Return the index page of each worker of a service.

    Parallel requests reach every worker sooner or later, because a busy worker accepts no further ones.
    """
    call, until = caller.over_http(service.url), time.monotonic() + _WORKER_TIMEOUT
    pages: dict[int, dict[str, Any]] = {}
    with ThreadPoolExecutor(_PARALLEL_REQUESTS) as threads:
        while not set(service.workers) <= pages.keys():
            assert time.monotonic() < until, (
                f"service {number}: only {[*pages]} of the workers {service.workers} respond"
            )
            for reply in threads.map(lambda _: call("GET", INDEX_PAGE), range(_PARALLEL_REQUESTS)):
                if reply.status == 200:
                    pages[reply.body["process"]] = reply.body
    return [{"service": number, **pages[process]} for process in sorted(pages)]


def _without_matching_indices(workers: Iterable[Mapping[str, Any]], expected: str) -> Iterable[dict[str, Any]]:
    """Yield the workers without matching indices, which would make histories large."""
    for worker in workers:
        yield {key: value for key, value in worker.items() if key != "index" or worker["digest"] != expected}


def _rows(db: sa.Connection, query: sa.Select[Any]) -> list[list[Any]]:
    return [list(row) for row in db.execute(query)]


_P, _F = resource_providers.c, provider_changes.c
_PROVIDERS = sa.select(_P.id, _P.uuid, _P.generation, _P.parent_provider_id, _P.root_provider_id).order_by(_P.id)
_FEED = sa.select(_F.writer_id, _F.seq, _F.provider_id, _F.what).order_by(_F.writer_id, _F.seq, _F.provider_id)
_NEWEST = sa.select(_F.writer_id, sa.func.max(_F.seq)).group_by(_F.writer_id)
_HOLDERS = (
    sa.select(_P.uuid, allocations.c.consumer_id)
    .join(allocations, allocations.c.resource_provider_id == _P.id)
    .join(baremetal_nodes, baremetal_nodes.c.uuid == _P.uuid)
    .order_by(_P.uuid, allocations.c.consumer_id)
)
_RECORDS = (
    sa.select(baremetal_allocations.c.node_uuid, baremetal_allocations.c.uuid)
    .where(baremetal_allocations.c.node_uuid.is_not(None))
    .order_by(baremetal_allocations.c.node_uuid)
)
