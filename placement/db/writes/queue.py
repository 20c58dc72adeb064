"""A queue in which one of the waiting threads does the work of all, as one batch.

This is flat combining (D. Hendler, I. Incze, N. Shavit, M. Tzafrir: "Flat combining and the synchronization-parallelism
tradeoff", SPAA 2010) with the queue of a group commit.  A lone thread begins at once, unless the last batch included
other threads, or others were waiting when it ended.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from placement import errors

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Seconds for which a thread waits for its turn before it does its work alone: the current batch may be waiting for a
#: lock that does not concern this thread.
MAX_WAIT = 0.05
#: Seconds for which a batch waits for as many items as were waiting when the last batch ended: long enough for a client
#: to receive its response and send its next request.  Otherwise batches of one item would alternate with batches of all
#: other items.
GATHER_TIME = 0.002


def log_failure(log: logging.Logger, consequence: str, error: Exception) -> None:
    """Log the failure of a batch, before its items are done one by one; internal errors are logged with a traceback.

    Each request gets the result of its own item, so only the log shows this error.
    """
    if isinstance(error, errors.Failure):
        log.debug("%s: %s", consequence, error)
    else:
        log.error(consequence, exc_info=error)


@dataclass(eq=False, slots=True)
class Turn(Generic[Item, Result]):
    """An item, and its result or failure."""

    item: Item
    distinct: frozenset[Hashable]
    size: int
    kind: Hashable
    #: The turns whose work this thread must do, including this one; None if another thread does it.
    batch: list[Turn[Item, Result]] | None = None
    result: Result | None = None
    is_done: bool = False
    failure: BaseException | None = None
    #: The event that this thread leads a batch, or that the batch with its item has ended.
    called: threading.Event = field(default_factory=threading.Event)

    @property
    def items(self) -> list[Item]:
        """The items of the batch; empty if another thread does their work."""
        return [turn.item for turn in self.batch or ()]

    def set_results(self, results: Sequence[Result]) -> None:
        """Set the result of each item of the batch, in order."""
        for turn, result in zip(self.batch or (), results, strict=True):
            turn.result, turn.is_done = result, True


class Queue(Generic[Item, Result]):
    """A queue of items of several threads, which are done in batches, one batch at a time."""

    def __init__(self, max_size: int, wait: Callable[[threading.Event], bool]) -> None:
        """Create an empty queue.

        Args:
            max_size: The maximum total size of a batch's items.
            wait: A function that waits for the end of another thread's batch, and returns whether it has ended.
        """
        self._max_size = max_size
        self._wait = wait
        self.max_wait = MAX_WAIT
        self.gather_time = GATHER_TIME
        self._lines: dict[int, _Line[Item, Result]] = {}

    @property
    def line(self) -> _Line[Item, Result]:
        """The line of this process; a forked child does not have the waiting threads of its parent."""
        process = os.getpid()
        if process not in self._lines:
            self._lines.setdefault(process, _Line())
        return self._lines[process]

    @contextlib.contextmanager
    def turn(
        self, item: Item, *, distinct: Collection[Hashable], size: int = 1, kind: Hashable = None
    ) -> Iterator[Turn[Item, Result]]:
        """Wait for the turn of an item.

        The block does the work for ``turn.items``, if any, and calls ``turn.set_results``.

        Args:
            distinct: Keys; two items with a common key are never in the same batch.
            size: The share of ``max_size`` that the item takes; an item larger than that is done alone.
            kind: Items of different kinds are never in the same batch.

        Raises:
            OutcomeUnknown: The item was in the batch of another thread, which has failed or is stalled.
            Unavailable: That thread raised it; the class is the same.
        """
        line = self.line
        turn: Turn[Item, Result] = Turn(item, frozenset(distinct), size, kind)
        line.enter(turn)
        try:
            if not turn.called.wait(self.max_wait) and not line.leave(turn) and not self._wait(turn.called):
                raise errors.OutcomeUnknown()
            if turn is line.leader:
                line.gather(turn, self._max_size, self.gather_time)
            yield turn
        except BaseException as error:
            turn.failure = error
            raise
        finally:
            line.finish(turn)
        if not turn.is_done:
            failed = type(turn.failure) if isinstance(turn.failure, errors.Unavailable) else errors.OutcomeUnknown
            raise failed() from turn.failure


class _Line(Generic[Item, Result]):
    """The turns of one process: the waiting turns, and the leader of the current batch."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: The waiting turns, in order of arrival.
        self.waiting: list[Turn[Item, Result]] = []
        self.leader: Turn[Item, Result] | None = None
        #: The number of turns when the last batch ended.
        self._expected = 1

    def enter(self, turn: Turn[Item, Result]) -> None:
        """Append a turn, which becomes the leader at once if the line has no leader."""
        with self._changed:
            self.waiting.append(turn)
            self._call_leader()
            self._changed.notify_all()

    def leave(self, turn: Turn[Item, Result]) -> bool:
        """Take a waiting turn out of the line, to do its work alone; return False if it is no longer waiting."""
        with self._changed:
            if turn not in self.waiting:
                return False
            self.waiting.remove(turn)
            turn.batch = [turn]
            return True

    def gather(self, leader: Turn[Item, Result], max_size: int, seconds: float) -> None:
        """Wait briefly for other turns, if some are expected, and make up the leader's batch."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while len(self.waiting) + 1 < self._expected and (remaining := deadline - time.monotonic()) > 0:
                self._changed.wait(remaining)
            leader.batch, distinct, size = [leader], {*leader.distinct}, leader.size
            for turn in [*self.waiting]:
                fits = size + turn.size <= max_size and turn.kind == leader.kind and distinct.isdisjoint(turn.distinct)
                if fits:
                    self.waiting.remove(turn)
                    leader.batch.append(turn)
                    distinct |= turn.distinct
                    size += turn.size

    def finish(self, turn: Turn[Item, Result]) -> None:
        """End the turn: call the next leader, and notify the threads of the batch."""
        with self._changed:
            if turn is self.leader:
                self._expected = len(turn.batch or ()) + len(self.waiting)
                self.leader = None
                self._call_leader()
            elif turn in self.waiting:
                self.waiting.remove(turn)
        for member in turn.batch or ():
            member.failure = turn.failure
            member.called.set()

    def _call_leader(self) -> None:
        if self.leader is None and self.waiting:
            self.leader = self.waiting.pop(0)
            self.leader.called.set()
