"""Release of many consumers, by uuid or by conditions, in transactions of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placement import signals
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes import retry
from placement.db.writes.transaction import Transaction
from placement.objects.claims import consumer_pages, release
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.claims.holding import stored_uuids


@dataclass(slots=True)
class ReleaseResult:
    """The result of a release."""

    #: Uuids of the consumers whose resources were released.
    released: list[str] = field(default_factory=list)
    #: Uuids of named consumers that held nothing.
    missing: list[str] = field(default_factory=list)
    #: Whether repeating the request would find nothing left to release.
    complete: bool = True


def release_named(database: Database | DryRun[object], uuids: Sequence[str]) -> ReleaseResult:
    """Release the consumers with these uuids, in any spelling, until the deadline.

    The result contains each consumer once, with its uuid as stored.
    """
    deadline = retry.new_deadline()
    result = ReleaseResult()
    distinct_uuids = [*dict.fromkeys(uuids)]
    for start in range(0, len(distinct_uuids), release.BATCH):
        if retry.has_passed(deadline):
            result.complete = False
            break
        batch = distinct_uuids[start : start + release.BATCH]
        stored = database.read(lambda db: stored_uuids(db, batch))  # noqa: B023
        consumers = [uuid for uuid in dict.fromkeys(stored[text] for text in batch) if uuid not in result.released]
        released = frozenset(_write(database, lambda db: release.release(db, consumers)))  # noqa: B023
        result.released += [uuid for uuid in consumers if uuid in released]
        result.missing += [uuid for uuid in consumers if uuid not in released and uuid not in result.missing]
    return result


def release_matching(
    database: Database | DryRun[object], consumer_filter: ConsumerFilter, max_consumers: int
) -> ReleaseResult:
    """Release the consumers that match a filter, until the deadline.

    A consumer that changes after it was matched keeps its resources, since it may no longer match.
    """
    deadline = retry.new_deadline()
    result, after = ReleaseResult(), 0
    while (size := min(release.BATCH, max_consumers - len(result.released))) and not retry.has_passed(deadline):
        page = database.read(lambda db: consumer_pages.page(db, consumer_filter, size, after))  # noqa: B023
        if page.holders:
            released = _write(database, lambda db: release.release_unchanged(db, page.holders))  # noqa: B023
            result.released += released
            result.complete &= len(released) == len(page.holders)
        if page.next is None:
            return result
        after = page.next
    result.complete = False
    return result


def _write(database: Database | DryRun[object], release_batch: Callable[[Transaction], list[str]]) -> list[str]:
    def work(db: Transaction) -> list[str]:
        released = release_batch(db)
        db.on_commit(lambda: signals.claims_answered("released", len(released)))
        return released

    return database.write(work)
