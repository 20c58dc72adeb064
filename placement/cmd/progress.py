"""Progress of a command on stderr."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

#: Seconds until the first line; the time to the next one doubles, up to the longest.
_FIRST = 1.0
_LONGEST = 30.0


class Progress:
    """Prints lines on stderr while a block runs for long: the work, how much of it is done, and its seconds so far.

    A thread of its own prints them, so that they appear during one long statement too.
    """

    def __init__(self, work: str, unit: str = "", total: int | None = None, first: float = _FIRST) -> None:
        """Describe the work.

        Args:
            work: What is being done.
            unit: What ``advance`` counts; empty if nothing is counted.
            total: How many there are, if that is known.
            first: Seconds until the first line.
        """
        self._work, self._unit, self._total, self._first = work, unit, total, first
        #: How much is counted.
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
        """Count so many more as done."""
        self.done += by

    def _print(self) -> None:
        pause = self._first
        while not self._ended.wait(pause):
            print(self._line(), file=sys.stderr, flush=True)
            pause = min(2 * pause, _LONGEST)

    def _line(self) -> str:
        seconds = f"{time.monotonic() - self._began:.0f} s"
        if not self._unit:
            return f"{self._work}: {seconds}"
        of = "" if self._total is None else f" of {self._total:,}"
        return f"{self._work}: {self.done:,}{of} {self._unit}, {seconds}"
