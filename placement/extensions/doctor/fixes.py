"""What ``--fix`` does about findings; what it changes is recorded in the feed and in the history.

Only what takes nothing from anybody is mended: rows that are missing, and rows that mean nothing.  What decides about
the use of resources is left to operators.  A fix finds its rows itself, after those before it are done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from placement.checks.check import Subject, within
from placement.db.feed import EXPIRED
from placement.db.schema.tables import allocations, consumers
from placement.db.upkeep import online, standard
from placement.db.writes import expired_writers
from placement.db.writes.transaction import Transaction
from placement.extensions.doctor import data, feed, repairs
from placement.objects.claims import lease_sweep, release

#: Rows in one transaction.
_BATCH = release.BATCH
#: Attempts of one transaction, each of which may meet claims and moves.
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Fix:
    """What is done about the findings of a check."""

    check: str
    #: What it does, as a sentence.
    does: str
    #: Does it, and yields the number of rows that each transaction has mended.
    run: Callable[[Subject], Iterator[int]]


def _insert_standard_rows(subject: Subject) -> Iterator[int]:
    lacking = subject.database.read(lambda db: len(standard.missing(db)) + (not standard.has_identity(db)))
    standard.insert(subject.database, noted=True)
    yield lacking


def _correct_roots(subject: Subject) -> Iterator[int]:
    return _until_none(subject, lambda db: repairs.correct_roots(db, _BATCH))


def _cut_orphans(subject: Subject) -> Iterator[int]:
    yield from _until_none(subject, lambda db: repairs.cut_orphans(db, _BATCH))
    sum(_correct_roots(subject))


def _create_consumers(subject: Subject) -> Iterator[int]:
    group = subject.conf.placement
    create = online.IncompleteConsumers(group.incomplete_consumer_project_id, group.incomplete_consumer_user_id)
    while done := create(subject.database, _BATCH).done:
        yield done


def _release_lost(subject: Subject) -> Iterator[int]:
    found = dict.fromkeys(row.consumer_id for row in subject.batched(_LOST, allocations.c.id))
    return _in_batches(subject, found, repairs.release_lost)


def _delete_idle(subject: Subject) -> Iterator[int]:
    found = [row.uuid for row in subject.batched(data.HOLDS_NOTHING, consumers.c.id)]
    return _in_batches(subject, found, repairs.delete_idle)


def _give_back(subject: Subject) -> Iterator[int]:
    numbers: list[int] = []
    lease_sweep.sweep(subject.database, given_back=numbers.append)
    yield sum(numbers)


def _end_writers(subject: Subject) -> Iterator[int]:
    # Of a writer that is cleared no event could be found that is not in order yet.
    if subject.database.recorder is not None:
        subject.database.recorder.order()
    limit = feed.since(subject)
    number = len(subject.rows(EXPIRED, {"expired": limit}))
    subject.database.write(lambda db: expired_writers.end(db, limit))
    yield number


def _until_none(subject: Subject, work: Callable[[Transaction], int]) -> Iterator[int]:
    while done := subject.database.write(work, attempts=_ATTEMPTS):
        yield done


def _in_batches(subject: Subject, uuids: Iterable[str], work: Callable[[Transaction, list[str]], int]) -> Iterator[int]:
    remaining = iter(uuids)
    while several := [*itertools.islice(remaining, _BATCH)]:
        yield subject.database.write(lambda db: work(db, several), attempts=_ATTEMPTS)


_LOST = sa.select(allocations.c.consumer_id).distinct().where(within(allocations.c.id), repairs.IS_LOST)

#: In the order in which they are done: rows that are missing first, since others are right with them.
FIXES = (
    Fix("standard_rows", "Insert the missing rows.", _insert_standard_rows),
    Fix("parents", "Make the providers without a parent roots, as which searches take them.", _cut_orphans),
    Fix("roots", "Give these providers the roots of their parents.", _correct_roots),
    Fix(
        "allocations_without_consumer",
        "Create the consumers, of the project and the user of [placement]incomplete_consumer_project_id and _user_id.",
        _create_consumers,
    ),
    Fix("lost_allocations", "Delete these allocations, and consumers that hold nothing else.", _release_lost),
    Fix("idle_consumers", "Delete the rows of these consumers.", _delete_idle),
    Fix("leases", "Give back what these leases hold.", _give_back),
    Fix("expired_writers", "End these writers.", _end_writers),
)
