"""The order of events: a position for each committed transaction that has some (docs/adr/0042).

Transactions share no row, so none of them can tell its own position.  Readers of events, and each worker once a minute,
give positions to all transactions that have none.  They find these in one state of the database, so that none depends
on one that is missing.

The transactions of one writer form a line, by their numbers.  So do the changes of one object: the id of its row tells
its lives apart, and within a life generations rise.  Committed transactions respect all lines at once, so the lines
contain no cycle, and the earliest transaction that no line holds back may always come next.

Rows are inserted and never changed.  Two processes that do this at once insert the same position: one of them fails and
looks again.  Between Galera nodes, too, certification lets only one of the two commit.
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

#: Rows of one transaction.
BATCH = 2000
#: Writers in one statement.
_WRITERS = 100


class _Overtaken(errors.Conflict):
    """Another process has given out the positions."""

    template = "Another process has put the events in order."


def put_in_order(database: Database) -> None:
    """Give a position to each committed transaction that has none; raises like ``Database.write``."""
    wanted: set[tuple[int, int]] | None = None
    for number in itertools.count(1):
        rows = database.snapshot(unordered)
        found = {(row["writer_id"], row["seq"]) for row in rows}
        # Ignore what was committed after the first look, so that this ends.
        wanted = found if wanted is None else wanted & found
        signals.transactions_unordered(len(rows))
        if not wanted:
            return
        try:
            for start in range(0, len(rows), BATCH):
                _insert(database, rows[start : start + BATCH])
        except _Overtaken:
            retry.pause(number)
            continue
        if len(rows) > BATCH:
            LOG.info("The history has put %d transactions in order, since %s.", len(rows), rows[0]["at"])
        signals.transactions_unordered(0)
        return


def _insert(database: Database, rows: Sequence[dict[str, Any]]) -> None:
    database.write(lambda db: db.execute(_INSERT, rows), attempts=1, exhausted=_Overtaken)
    signals.transactions_ordered(len(rows))


# --- the order -------------------------------------------------------------------------------------------------------


class GenerationStep(NamedTuple):
    """What a transaction does to the generation of an object; None while the object does not exist."""

    object: Hashable
    #: The id of its row; None in events that older versions wrote.
    row: int | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Unordered:
    """A committed transaction without a position, with at most one step for each life of an object."""

    writer: int
    seq: int
    at: datetime.datetime
    steps: tuple[GenerationStep, ...] = ()
    #: Its rank among all, if the database has one writer at a time; otherwise 0.
    place: int = 0
    #: How many events it has.
    length: int = 1


def in_order(transactions: Iterable[Unordered]) -> list[Unordered]:
    """Return the transactions in an order that respects all lines.

    They must be all those that one state of the database has beyond an earlier state.  Where no line decides, the time
    does, by clocks that may differ or go backwards.  If lines contradict each other, which is impossible for events
    with row ids, at least the lines of writers are respected.
    """
    by_time = sorted(transactions, key=lambda one: (one.place, one.at, one.writer, one.seq))
    writers: defaultdict[int, deque[int]] = defaultdict(deque)
    for rank in sorted(range(len(by_time)), key=lambda rank: by_time[rank].seq):
        writers[by_time[rank].writer].append(rank)
    followers: list[list[int]] = [[] for _ in by_time]
    awaited = [0] * len(by_time)
    for line in itertools.chain(([[rank] for rank in ranks] for ranks in writers.values()), _lives(by_time)):
        for some, others in itertools.pairwise(line):
            for rank in some:
                followers[rank] += others
            for rank in others:
                awaited[rank] += len(some)
    ready = [rank for rank, number in enumerate(awaited) if not number]
    found: list[Unordered] = []
    while len(found) < len(by_time):
        rank = heapq.heappop(ready) if ready else min(ranks[0] for ranks in writers.values() if ranks)
        awaited[rank] = 0
        writers[by_time[rank].writer].popleft()
        found.append(by_time[rank])
        for other in followers[rank]:
            awaited[other] -= 1
            if not awaited[other]:
                heapq.heappush(ready, other)
    return found


#: The life (two numbers) with the generations before and after; and the rank in ``by_time``.
_Step = tuple[tuple[int, int, float, float], int]


def _lives(by_time: Sequence[Unordered]) -> Iterator[list[list[int]]]:
    """Yield the line of each object: ranks in ``by_time``, in groups whose members may come in any order."""
    steps: defaultdict[Hashable, list[_Step]] = defaultdict(list)
    #: Each object's current life: the id of its row, and how often the object has ended since.
    present: dict[Hashable, tuple[int, int]] = {}
    for rank, transaction in enumerate(by_time):
        for object_, row, before, after in transaction.steps:
            # Older versions recorded no ids: there, the time of a deletion tells two lives apart.
            life = present.get(object_, (0, 0)) if row is None else (row, 0)
            # A creation sorts before every generation, and a deletion after every generation.
            generations = -1 if before is None else before, math.inf if after is None else after
            steps[object_].append(((*life, *generations), rank))
            present[object_] = (life[0], life[1] + 1) if after is None else life
    for line in steps.values():
        groups = itertools.groupby(_present_last(sorted(line)), key=lambda step: step[0])
        yield [[rank for _, rank in group] for _, group in groups]


def _present_last(line: list[_Step]) -> list[_Step]:
    """Return the steps of an object in the order of its lives, given steps in the order of ids.

    An id is drawn a moment before its row exists.  If others create and end the object within that moment, the life
    that still goes on has the lower id, although it began after theirs had ended.
    """
    ended = {life[:2] for life, _ in line if life[3] == math.inf}
    present = [step for step in line if step[0][:2] not in ended]
    others = [step for step in line if step[0][:2] in ended]
    is_later = present and others and min(rank for _, rank in present) > max(rank for _, rank in others)
    return others + present if is_later else line


# --- what is to be ordered -------------------------------------------------------------------------------------------


def is_behind(db: Reading) -> bool:
    """Return whether any transaction has no position; one statement, which reads two rows for each writer."""
    return db.execute(_BEHIND.limit(1)).first() is not None


def unordered(db: Connection) -> list[dict[str, Any]]:
    """Return the rows of all transactions without a position, in their order; ``db`` sees one committed state."""
    behind = [(row.writer, row.ordered or 0) for row in db.execute(_BEHIND)]
    if not behind:
        return []
    transactions: list[Unordered] = []
    for start in range(0, len(behind), _WRITERS):
        transactions += _transactions(db, behind[start : start + _WRITERS])
    last = db.execute(NEWEST_POSITION).first()
    position = 1 if last is None else last.position + last.events
    rows = []
    for one in in_order(transactions):
        rows.append({"position": position, "writer_id": one.writer, "seq": one.seq, "events": one.length, "at": one.at})
        position += one.length
    return rows


def _transactions(db: Connection, behind: Sequence[tuple[int, int]]) -> Iterator[Unordered]:
    """Yield the transactions of some writers, each writer's after a number."""
    later = sa.or_(*(sa.and_(events.c.writer_id == writer, events.c.seq > seq) for writer, seq in behind))
    # SQLite has one writer at a time, and numbers rows as they are inserted.  It reuses the ids of deleted rows.
    is_sqlite = db.dialect.name == "sqlite"
    place: sa.Label[int] = sa.literal_column("events.rowid" if is_sqlite else "0").label("place")
    columns = (events.c.writer_id, events.c.seq, events.c.at, events.c.kind, events.c.uuid, events.c.row_id)
    query = (
        sa.select(*columns, events.c.before_generation, events.c.generation, place)
        .where(later)
        .order_by(events.c.writer_id, events.c.seq, events.c.ordinal)
    )
    for (writer, seq), rows in itertools.groupby(db.execute(query), lambda row: (row.writer_id, row.seq)):
        first, *others = rows
        steps: dict[tuple[Any, ...], GenerationStep] = {}
        for row in () if is_sqlite else (first, *others):
            if row.before_generation is not None or row.generation is not None:
                object_ = row.kind, row.uuid
                steps[*object_, row.row_id] = GenerationStep(object_, row.row_id, row.before_generation, row.generation)
        yield Unordered(writer, seq, first.at, tuple(steps.values()), first.place, 1 + len(others))


_WRITER = sa.func.abs(change_writers.c.id)


def _newest_of(table: sa.Table) -> sa.ScalarSelect[Any]:
    """Return a writer's newest number in a table; MAX would read each of its rows."""
    return (
        sa.select(table.c.seq)
        .where(table.c.writer_id == _WRITER)
        .order_by(table.c.seq.desc())
        .limit(1)
        .correlate(change_writers)
        .scalar_subquery()
    )


#: Writers, including ended ones, with events that have no position; and each one's newest number that has one.
_BEHIND = sa.select(_WRITER.label("writer"), _newest_of(event_order).label("ordered")).where(
    _newest_of(events) > sa.func.coalesce(_newest_of(event_order), 0)
)
#: The newest transaction, which is never removed.
NEWEST_POSITION = sa.select(event_order).order_by(event_order.c.position.desc()).limit(1)
_INSERT = CompiledInsert(event_order, "position", "writer_id", "seq", "events", "at")
