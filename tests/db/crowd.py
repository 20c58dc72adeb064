"""Several processes that do the same to one database at the same time, as when a service starts."""

from __future__ import annotations

import json
import multiprocessing
import sys
from typing import Any

import sqlalchemy as sa

from placement.db import schema, standard, tables
from placement.db.database import opened
from tests import preloaded

_PATIENCE = 240


def together(number: int, url: str) -> list[dict[str, Any]]:
    """Return the result of each of ``number`` processes; raises if one failed."""
    command = [sys.executable, "-m", "tests.db.crowd", str(number), url]
    done = preloaded.service().run(command)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _crowd(number: int, url: str) -> list[dict[str, Any]]:
    """Forks this process, which has loaded the program but not connected to a database yet."""
    fork = multiprocessing.get_context("fork")
    ready, found = fork.Barrier(number, timeout=_PATIENCE), fork.SimpleQueue()
    starters = [fork.Process(target=_start, args=(url, ready, found)) for _ in range(number)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    if any(starter.exitcode for starter in starters):
        sys.exit("a starter failed")
    return [found.get() for _ in starters]


def _start(url: str, ready: Any, found: Any) -> None:
    with opened(url) as database:
        ready.wait()
        schema.sync(database.engine)
        ready.wait()
        standard.insert(database)
        seen: dict[str, Any] = {"version": schema.version(database.engine)}
        for table in (tables.resource_classes, tables.traits, tables.feed_instance):
            rows = sa.select(sa.func.count()).select_from(table)
            seen[table.name] = database.read(lambda db, rows=rows: db.execute(rows).scalar())
        found.put(seen)


if __name__ == "__main__":
    json.dump(_crowd(int(sys.argv[1]), sys.argv[2]), sys.stdout)
