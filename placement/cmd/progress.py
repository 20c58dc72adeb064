"""Progress output of commands on stderr."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

#: Seconds until the first line; each pause is twice as long as the previous one, up to the maximum.
_FIRST_PAUSE = 1.0
_MAX_PAUSE = 30.0


class Progress:
    """A context manager that prints progress lines on stderr while a block runs: work, amount done, elapsed seconds.

    A separate thread prints them, so that they also appear during one long statement.
    """

    def __init__(self, work: str, unit: str = "", total: int | None = None, first: float = _FIRST_PAUSE) -> None:
        """Describe the work.

        Args:
            work: The name of the work.
            unit: The plural noun that ``advance`` counts; empty if nothing is counted.
            total: The number of units, if known.
            first: Seconds until the first line.
        """
        self._work, self._unit, self._total, self._first = work, unit, total, first
        #: Units done so far.
        self.done = 0
        self._ended = threading.Event()
        self._printer = threading.Thread(target=self._print, daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._printer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._printer.join()

    def advance(self, by: int) -> None:
        """Count ``by`` more units as done."""
        self.done += by

    def _print(self) -> None:
        pause = self._first
        while not self._ended.wait(pause):
            print(self._line(), file=sys.stderr, flush=True)
            pause = min(2 * pause, _MAX_PAUSE)

    def _line(self) -> str:
        seconds = f"{time.monotonic() - self._began:.0f} s"
        if not self._unit:
            return f"{self._work}: {seconds}"
        total = "" if self._total is None else f" of {self._total:,}"
        return f"{self._work}: {self.done:,}{total} {self._unit}, {seconds}"
