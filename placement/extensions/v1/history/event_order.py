"""The order of events: a position for each committed transaction that has some (docs/adr/0042).

Transactions share no row, so none of them can say which place it has.  Who reads events, and a worker once a minute,
gives places to all transactions that have none.  These are found in one state of the database, so that none of them
depends on one that is missing.  Their order is that of ``placement/extensions/v1/history/event_sort.py``.

Rows are inserted and never changed.  Two processes that do this at once insert the same position: one of them fails and
looks again.  On Galera nodes, too, certification lets one of both commit.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement import errors
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.schema.tables import change_writers, consumers, resource_providers
from placement.db.writes import retry
from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.db.writes.shared_run import Admitting, SharedRun
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.v1 import signals
from placement.extensions.v1.history.event_sort import GenerationStep, Numbered, in_order
from placement.extensions.v1.history.tables import event_order, events

LOG = logging.getLogger(__name__)
Result = TypeVar("Result")

#: Rows of one transaction.
BATCH = 2000
#: Writers of one statement, and objects.
_WRITERS, _OBJECTS = 100, 500


class Used(Admitting, Protocol):
    """What is needed of a database."""

    def read(self, work: Callable[[Reading], Result]) -> Result: ...

    def snapshot(self, work: Callable[[Connection], Result]) -> Result: ...

    def write(
        self, work: Callable[[Transaction], Result], *, attempts: int, exhausted: type[errors.Conflict]
    ) -> Result: ...


#: Of each writer with events, including those that have ended, the newest number, and the newest that has a position.
Newest = Mapping[int, tuple[int, int]]


class _Overtaken(errors.Conflict):
    """Another process has given the positions."""

    template = "Another process has put the events in order."


class Sequencer:
    """Gives positions to transactions; shared by the threads of a process, one of which does it at a time."""

    def __init__(self, database: Used) -> None:
        self._database = database
        self._shared = SharedRun(database, self._order)

    def order(self) -> None:
        """Give a position to each transaction that is committed and has none; raises as ``Database.write``."""
        self._shared.since_now()

    def order_unless_busy(self) -> bool:
        """Do it unless another thread does, and return whether it was done; for callers that it does not wait for."""
        return self._shared.unless_busy()

    def _order(self) -> None:
        wanted: Newest | None = None
        for number in itertools.count(1):
            newest = self._database.read(newest_numbers)
            wanted = newest if wanted is None else wanted
            if not is_behind(wanted, newest):
                signals.transactions_unordered(0)
                return
            try:
                rows = self._database.snapshot(unordered)
                signals.transactions_unordered(len(rows))
                for start in range(0, len(rows), BATCH):
                    batch = rows[start : start + BATCH]
                    self._insert(batch)
                    signals.transactions_ordered(len(batch))
                if len(rows) > BATCH:
                    LOG.info("The history has put %d transactions in order, since %s.", len(rows), rows[0]["at"])
            except _Overtaken:
                retry.pause(number)

    def _insert(self, rows: Sequence[dict[str, Any]]) -> None:
        self._database.write(lambda db: db.execute(_INSERT, rows), attempts=1, exhausted=_Overtaken)


def is_behind(wanted: Newest, newest: Newest) -> bool:
    """Return whether transactions up to the newest of ``wanted`` had no position when ``newest`` was read.

    A writer may have lost some of them, by a failover or a restore: those that are there need a position.
    """
    return any(min(wanted[writer][0], seq) > ordered for writer, (seq, ordered) in newest.items() if writer in wanted)


def newest_numbers(db: Reading) -> Newest:
    """Return the newest numbers of the writers; one statement, which reads two rows for each writer."""
    return {row.writer: (row.seq, row.ordered or 0) for row in db.execute(_NEWEST, {}) if row.seq is not None}


def unordered(db: Connection) -> list[dict[str, Any]]:
    """Return the rows of all transactions without a position, in their order; ``db`` sees one committed state."""
    newest = {row.writer: (row.seq, row.ordered or 0) for row in db.execute(_NEWEST_PLAIN) if row.seq is not None}
    last = db.execute(NEWEST_POSITION).first()
    behind = [(writer, ordered) for writer, (seq, ordered) in newest.items() if seq > ordered]
    transactions: list[Numbered] = []
    lengths: dict[tuple[int, int], int] = {}
    for start in range(0, len(behind), _WRITERS):
        for transaction, length in _transactions(db, behind[start : start + _WRITERS]):
            transactions.append(transaction)
            lengths[transaction.writer, transaction.seq] = length
    position = 1 if last is None else last.position + last.events
    rows = []
    for transaction in in_order(transactions, lambda objects: _present(db, objects)):
        length = lengths[transaction.writer, transaction.seq]
        rows.append(
            {
                "position": position,
                "writer_id": transaction.writer,
                "seq": transaction.seq,
                "events": length,
                "at": transaction.at,
            }
        )
        position += length
    return rows


def _present(db: Connection, objects: Collection[Any]) -> dict[Any, int | None]:
    """Return the generations of consumers and providers, by kind and uuid; None of those that do not exist."""
    found: dict[Any, int | None] = {}
    for kind, table in ((CONSUMER, consumers), (PROVIDER, resource_providers)):
        uuids = [uuid for of, uuid in objects if of == kind]
        found |= dict.fromkeys(((kind, uuid) for uuid in uuids), None)
        for start in range(0, len(uuids), _OBJECTS):
            query = sa.select(table.c.uuid, table.c.generation).where(table.c.uuid.in_(uuids[start : start + _OBJECTS]))
            found |= {(kind, row.uuid): row.generation for row in db.execute(query) if (kind, row.uuid) in found}
    return found


def _transactions(db: Connection, behind: Sequence[tuple[int, int]]) -> list[tuple[Numbered, int]]:
    """Return the transactions of some writers after a number of each, with the numbers of their events."""
    later = sa.or_(*(sa.and_(events.c.writer_id == writer, events.c.seq > seq) for writer, seq in behind))
    # SQLite has one writer at a time, and numbers rows as they are inserted.  Its clock has only milliseconds.
    place: sa.Label[int] = sa.literal_column("events.rowid" if db.dialect.name == "sqlite" else "0").label("place")
    query = (
        sa.select(
            *(events.c.writer_id, events.c.seq, events.c.ordinal, events.c.at, events.c.kind, events.c.uuid),
            *(events.c.before_generation, events.c.generation, place),
        )
        .where(later)
        .order_by(events.c.writer_id, events.c.seq, events.c.ordinal)
    )
    found = []
    for (writer, seq), rows in itertools.groupby(db.execute(query), lambda row: (row.writer_id, row.seq)):
        steps: dict[tuple[str, str], GenerationStep] = {}
        length = 0
        for row in rows:
            if not length:
                at, first = row.at, row.place
            length += 1
            if row.uuid is None or (row.before_generation is None and row.generation is None):
                continue
            key = (row.kind, row.uuid)
            known = steps.get(key)
            before = row.before_generation if known is None else known.before
            steps[key] = GenerationStep(key, before, row.generation)
        # An object that is created and deleted again leaves nothing.
        lasting = tuple(step for step in steps.values() if step.before is not None or step.after is not None)
        found.append((Numbered(writer, seq, at, lasting, first), length))
    return found


_WRITER = sa.func.abs(change_writers.c.id)


def _newest_of(table: sa.Table) -> sa.ScalarSelect[Any]:
    """Return the newest number of a writer in a table: MAX would read each of its rows."""
    return (
        sa.select(table.c.seq)
        .where(table.c.writer_id == _WRITER)
        .order_by(table.c.seq.desc())
        .limit(1)
        .correlate(change_writers)
        .scalar_subquery()
    )


_NEWEST_PLAIN = sa.select(
    _WRITER.label("writer"), _newest_of(events).label("seq"), _newest_of(event_order).label("ordered")
)
_NEWEST = CompiledStatement(_NEWEST_PLAIN)
#: The newest transaction, which is never removed.
NEWEST_POSITION = sa.select(event_order).order_by(event_order.c.position.desc()).limit(1)
_INSERT = CompiledInsert(event_order, "position", "writer_id", "seq", "events", "at")
