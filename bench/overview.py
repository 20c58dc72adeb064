#!/usr/bin/env python3
"""Measure GET /v1/overview and a page of GET /v1/consumers in process, on a database filled by ``fill.py``.

    python bench/fill.py DATABASE_URL flat --hosts 10000 --used 0.5 --consumers 10
    python bench/overview.py DATABASE_URL [--repeat 20]

Each line shows the median wall-clock time and the median processor time of this process, which depends less on other
load.  The first overview of a process counts all allocations, and has a separate line.  Before each request of *after
claims*, ten consumers claim on different providers; these claims are neither measured nor removed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import webob

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement import deploy
from placement.db.database import Database
from placement.db.schema.tables import resource_providers
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from tests import web
from tests.made import opened

HEADERS = {"X-Auth-Token": "admin", "X-Roles": "admin"}


def ask(app: Any, path: str) -> int:
    """Send a request, and return the length of the complete response."""
    reply = webob.Request.blank(path, headers=HEADERS).get_response(app)
    assert reply.status_int == 200, reply.status
    return sum(map(len, reply.app_iter))


def measure(title: str, work: Callable[[], int], repeat: int, before: Callable[[], object] = lambda: None) -> None:
    """Print one line of the result."""
    walls, processors, length = [], [], 0
    for _ in range(repeat):
        before()
        wall, processor = time.perf_counter(), time.process_time()
        length = work()
        walls.append(1000 * (time.perf_counter() - wall))
        processors.append(1000 * (time.process_time() - processor))
    print(
        f"{title:<28}{statistics.median(walls):9.1f} ms {statistics.median(processors):9.1f} ms {length:>12,} bytes",
        flush=True,
    )


def claims(database: Database, hosts: list[str], number: int) -> None:
    """Claim for a number of new consumers on different hosts."""
    for host in random.sample(hosts, number):
        claim = Claim(str(uuid.uuid4()), {host: {"VCPU": 1}}, Owner("bench", "bench", "INSTANCE"))
        database.write(lambda db, claim=claim: ClaimSet(db, [claim]).place())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="DATABASE_URL")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    with opened(options.url) as database:
        app = deploy.loadapp(web.configuration(placement_database__connection=options.url), database)
        roots = sa.select(resource_providers.c.uuid).where(resource_providers.c.parent_provider_id.is_(None))
        hosts = database.read(lambda db: [*itertools.islice(db.execute(roots).scalars(), 5000)])
        ask(app, "/v1/overview?limit=1")  # loads the index
        measure("the first overview", lambda: ask(app, "/v1/overview"), 1)
        measure("overview", lambda: ask(app, "/v1/overview"), options.repeat)
        measure("after claims", lambda: ask(app, "/v1/overview"), options.repeat, lambda: claims(database, hosts, 10))
        for path in ("overview?limit=100", "overview?limit=100&sort=free:VCPU", "consumers", "consumers?older_than=1w"):
            measure(path, lambda path=path: ask(app, f"/v1/{path}"), options.repeat)


if __name__ == "__main__":
    main()
