#!/usr/bin/env python3
"""Measure the pages of the console in process, on a database filled by ``fill.py``.

    python bench/fill.py DATABASE_URL nested --hosts 10000 --used 0.5
    python bench/console.py DATABASE_URL [--repeat 10]

Each line shows the median and the maximum wall-clock time, and the median processor time of this process, which depends
less on other load.  The first request of each page, which compiles its template, is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import webob

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from placement import deploy
from tests import web
from tests.made import opened

HEADERS = {"X-Auth-Token": "admin", "X-Roles": "admin"}
PAGES = (
    "/",
    "/hosts",
    "/providers",
    "/providers?name=9-numa0",
    "/providers/{name}",
    "/consumers",
    "/query?resources=VCPU:4",
    "/query?resources_A=VCPU:4&resources_B=DISK_GB:10&group_policy=none&same_subtree=_A,_B",
    "/query?resources=VCPU:40000",
    "/api?of=placement",
)


def ask(app: Any, path: str) -> int:
    """Request a page completely, and return its length."""
    reply = webob.Request.blank(f"/console{path}", headers=HEADERS).get_response(app)
    assert reply.status_int == 200, (path, reply.status)
    return sum(map(len, reply.app_iter))


def measure(app: Any, path: str, repeat: int) -> None:
    """Print one line of the result."""
    length = ask(app, path)
    walls, processors = [], []
    for _ in range(repeat):
        wall, processor = time.perf_counter(), time.process_time()
        ask(app, path)
        walls.append(1000 * (time.perf_counter() - wall))
        processors.append(1000 * (time.process_time() - processor))
    median, longest, processor = statistics.median(walls), max(walls), statistics.median(processors)
    print(f"{path:<78}{median:8.1f} ms {longest:8.1f} ms {processor:8.1f} ms {length:>10,} bytes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", metavar="DATABASE_URL")
    parser.add_argument("--repeat", type=int, default=10)
    arguments = parser.parse_args()
    conf = web.configuration(console__enabled=True, placement_database__connection=arguments.database)
    with opened(arguments.database) as database:
        app = deploy.loadapp(conf, database)
        providers = webob.Request.blank("/resource_providers", headers=HEADERS).get_response(app).json
        name = providers["resource_providers"][0]["name"]
        for path in PAGES:
            measure(app, path.replace("{name}", name), arguments.repeat)


if __name__ == "__main__":
    main()
