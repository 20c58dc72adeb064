"""Combining: of threads that wait for the same thing, one does the work of all.

This is flat combining (D. Hendler, I. Incze, N. Shavit, M. Tzafrir: "Flat combining and the synchronization-parallelism
tradeoff", SPAA 2010) with the queue of a group commit.  What arrives until a batch has its locks can still be added to
it.  A thread that is alone begins at once.  Where others were there when the last batch ended, the next one waits for
them to return, for a moment: else a batch of one and a batch of all others would take turns.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Seconds after which a thread no longer waits for its turn.  A batch takes milliseconds; one that takes longer waits
#: for something that may not concern the others.
LONGEST_WAIT = 1.0
#: The same where a batch may be about other rows than the item: it may wait for a stranger's lock on them.
SHORT_WAIT = 0.05
#: Seconds in which a client that has got its reply can have sent its next request.
GATHERING = 0.002
#: Sets of keys for which the numbers of those that were there are remembered.
REMEMBERED = 1000

_NO_KEYS: frozenset[Hashable] = frozenset()


class LeaderFailed(Exception):
    """Raised by the followers of a batch whose leader raised the exception that is the cause of this one."""


class Combiner(Generic[Item, Result]):
    """Runs items of several threads in batches; shared by the threads of a process.

    The thread of the first item of a batch is its leader, which runs the batch; the others are its followers.
    """

    def __init__(
        self,
        run: Callable[[Batch[Item]], Sequence[Result]],
        *,
        most: int,
        longest_wait: float = LONGEST_WAIT,
        gathering: float = 0,
        wait: Callable[[threading.Event], bool] = threading.Event.wait,
    ) -> None:
        """Take what runs the items.

        Args:
            run: Returns the results of the items that the batch has at the end, in their order.  It must end by itself:
                the followers wait for it.
            most: The largest sum of the sizes of the items of a batch.  A larger item is run by itself.
            longest_wait: Seconds after which an item that is in no batch yet is run by itself.
            gathering: Seconds for which a batch waits, at most, for as many items as there were when the last one of
                the same keys ended.
            wait: Waits for the end of a batch, as a follower, and returns whether it has ended.
        """
        self._run = run
        self._most = most
        self._longest_wait = longest_wait
        self._gathering = gathering
        self._wait = wait
        self._queues: dict[int, _Queue] = {}

    def submit(
        self, item: Item, keys: Collection[Hashable], *, distinct: Collection[Hashable] = (), size: int = 1
    ) -> Result:
        """Return the result of the item, once it was run.

        Args:
            keys: An item waits for those that have a key in common with it, and may be run together with them.
            distinct: Items that have one of these in common are never run together.
            size: As in ``most``.

        Raises:
            LeaderFailed: This thread was a follower, and its leader raised an exception, or ``wait`` returned False.
            Exception: This thread was the leader, and ``run`` raised it.
        """
        queue, entry = self._queue, _Entry(item, frozenset(keys), frozenset(distinct), size)
        try:
            queue.enter(entry)
            if not entry.called.wait(self._longest_wait):
                if queue.leave(entry):
                    entry.batch = Batch(queue, entry, _NO_KEYS)
                elif not self._wait(entry.called):  # it is in a batch that runs
                    raise LeaderFailed
            if entry.batch is not None:
                if self._gathering:
                    queue.gather(entry.batch, self._gathering)
                entry.batch.accept(self._run(entry.batch))
        except BaseException as error:
            queue.leave(entry)
            if entry.batch is not None:
                entry.batch.failure = error
            raise
        finally:
            if entry.batch is not None:
                queue.finish(entry.batch)
        if not entry.done:
            raise LeaderFailed from entry.failure
        return cast(Result, entry.result)

    @property
    def _queue(self) -> _Queue:
        """The queue of this process: that of its parent may hold threads which a forked child does not have."""
        return self._queues.setdefault(os.getpid(), _Queue(self._most, remembers=self._gathering > 0))


@dataclass(eq=False, slots=True)
class _Entry:
    """An item, with what its thread waits for."""

    item: Any
    keys: frozenset[Hashable]
    distinct: frozenset[Hashable]
    size: int
    #: Set once the thread has a batch to run, or its batch has ended.
    called: threading.Event = field(default_factory=threading.Event)
    #: The batch that the thread has to run, as its leader.
    batch: Batch[Any] | None = None
    done: bool = False
    result: Any = None
    failure: BaseException | None = None


class Batch(Generic[Item]):
    """Items that are run together; the first one is the leader's."""

    def __init__(self, queue: _Queue, leader: _Entry, keys: frozenset[Hashable]) -> None:
        self.entries = [leader]
        self.keys = keys
        self.failure: BaseException | None = None
        self._queue = queue
        self._distinct, self._size = leader.distinct, leader.size

    @property
    def items(self) -> list[Item]:
        """The items, in the order of their arrival."""
        return [entry.item for entry in self.entries]

    def extend(self) -> list[Item]:
        """Add the items that wait and have no other keys than this batch; return those that were added."""
        before = len(self.entries)
        self._queue.extend(self)
        return self.items[before:]

    def admit(self, entry: _Entry, most: int) -> bool:
        """Return whether the entry may be in this batch, and add it if so."""
        if self._size + entry.size > most or not self._distinct.isdisjoint(entry.distinct):
            return False
        self.entries.append(entry)
        self.keys |= entry.keys
        self._distinct |= entry.distinct
        self._size += entry.size
        return True

    def accept(self, results: Sequence[Any]) -> None:
        """Give each entry its result."""
        for entry, result in [*zip(self.entries, results, strict=True)]:
            entry.result, entry.done = result, True


class _Queue:
    """The entries of one process that wait, in the order of their arrival, and the keys of the batches that run.

    An entry waits for all that have a key in common with it and run, or have waited longer.  So one that has many keys
    is not overtaken without an end by others that have one of them.
    """

    def __init__(self, most: int, *, remembers: bool) -> None:
        self._most = most
        self._remembers = remembers
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._running: set[Hashable] = set()
        self._waiting: list[_Entry] = []
        #: By the keys of the last batches: how many entries they had and left waiting, if more than one.
        self._present: dict[frozenset[Hashable], int] = {}

    def enter(self, entry: _Entry) -> None:
        """Append the entry; its thread is called at once if it has nothing to wait for."""
        with self._lock:
            self._waiting.append(entry)
            self._call_leaders()
            self._arrived.notify_all()

    def gather(self, batch: Batch[Any], seconds: float) -> None:
        """Extend the batch until it has as many entries as there were at the end of the last one, or time is over."""
        deadline = time.monotonic() + seconds
        with self._lock:
            expected = self._present.get(batch.keys, 1)
            self._extend(batch)
            # An entry that is left although it could wait for nothing else has no room in this batch.
            while (
                len(batch.entries) < expected
                and not any(entry.keys <= batch.keys for entry in self._waiting)
                and (left := deadline - time.monotonic()) > 0
            ):
                self._arrived.wait(left)
                self._extend(batch)

    def leave(self, entry: _Entry) -> bool:
        """Remove the entry, unless it is in a batch; return whether it waited."""
        with self._lock:
            if entry not in self._waiting:
                return False
            self._waiting.remove(entry)
            self._call_leaders()
            return True

    def extend(self, batch: Batch[Any]) -> None:
        """Add the entries to the batch that wait for nothing else."""
        with self._lock:
            self._extend(batch)

    def _extend(self, batch: Batch[Any]) -> None:
        blocked: set[Hashable] = set()
        entries, self._waiting = self._waiting, []
        for entry in entries:
            free = entry.keys <= batch.keys and blocked.isdisjoint(entry.keys)
            if not (free and batch.admit(entry, self._most)):
                self._waiting.append(entry)
                blocked |= entry.keys

    def finish(self, batch: Batch[Any]) -> None:
        """Call the threads that wait for the batch, which has ended: the next leaders, and its followers."""
        with self._lock:
            self._running -= batch.keys
            if self._remembers:
                self._remember(batch)
            self._call_leaders()
        for entry in batch.entries:
            entry.failure = batch.failure
            entry.called.set()

    def _remember(self, batch: Batch[Any]) -> None:
        present = len(batch.entries) + sum(entry.keys <= batch.keys for entry in self._waiting)
        self._present.pop(batch.keys, None)
        if present > 1:
            if len(self._present) >= REMEMBERED:
                self._present.clear()
            self._present[batch.keys] = present

    def _call_leaders(self) -> None:
        """Form batches of the entries that have nothing to wait for but each other, and call their leaders."""
        batches: list[Batch[Any]] = []
        blocked = set(self._running)
        entries, self._waiting = self._waiting, []
        for entry in entries:
            related = [batch for batch in batches if not batch.keys.isdisjoint(entry.keys)]
            free = blocked.isdisjoint(entry.keys)
            if free and not related:
                batches.append(Batch(self, entry, entry.keys))
            elif not (free and len(related) == 1 and related[0].admit(entry, self._most)):
                self._waiting.append(entry)
                blocked |= entry.keys
        for batch in batches:
            self._running |= batch.keys
            leader = batch.entries[0]
            leader.batch = batch
            leader.called.set()
