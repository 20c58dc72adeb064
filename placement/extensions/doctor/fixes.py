"""The fixes that ``placement-manage doctor --fix --yes`` applies.

A fix inserts missing rows or removes meaningless rows; it takes no resources from a consumer.  Decisions about the use
of resources, such as over-commitment, are left to operators.  Each fix looks for its rows when it runs, after the
previous fixes.  Changes are recorded in the change feed and the history.
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

#: Maximum number of rows per transaction.
_BATCH = release.BATCH
#: Maximum number of attempts of one transaction, which concurrent claims and moves can roll back.
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class Fix:
    """The fix for the findings of one check."""

    check: str
    #: The effect of the fix, as an imperative sentence.
    description: str
    #: The function that applies the fix; it yields the number of rows fixed by each transaction.
    run: Callable[[Subject], Iterator[int]]


def _insert_standard_rows(subject: Subject) -> Iterator[int]:
    missing = subject.database.read(lambda db: len(standard.missing_names(db)) + (not standard.has_identity(db)))
    standard.insert(subject.database, noted=True)
    yield missing


def _correct_roots(subject: Subject) -> Iterator[int]:
    return _repeat_until_done(subject, lambda db: repairs.correct_roots(db, _BATCH))


def _cut_orphans(subject: Subject) -> Iterator[int]:
    yield from _repeat_until_done(subject, lambda db: repairs.cut_orphans(db, _BATCH))
    sum(_correct_roots(subject))


def _create_consumers(subject: Subject) -> Iterator[int]:
    options = subject.conf.placement
    create = online.IncompleteConsumers(options.incomplete_consumer_project_id, options.incomplete_consumer_user_id)
    while count := create(subject.database, _BATCH).done:
        yield count


def _release_lost(subject: Subject) -> Iterator[int]:
    uuids = dict.fromkeys(row.consumer_id for row in subject.batched(_LOST, allocations.c.id))
    return _in_batches(subject, uuids, repairs.release_lost)


def _delete_idle(subject: Subject) -> Iterator[int]:
    uuids = [row.uuid for row in subject.batched(data.HOLDS_NOTHING, consumers.c.id)]
    return _in_batches(subject, uuids, repairs.delete_idle)


def _release_leases(subject: Subject) -> Iterator[int]:
    numbers: list[int] = []
    lease_sweep.sweep(subject.database, released=numbers.append)
    yield sum(numbers)


def _end_writers(subject: Subject) -> Iterator[int]:
    # Order pending events first: once a writer has been ended, its events can no longer be found.
    if subject.database.recorder is not None:
        subject.database.recorder.order()
    limit = feed.expiry_limit(subject)
    number = len(subject.rows(EXPIRED, {"cutoff": limit}))
    subject.database.write(lambda db: expired_writers.end(db, limit))
    yield number


def _repeat_until_done(subject: Subject, fix_batch: Callable[[Transaction], int]) -> Iterator[int]:
    while count := subject.database.write(fix_batch, attempts=_ATTEMPTS):
        yield count


def _in_batches(
    subject: Subject, uuids: Iterable[str], fix_batch: Callable[[Transaction, list[str]], int]
) -> Iterator[int]:
    remaining = iter(uuids)
    while batch := [*itertools.islice(remaining, _BATCH)]:
        yield subject.database.write(lambda db: fix_batch(db, batch), attempts=_ATTEMPTS)


_LOST = sa.select(allocations.c.consumer_id).distinct().where(within(allocations.c.id), repairs.IS_LOST)

#: All fixes, in the order in which they run: inserting missing rows first may resolve other findings.
FIXES = (
    Fix("standard_rows", "Insert the missing rows.", _insert_standard_rows),
    Fix(
        "parents",
        "Turn the providers whose parent does not exist into roots, as searches already treat them.",
        _cut_orphans,
    ),
    Fix("roots", "Set the roots of these providers to the roots of their parents.", _correct_roots),
    Fix(
        "allocations_without_consumer",
        "Create the consumers, owned by [placement]incomplete_consumer_project_id and incomplete_consumer_user_id.",
        _create_consumers,
    ),
    Fix("lost_allocations", "Delete these allocations, and the consumers that hold nothing else.", _release_lost),
    Fix("idle_consumers", "Delete the rows of these consumers.", _delete_idle),
    Fix("leases", "Release these leases.", _release_leases),
    Fix("expired_writers", "End these writers.", _end_writers),
)
