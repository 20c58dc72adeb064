"""Writes that one transaction does together with others of their kind (docs/adr/0036)."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement import errors, signals
from placement.db.writes import retry
from placement.db.writes.combining import GATHERING, SHORT_WAIT, Batch, Combiner, LeaderFailed
from placement.db.writes.transaction import Transaction

LOG = logging.getLogger(__name__)

#: The largest sum of the sizes of writes that are done together.
LARGEST = 100

#: Does the writes of these values in one transaction, all of them or none.  Its last argument returns the values of
#: more writes, which wait for the same rows; it is called once these are locked.
Work = Callable[[Transaction, Sequence[Any], Callable[[], Sequence[Any]]], object]
#: Does those of these values' writes in one transaction that it can do at once, and returns of each whether it did.
MixedWork = Callable[[Transaction, Sequence[Any]], Sequence[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointWrite:
    """A write that can be joined with others of the same work.

    Writes that are joined must not rely on each other: if one transaction can do all of them, each could be done by a
    transaction of its own, in any order.
    """

    work: Work
    #: Does it together with others that lock other rows; None: it is not joined with these.
    mixed_work: MixedWork | None = None
    value: Any
    #: What the write locks; it is joined with others that lock something of it, and with none if this is empty.
    contended: frozenset[Hashable]
    #: It is not joined with another one that has something of this.
    distinct: frozenset[Hashable]
    #: A number that grows with the rows that it writes.
    size: int
    #: These three are as of ``Database.write``.
    attempts: int = retry.ATTEMPTS
    exhausted: type[errors.Conflict] = errors.TooManyConflicts
    deadline: float = field(default_factory=retry.new_deadline)

    def alone(self, db: Transaction) -> None:
        """Do this write and no other."""
        self.work(db, [self.value], list)


class JointWrites:
    """Does the joint writes of all threads of a process."""

    def __init__(self, write: Callable[..., None], wait: Callable[[threading.Event], bool]) -> None:
        """Take ``Database.write`` and ``Bulkhead.wait_for``."""
        self._transact = write
        self._mixed: Combiner[JointWrite, bool] = Combiner(
            self._write_mixed, most=LARGEST, longest_wait=SHORT_WAIT, gathering=GATHERING, wait=wait
        )
        self._alike: Combiner[JointWrite, bool] = Combiner(self._write_alike, most=LARGEST, wait=wait)

    @signals.timed("joint")
    def write(self, write: JointWrite) -> None:
        """Return once the write is committed.

        Raises:
            OutcomeUnknown: The connection was lost during COMMIT, or the thread that does the work is stalled.
            Failure: What ``Database.write`` raises for this write alone.
        """
        try:
            committed = write.mixed_work is not None and self._mixed.submit(
                write, [write.mixed_work], distinct=write.distinct, size=write.size
            )
            committed = committed or self._submit_alike(write)
        except LeaderFailed as failed:
            raise failure_of(failed) from failed
        if not committed:
            self._write(write, write.alone)
            signals.written_jointly(1)

    def _submit_alike(self, write: JointWrite) -> bool:
        rows = [(write.work, row) for row in write.contended]
        return self._alike.submit(write, rows, distinct=write.distinct, size=write.size)

    def _write_mixed(self, batch: Batch[JointWrite]) -> Sequence[bool]:
        """Do those of the writes that no other transaction holds up and nothing refuses, and return which."""
        writes = batch.items
        if len(writes) == 1:
            return [self._submit_alike(writes[0])]
        free = self._write_free(writes)
        if len(free) < len(writes):
            signals.retried("joint")
            if len(self._write_free([writes[at] for at in free])) < len(free):
                free = []
        return [at in free for at in range(len(writes))]

    def _write_free(self, writes: Sequence[JointWrite]) -> list[int]:
        """Do the writes in one transaction if all of them can be done, and return the positions of those that can.

        If one cannot, nothing is written: what it did before it was refused must not be committed.
        """
        free: list[int] = []

        def work(db: Transaction) -> None:
            free.clear()
            assert writes[0].mixed_work is not None
            if db.attempt == 1:
                free.extend(itertools.compress(itertools.count(), writes[0].mixed_work(db, _values(writes))))
            if len(free) < len(writes):
                raise _AttemptFailed

        if not writes:
            return []
        error = self._commit(writes[0], work)
        if error is None:
            signals.written_jointly(len(writes))
        elif not isinstance(error, _AttemptFailed):
            return []
        return free

    def _write_alike(self, batch: Batch[JointWrite]) -> Sequence[bool]:
        """Do the writes in one transaction, all of them or none, and return which.

        Raises:
            Failure: The batch is one write, and it is refused.
        """
        leader = batch.items[0]

        def work(db: Transaction) -> None:
            if db.attempt > 1 and len(batch.items) > 1:
                raise _AttemptFailed
            leader.work(db, _values(batch.items), lambda: _values(batch.extend()))

        error = self._commit(leader, work)
        if error is None:
            signals.written_jointly(len(batch.items))
        elif len(batch.items) == 1:
            raise error
        else:
            signals.retried("joint")
        return [error is None] * len(batch.items)

    def _commit(self, leader: JointWrite, work: Callable[[Transaction], None]) -> Exception | None:
        """Return None once the work is committed; else why nothing was written, which may concern one write only.

        Raises:
            Unavailable: What concerns all; OutcomeUnknown if the connection was lost during COMMIT.
        """
        try:
            self._write(leader, work)
        except errors.Unavailable:
            raise
        except Exception as error:
            LOG.debug("Joined writes are done separately: %s", error)
            return error
        return None

    def _write(self, write: JointWrite, work: Callable[[Transaction], None]) -> None:
        self._transact(work, attempts=write.attempts, exhausted=write.exhausted, deadline=write.deadline)


def failure_of(failed: LeaderFailed) -> errors.Unavailable:
    """Return the failure of a request whose work another thread did, or was doing."""
    cause = failed.__cause__
    return type(cause)() if isinstance(cause, errors.Unavailable) else errors.OutcomeUnknown()


class _AttemptFailed(Exception):
    """Raised in the place of a second attempt at several writes, and where one of them is refused."""


def _values(writes: Sequence[JointWrite]) -> list[Any]:
    return [write.value for write in writes]
