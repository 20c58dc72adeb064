"""Several processes with several threads each that request nodes of one database at the same time."""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from typing import Any

from placement.baremetal.objects import placing
from placement.db.database import opened
from placement.index.live import LiveIndex
from tests import preloaded
from tests.db.metal import request

_PATIENCE = 240


def together(processes: int, threads: int, url: str, columns: dict[str, Any]) -> list[str]:
    """Have each thread of each process make one request, and return the failures; raises if a process failed."""
    command = [sys.executable, "-m", "tests.db.metal_crowd", str(processes), str(threads), url, json.dumps(columns)]
    done = preloaded.service().run(command)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def _crowd(processes: int, threads: int, url: str, columns: dict[str, Any]) -> list[str]:
    """Forks this process, which has loaded the program but not connected to a database yet."""
    fork = multiprocessing.get_context("fork")
    ready, failures = fork.Barrier(processes * threads, timeout=_PATIENCE), fork.SimpleQueue()
    starters = [fork.Process(target=_start, args=(threads, url, columns, ready, failures)) for _ in range(processes)]
    for starter in starters:
        starter.start()
    found = [failures.get() for _ in range(processes)]
    for starter in starters:
        starter.join()
    if any(starter.exitcode for starter in starters):
        sys.exit("a starter failed")
    return [failure for each in found for failure in each]


def _start(threads: int, url: str, columns: dict[str, Any], ready: Any, failures: Any) -> None:
    found: list[str] = []
    with opened(url) as database:
        index = LiveIndex(database)
        index.current()

        def work() -> None:
            ready.wait()
            try:
                placing.place(database, index, request(**columns), attempts=10)
            except Exception as failure:
                found.append(repr(failure))

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    failures.put(found)


if __name__ == "__main__":
    number_of_processes, number_of_threads = int(sys.argv[1]), int(sys.argv[2])
    json.dump(_crowd(number_of_processes, number_of_threads, sys.argv[3], json.loads(sys.argv[4])), sys.stdout)
