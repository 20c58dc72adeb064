"""The order of events: a position for each committed transaction with events (docs/adr/0042).

Transactions share no row, so none of them can compute its own position.  Readers of events, and each worker process
once a minute, assign positions to all transactions without one.  They read these in one state of the database, so no
transaction depends on a missing one.

The order is a topological sort.  The transactions of one feed writer form a chain, by their numbers.  So do the changes
of one object: ids of rows distinguish its lifetimes, and generations increase within a lifetime.  The commits respect
all chains, so these contain no cycle.  Among the transactions without predecessors, the earliest comes first.

Rows are inserted and never updated.  If two processes assign positions at once, they insert the same position: one of
them fails and retries.  On Galera, certification has the same effect between nodes.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
import logging
import math
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement import errors
from placement.db.database import Database
from placement.db.engine.compiled import CompiledInsert
from placement.db.schema.tables import change_writers
from placement.db.writes import retry
from placement.db.writes.transaction import Reading
from placement.extensions.v1 import signals
from placement.extensions.v1.history.tables import event_order, events

LOG = logging.getLogger(__name__)

#: Rows inserted by one transaction.
BATCH = 2000
#: Writers in one statement.
_WRITERS = 100


class _Overtaken(errors.Conflict):
    """Another process has assigned the positions."""

    template = "Another process has assigned positions to the events."


def assign_positions(database: Database) -> None:
    """Assign a position to each committed transaction without one; failures as for ``Database.write``."""
    pending: set[tuple[int, int]] | None = None
    for number in itertools.count(1):
        rows = database.snapshot(missing_rows)
        transactions = {(row["writer_id"], row["seq"]) for row in rows}
        # Ignore transactions that commit after the first attempt: otherwise the loop might never end.
        pending = transactions if pending is None else pending & transactions
        signals.transactions_unordered(len(rows))
        if not pending:
            return
        try:
            for start in range(0, len(rows), BATCH):
                _insert(database, rows[start : start + BATCH])
        except _Overtaken:
            retry.pause(number)
            continue
        if len(rows) > BATCH:
            LOG.info("Assigned positions to the events of %d transactions since %s.", len(rows), rows[0]["at"])
        signals.transactions_unordered(0)
        return


def _insert(database: Database, rows: Sequence[dict[str, Any]]) -> None:
    database.write(lambda db: db.execute(_INSERT, rows), attempts=1, exhausted=_Overtaken)
    signals.transactions_ordered(len(rows))


# --- the order -------------------------------------------------------------------------------------------------------


class GenerationStep(NamedTuple):
    """A change of an object's generation by one transaction; None while the object does not exist."""

    object: Hashable
    #: The id of the object's row; None in events written by older versions.
    row: int | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class UnorderedTransaction:
    """A committed transaction without a position, with at most one step for each lifetime of an object."""

    writer: int
    seq: int
    at: datetime.datetime
    steps: tuple[GenerationStep, ...] = ()
    #: On SQLite, the ROWID of the first event, which orders all transactions; elsewhere 0.
    rowid: int = 0
    #: The number of its events.
    length: int = 1


def topological_order(transactions: Iterable[UnorderedTransaction]) -> list[UnorderedTransaction]:
    """Return the transactions in an order that respects all chains.

    Transactions that no chain orders are sorted by time, by clocks that may differ or go backwards.  Events without row
    ids may make chains contradict each other; then at least the chains of the writers are respected.

    Args:
        transactions: All transactions that one state of the database contains in addition to an earlier state.
    """
    by_time = sorted(
        transactions, key=lambda transaction: (transaction.rowid, transaction.at, transaction.writer, transaction.seq)
    )
    writers: defaultdict[int, deque[int]] = defaultdict(deque)
    for rank in sorted(range(len(by_time)), key=lambda rank: by_time[rank].seq):
        writers[by_time[rank].writer].append(rank)
    followers: list[list[int]] = [[] for _ in by_time]
    in_degrees = [0] * len(by_time)
    for chain in itertools.chain(([[rank] for rank in ranks] for ranks in writers.values()), _object_chains(by_time)):
        for group, next_group in itertools.pairwise(chain):
            for rank in group:
                followers[rank] += next_group
            for rank in next_group:
                in_degrees[rank] += len(group)
    ready = [rank for rank, in_degree in enumerate(in_degrees) if not in_degree]
    ordered: list[UnorderedTransaction] = []
    while len(ordered) < len(by_time):
        rank = heapq.heappop(ready) if ready else min(ranks[0] for ranks in writers.values() if ranks)
        in_degrees[rank] = 0
        writers[by_time[rank].writer].popleft()
        ordered.append(by_time[rank])
        for follower in followers[rank]:
            in_degrees[follower] -= 1
            if not in_degrees[follower]:
                heapq.heappush(ready, follower)
    return ordered


#: The lifetime (two numbers) with the generations before and after; and the rank in ``by_time``.
_Step = tuple[tuple[int, int, float, float], int]


def _object_chains(by_time: Sequence[UnorderedTransaction]) -> Iterator[list[list[int]]]:
    """Yield the chain of each object: groups of ranks in ``by_time``, each group in any order."""
    steps: defaultdict[Hashable, list[_Step]] = defaultdict(list)
    #: The current lifetime of each object: the id of its row, and the number of deletions since.
    present: dict[Hashable, tuple[int, int]] = {}
    for rank, transaction in enumerate(by_time):
        for subject, row, before, after in transaction.steps:
            # Older versions recorded no row ids; there, a new lifetime begins with each deletion.
            lifetime = present.get(subject, (0, 0)) if row is None else (row, 0)
            # A creation sorts before every generation, and a deletion after every generation.
            generations = -1 if before is None else before, math.inf if after is None else after
            steps[subject].append(((*lifetime, *generations), rank))
            present[subject] = (lifetime[0], lifetime[1] + 1) if after is None else lifetime
    for chain in steps.values():
        groups = itertools.groupby(_present_lifetime_last(sorted(chain)), key=lambda step: step[0])
        yield [[rank for _, rank in group] for _, group in groups]


def _present_lifetime_last(chain: list[_Step]) -> list[_Step]:
    """Return the steps of an object in the order of its lifetimes, given steps in the order of row ids.

    The database assigns the id of a row shortly before it inserts the row.  If other transactions create and delete the
    object in between, the present lifetime has a lower id than theirs, although it began later.
    """
    ended = {step[0][:2] for step in chain if step[0][3] == math.inf}
    present = [step for step in chain if step[0][:2] not in ended]
    past = [step for step in chain if step[0][:2] in ended]
    is_later = present and past and min(rank for _, rank in present) > max(rank for _, rank in past)
    return past + present if is_later else chain


# --- transactions without a position ---------------------------------------------------------------------------------


def is_behind(db: Reading) -> bool:
    """Whether any transaction has no position.

    This is one statement, which reads two rows for each writer.
    """
    return db.execute(_BEHIND.limit(1)).first() is not None


def missing_rows(db: Connection) -> list[dict[str, Any]]:
    """Return rows of ``event_order`` for all transactions without a position, in order.

    Args:
        db: A connection that sees one committed state.
    """
    behind = [(row.writer, row.ordered or 0) for row in db.execute(_BEHIND)]
    if not behind:
        return []
    transactions: list[UnorderedTransaction] = []
    for start in range(0, len(behind), _WRITERS):
        transactions += _transactions(db, behind[start : start + _WRITERS])
    last = db.execute(NEWEST_POSITION).first()
    position = 1 if last is None else last.position + last.events
    rows = []
    for transaction in topological_order(transactions):
        rows.append(
            {
                "position": position,
                "writer_id": transaction.writer,
                "seq": transaction.seq,
                "events": transaction.length,
                "at": transaction.at,
            }
        )
        position += transaction.length
    return rows


def _transactions(db: Connection, behind: Sequence[tuple[int, int]]) -> Iterator[UnorderedTransaction]:
    """Yield the transactions of some writers.

    Args:
        behind: Pairs of a writer and its last number with a position.
    """
    is_unordered = sa.or_(*(sa.and_(events.c.writer_id == writer, events.c.seq > seq) for writer, seq in behind))
    # SQLite runs one write at a time, so ROWID orders all events.  Row ids are of no use there: SQLite reuses them.
    is_sqlite = db.dialect.name == "sqlite"
    rowid: sa.Label[int] = sa.literal_column("events.rowid" if is_sqlite else "0").label("event_rowid")
    columns = (events.c.writer_id, events.c.seq, events.c.at, events.c.kind, events.c.uuid, events.c.row_id)
    query = (
        sa.select(*columns, events.c.before_generation, events.c.generation, rowid)
        .where(is_unordered)
        .order_by(events.c.writer_id, events.c.seq, events.c.ordinal)
    )
    for (writer, seq), rows in itertools.groupby(db.execute(query), lambda row: (row.writer_id, row.seq)):
        first, *following = rows
        steps: dict[tuple[Any, ...], GenerationStep] = {}
        for row in () if is_sqlite else (first, *following):
            if row.before_generation is not None or row.generation is not None:
                subject = row.kind, row.uuid
                steps[*subject, row.row_id] = GenerationStep(subject, row.row_id, row.before_generation, row.generation)
        yield UnorderedTransaction(writer, seq, first.at, tuple(steps.values()), first.event_rowid, 1 + len(following))


_WRITER = sa.func.abs(change_writers.c.id)


def _newest_of(table: sa.Table) -> sa.ScalarSelect[Any]:
    """Return a writer's newest number in a table.  MAX would read all rows of the writer."""
    return (
        sa.select(table.c.seq)
        .where(table.c.writer_id == _WRITER)
        .order_by(table.c.seq.desc())
        .limit(1)
        .correlate(change_writers)
        .scalar_subquery()
    )


#: Writers, including ended writers, with events that have no position; and the newest number of each with a position.
_BEHIND = sa.select(_WRITER.label("writer"), _newest_of(event_order).label("ordered")).where(
    _newest_of(events) > sa.func.coalesce(_newest_of(event_order), 0)
)
#: The newest transaction, which is never pruned.
NEWEST_POSITION = sa.select(event_order).order_by(event_order.c.position.desc()).limit(1)
_INSERT = CompiledInsert(event_order, "position", "writer_id", "seq", "events", "at")
