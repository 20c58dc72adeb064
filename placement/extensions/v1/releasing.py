"""Releases of many consumers: by name, or by conditions, in transactions of bounded size."""

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
class Released:
    """What became of a release."""

    #: The uuids of the consumers that held something, and hold nothing now.
    released: list[str] = field(default_factory=list)
    #: The uuids of consumers that were named, and held nothing.
    missing: list[str] = field(default_factory=list)
    #: Whether nothing is left to be done by the same request.
    complete: bool = True


def release_named(database: Database | DryRun[object], uuids: Sequence[str]) -> Released:
    """Release the consumers of these uuids, in any spelling; what was not done before the deadline is left.

    The result has each consumer once, in the form that is stored.
    """
    deadline = retry.new_deadline()
    done = Released()
    named = [*dict.fromkeys(uuids)]
    for start in range(0, len(named), release.BATCH):
        if retry.has_passed(deadline):
            done.complete = False
            break
        batch = named[start : start + release.BATCH]
        stored = database.read(lambda db: stored_uuids(db, batch))  # noqa: B023
        shown = [uuid for uuid in dict.fromkeys(stored[text] for text in batch) if uuid not in done.released]
        ended = frozenset(_write(database, lambda db: release.release(db, shown)))  # noqa: B023
        done.released += [uuid for uuid in shown if uuid in ended]
        done.missing += [uuid for uuid in shown if uuid not in ended and uuid not in done.missing]
    return done


def release_matching(database: Database | DryRun[object], wanted: ConsumerFilter, most: int) -> Released:
    """Release the consumers that meet every condition.

    A consumer that was changed after its conditions were judged keeps what it holds: it may meet them no more.

    Args:
        database: Takes the writes.
        wanted: The conditions.
        most: The most consumers to release.
    """
    deadline = retry.new_deadline()
    done, after = Released(), 0
    while (size := min(release.BATCH, most - len(done.released))) and not retry.has_passed(deadline):
        page = database.read(lambda db: consumer_pages.page(db, wanted, size, after))  # noqa: B023
        if page.holders:
            ended = _write(database, lambda db: release.release_unchanged(db, page.holders))  # noqa: B023
            done.released += ended
            done.complete &= len(ended) == len(page.holders)
        if page.next is None:
            return done
        after = page.next
    done.complete = False
    return done


def _write(database: Database | DryRun[object], end: Callable[[Transaction], list[str]]) -> list[str]:
    def work(db: Transaction) -> list[str]:
        released = end(db)
        db.on_commit(lambda: signals.claims_answered("released", len(released)))
        return released

    return database.write(work)
