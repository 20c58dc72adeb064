"""Writes that one transaction does together with others of their kind (docs/adr/0036)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement import errors, signals
from placement.db import retry
from placement.db.combining import Batch, Combiner, LeaderFailed
from placement.db.transaction import Transaction

LOG = logging.getLogger(__name__)

#: The largest sum of the sizes of writes that are done together.
LARGEST = 100

#: Does the writes of these values in one transaction, all of them or none.  Its last argument returns the values of
#: more writes, which wait for the same rows; it is called once these are locked.
Work = Callable[[Transaction, Sequence[Any], Callable[[], Sequence[Any]]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointWrite:
    """A write that can be joined with others of the same work.

    Writes that are joined must not rely on each other: if one transaction can do all of them, each could be done by a
    transaction of its own, in any order.
    """

    work: Work
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

    def __init__(self, write: Callable[..., None]) -> None:
        """Take ``Database.write``."""
        self._transact = write
        self._combiner: Combiner[JointWrite, bool] = Combiner(self._write_batch, most=LARGEST)

    @signals.timed("joint")
    def write(self, write: JointWrite) -> None:
        """Return once the write is committed.

        Raises:
            OutcomeUnknown: The connection was lost during COMMIT.
            Failure: What ``Database.write`` raises for this write alone.
        """
        keys = [(write.work, row) for row in write.contended]
        try:
            committed = self._combiner.submit(write, keys, distinct=write.distinct, size=write.size)
        except LeaderFailed as failure:
            raise errors.OutcomeUnknown() from failure
        if not committed:
            self._write(write, write.alone)
            signals.written_jointly(1)

    def _write_batch(self, batch: Batch[JointWrite]) -> Sequence[bool]:
        """Do the writes in one transaction.

        Returns:
            Whether they are committed.  If not, each has to be done separately: the cause may concern only one of them.

        Raises:
            OutcomeUnknown: The connection was lost during COMMIT.
            Failure: The batch is one write, and it is refused.
        """
        leader = batch.items[0]

        def work(db: Transaction) -> None:
            if db.attempt > 1 and len(batch.items) > 1:
                raise _AttemptFailed
            leader.work(db, _values(batch.items), lambda: _values(batch.extend()))

        try:
            self._write(leader, work)
        except errors.OutcomeUnknown:
            raise
        except Exception as error:
            if len(batch.items) == 1:
                raise
            LOG.debug("%d writes are done separately: %s", len(batch.items), error)
            signals.retried("joint")
            return [False] * len(batch.items)
        signals.written_jointly(len(batch.items))
        return [True] * len(batch.items)

    def _write(self, write: JointWrite, work: Callable[[Transaction], None]) -> None:
        self._transact(work, attempts=write.attempts, exhausted=write.exhausted, deadline=write.deadline)


class _AttemptFailed(Exception):
    """Raised in the place of a second attempt at several writes."""


def _values(writes: Sequence[JointWrite]) -> list[Any]:
    return [write.value for write in writes]
