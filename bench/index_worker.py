"""A worker that ``index.py`` measures: the application of a checkout, called without HTTP.

    python bench/index_worker.py DIRECTORY DATABASE_URL

Each line on stdin is a command and a number, and each line on stdout the result as JSON:

- ``search N``: search N times; seconds of each search, and of the refresh of the index in it;
- ``threads N``: the same in each of four new threads, at once;
- ``memory 0``: private memory, and the maximum of the resident memory, in bytes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

_QUERY = "resources=VCPU:1,MEMORY_MB:1&limit=10"
_THREADS = 4


def main() -> None:
    tree, url = sys.argv[1:]
    sys.path[0:0] = [tree, f"{tree}/bench"]
    import framework

    from placement import signals

    newest = threading.local()

    def keep(seconds: float, *_: object) -> None:
        newest.refresh = seconds

    def search() -> tuple[float, float]:
        newest.refresh = 0.0  # if the search used the snapshot that another thread refreshed
        environ = service.environ("GET", "/allocation_candidates") | {"QUERY_STRING": _QUERY}
        start = time.perf_counter()
        service.send(environ)
        return time.perf_counter() - start, newest.refresh

    signals.refreshed.connect(keep)
    with tempfile.TemporaryDirectory() as directory:
        service = framework.Service(url, directory)
        for line in sys.stdin:
            command, number = line.split()
            count = int(number)
            if command == "memory":
                print(json.dumps(memory()), flush=True)
            elif command == "search":
                print(json.dumps([search() for _ in range(count)]), flush=True)
            else:
                print(json.dumps(in_threads(lambda: [search() for _ in range(count)])), flush=True)  # noqa: B023


def in_threads(work: Callable[[], list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the results of the work in new threads."""
    results: list[tuple[float, float]] = []
    threads = [threading.Thread(target=lambda: results.extend(work())) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def memory() -> dict[str, int]:
    text = "".join(Path("/proc/self", name).read_text() for name in ("smaps_rollup", "status"))
    lines = map(str.split, text.splitlines())
    sizes = {words[0]: 1024 * int(words[1]) for words in lines if len(words) == 3 and words[2] == "kB"}
    return {"private": sizes["Private_Clean:"] + sizes["Private_Dirty:"], "peak": sizes["VmHWM:"]}


if __name__ == "__main__":
    main()
