"""That work goes on, for whoever waits for it."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

#: Seconds until work counts as long; from one line to the next they double, up to the longest.
FIRST = 1.0
LONGEST = 30.0


class Progress:
    """Lines on stderr while a block runs, if it runs for long: what is done, how much of it, and since when.

    They come from a thread of their own, so that one long statement shows that it goes on, too.
    """

    def __init__(self, work: str, unit: str = "", total: int | None = None, first: float = FIRST) -> None:
        self._work, self._unit, self._total, self._first = work, unit, total, first
        self._done = 0
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._teller.join()

    def advance(self, by: int) -> None:
        """So many more are done."""
        self._done += by

    def _tell(self) -> None:
        pause = self._first
        while not self._ended.wait(pause):
            print(self._line(), file=sys.stderr, flush=True)
            pause = min(2 * pause, LONGEST)

    def _line(self) -> str:
        parts = [f"{time.monotonic() - self._began:.0f} s"]
        if self._unit:
            of = "" if self._total is None else f" of {self._total:,}"
            parts.insert(0, f"{self._done:,}{of} {self._unit}")
        return f"{self._work}: {', '.join(parts)}"
