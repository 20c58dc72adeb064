"""Processes that use one database concurrently.

    python -m tests.db.forks MODULE FUNCTION ARGUMENTS

Prints the result of the function as JSON.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import Any

from tests import preloaded

_PATIENCE = 240
_FORK = multiprocessing.get_context("fork")


def from_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of the function in a new process, which may fork because it has no threads or connections."""
    command = [sys.executable, "-m", "tests.db.forks", function.__module__, function.__name__, json.dumps(arguments)]
    result = preloaded.service().run(command)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


class Fork:
    """A child of this process that runs a function, and is killed with this process."""

    def __init__(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._results = _FORK.SimpleQueue()
        self._process = _FORK.Process(target=self._run, args=(work, *arguments), daemon=True)
        self._process.start()

    def _run(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._results.put(work(*arguments))

    def result(self) -> Any:
        """Return the result of the function; raise RuntimeError if the process ended without one."""
        while self._results.empty():
            self.check()
            time.sleep(0.02)
        return self._results.get()

    def check(self) -> None:
        """Raise RuntimeError if the process has ended without a result."""
        if not self._process.is_alive() and self._results.empty():
            raise RuntimeError(f"a process ended with {self._process.exitcode}")

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        self._process.kill()
        self._process.join()


def shared_integer() -> Any:
    """Return an object whose ``value`` is the same in this process and in its forks."""
    return _FORK.Value("q", 0)


def together(number: int, work: Callable[..., Any], *arguments: Any, threads: int = 1) -> list[Any]:
    """Return the results of forks of this process that call ``work(wait, *arguments)``.

    ``wait`` returns once every fork has called it in this number of threads.
    """
    barrier = _FORK.Barrier(number * threads, timeout=_PATIENCE)
    forks = [Fork(work, barrier.wait, *arguments) for _ in range(number)]
    return [fork.result() for fork in forks]


if __name__ == "__main__":
    module, name, arguments_as_json = sys.argv[1:]
    json.dump(getattr(importlib.import_module(module), name)(*json.loads(arguments_as_json)), sys.stdout)
