"""A bulkhead: some threads of a process may wait for the database, and one is kept for requests that need none."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from placement import errors

#: Seconds after which threads that use the database count as stalled: further ones are refused, and do not wait.
STALLED = 5.0


class Bulkhead:
    """Lets so many threads at a time into its blocks; a thread that is inside may enter again."""

    def __init__(self, threads: int | None = None) -> None:
        """:param threads: how many threads at a time; None is no bound."""
        self._threads = threads
        self._left = threading.Condition()
        #: When each thread that is inside came.
        self._inside: dict[int, float] = {}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """A block for which a thread has to wait; raises DatabaseBusy if all that are inside seem to be stalled."""
        me = threading.get_ident()
        if self._threads is None or me in self._inside:
            yield
            return
        self._enter(me, self._threads)
        try:
            yield
        finally:
            with self._left:
                del self._inside[me]
                self._left.notify()

    def _enter(self, me: int, threads: int) -> None:
        with self._left:
            while len(self._inside) >= threads:
                patience = max(self._inside.values()) + STALLED - time.monotonic()
                if patience <= 0:
                    raise errors.DatabaseBusy()
                self._left.wait(patience)
            self._inside[me] = time.monotonic()
