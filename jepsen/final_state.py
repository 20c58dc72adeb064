"""What is read at the end of a run, from the database by SQL and from each worker, into ``History.final``.

Nothing else writes meanwhile.  The keys:

=============  =======================================================================================================
soundness      Violated invariants of the rows (tests/load/soundness.py), with the rows.
providers      Id, uuid, generation, ids of parent and root.
feed           Writer, number, provider id, what changed; in this order.
indices        ``database``: an index that is built anew; ``workers``: service, process, digest and, where it differs,
               the index of each worker.
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
from placement.index.refresh import loaded
from tests import caller
from tests.load import soundness
from tests.made import opened
from tests.running import Service

#: Where a worker shows its index (jepsen/application.py).
INDEX_PAGE = "/jepsen/index"
#: Seconds until every worker of a service has answered, at most: one that was killed is made anew.
_LONGEST = 300.0
#: Seconds in which leases may still end, and what they held be given back, at most.
_CHANGES = 60.0
#: Requests at the same time; more than the threads of a worker.
_AT_ONCE = 8


def read(database_url: str, services: Sequence[Service]) -> dict[str, Any]:
    """Return the state at the end of a run, of which nothing changes meanwhile but for leases that end.

    Args:
        database_url: Not through a proxy.
        services: With workers that show their indices.

    Raises:
        AssertionError: A worker did not answer, or the state changes all the time.
    """
    until = time.monotonic() + _CHANGES
    while True:
        rows = of_database(database_url)
        workers = [worker for number, service in enumerate(services) for worker in _workers(number, service)]
        if of_database(database_url) == rows:
            break
        assert time.monotonic() < until, "the state changes although no client runs"
    built = rows["indices"]["database"]
    rows["indices"]["workers"] = list(_without_equal(workers, digest(built)))
    return rows


def of_database(url: str) -> dict[str, Any]:
    """Return what SQL shows, and an index that is built anew."""
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
        index = as_json(database.snapshot(loaded).snapshot)
    return {"soundness": flaws(url), **state, "indices": {"database": index}}


def flaws(url: str) -> dict[str, list[str]]:
    """Return the violated invariants of the rows, with the rows."""
    with opened(url) as database:
        return {flaw: list(map(str, rows)) for flaw, rows in soundness.flaws(database).items()}


def newest_numbers(url: str) -> dict[str, int]:
    """Return the newest number of each writer of the feed; one that was ended has the id that it had."""
    with opened(url) as database, database.engine.connect() as db:
        return {str(abs(writer)): number for writer, number in db.execute(_NEWEST)}


def _workers(number: int, service: Service) -> list[dict[str, Any]]:
    """Return what each worker of a service shows.

    Requests at the same time reach all of them sooner or later: a worker that is busy does not accept more.
    """
    ask, until = caller.over_http(service.url), time.monotonic() + _LONGEST
    answered: dict[int, dict[str, Any]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        while not set(service.workers) <= answered.keys():
            assert time.monotonic() < until, f"service {number}: workers {service.workers}, answered {[*answered]}"
            for reply in threads.map(lambda _: ask("GET", INDEX_PAGE), range(_AT_ONCE)):
                if reply.status == 200:
                    answered[reply.body["process"]] = reply.body
    return [{"service": number, **answered[process]} for process in sorted(answered)]


def _without_equal(workers: Iterable[Mapping[str, Any]], expected: str) -> Iterable[dict[str, Any]]:
    """Leave out indices that are as expected: a history with all of them is large."""
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
