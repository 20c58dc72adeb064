"""Checks of the change feed (ADR 4): gaps in its numbers, expired writers, and the index that follows it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, count_phrase, error, info, warning
from placement.db.feed import EXPIRED, LIFETIME
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import provider_changes
from placement.extensions.doctor.examination import FIX
from placement.index import load, store
from placement.index.array_file import UnusableFileError
from placement.index.build import build
from placement.index.comparison import differences
from placement.index.position import Position
from placement.index.refresh import FollowError, Indexed, follow


def gaps(subject: Subject) -> Iterator[Finding]:
    """Find gaps in the numbers of a feed writer.

    Each commit takes the next number, and rows are deleted in the order of their numbers.  So a gap means that the
    database lost acknowledged commits while their writer continued, or that rows were deleted by hand.
    """
    places = tuple(
        f"writer {row.writer_id}: {row.seq + 1}" + (f" to {row.following - 1}" if row.following > row.seq + 2 else "")
        for row in subject.rows(_GAPS)
    )
    if places:
        yield warning(
            f"{count_phrase(len(places), 'gap', 'gaps')} in the numbers of the feed's writers: the database lost "
            "commits that it had acknowledged, as after a crash or a failover without durable commits, or rows were "
            "deleted by hand.",
            places,
            "placement-manage db restored; then make commits durable on the server, see docs/database.rst. The gaps "
            "disappear as old rows are deleted.",
        )


def expired_writers(subject: Subject) -> Iterator[Finding]:
    """Find feed writers that have expired but have not been ended, because nothing has been written since."""
    ids = subject.rows(EXPIRED, {"cutoff": expiry_limit(subject)})
    if ids:
        yield info(
            count_phrase(len(ids), "feed writer has", "feed writers have")
            + f" not been active for {LIFETIME / 3600:.0f} hours and will be ended by the next writes.",
            tuple(f"writer {row.id}" for row in ids),
            FIX,
            fixable=True,
        )


def expiry_limit(subject: Subject) -> datetime.datetime:
    """Return the time, by the database's clock, before which an expired writer was last active."""
    ((now,),) = subject.rows(sa.select(CLOCK))
    limit: datetime.datetime = now - datetime.timedelta(seconds=LIFETIME)
    return limit


def index(subject: Subject) -> Iterator[Finding]:
    """Find differences between the database and the index of the worker; for a command, the index file of this host.

    The index must also be shared by the workers of the host.
    """
    if subject.index is None:
        yield from index_file(subject)
        return
    if problem := subject.index.problem:
        yield warning(f"{problem} {_UNSHARED}", (), _USABLE_DIRECTORY)
    places = tuple(
        f"providers with ids from {first} to {last - 1}" for first, last in subject.index.differences(subject.on_rows)
    )
    if places:
        yield error(f"The index of this worker process {_DIFFERS}", places, "placement-manage db restored")


def index_file(subject: Subject) -> Iterator[Finding]:
    """Find differences between the index file, with all changes in the feed, and the database.

    Both are read completely, in one transaction.
    """
    instance = subject.database.read(Position.now).instance
    path = subject.store.path(instance)
    if path is None:
        raise NotMadeError("The database has no identity, and so no index file.")
    try:
        store.check_directory(path.parent, None)
        stored = store.read(path, instance)
    except FileNotFoundError:
        raise NotMadeError(f"There is no index file of this database in {path.parent}.") from None
    except store.UnusableDirectoryError as reason:
        yield warning(
            f"The directory {path.parent} is not used for the index: {reason}. {_UNSHARED}", (), _USABLE_DIRECTORY
        )
        return
    except OSError as reason:
        raise NotMadeError(f"The index file {path} cannot be read: {reason.strerror}.") from None
    except UnusableFileError as reason:
        yield warning(
            f"The index file is not used: {reason}. The next worker that starts reads the database and replaces it.",
            (str(path),),
            f"rm {path}",
        )
        return
    try:
        places = subject.database.snapshot(lambda db: _differences(db, stored))
    except FollowError as reason:
        yield info(
            f"The index file cannot be brought up to date: {reason}. The next worker that starts replaces it.",
            (str(path),),
        )
        return
    subject.on_rows(len(stored.snapshot))
    if places:
        yield error(f"The index file {path} {_DIFFERS}", places, "placement-manage db restored")


def _differences(db: Connection, stored: Indexed) -> tuple[str, ...]:
    followed = follow(db, stored).snapshot
    different = differences(followed, build(load.all_rows(db), load.class_names(db)))
    return tuple(f"{place}: {', '.join(fields)}" for place, fields in different.items())


_UNSHARED = "Each worker keeps the whole index in its own memory."
_USABLE_DIRECTORY = (
    "Set [placement]index_directory to a directory that belongs to the user of the service, is not writable by its "
    "group or by other users, and has room for the files: docs/deployment.rst."
)
_DIFFERS = (
    "differs from the database: rows were written without the change feed, by another process or by hand. Searches do "
    "not see them."
)
_NUMBERS = sa.select(provider_changes.c.writer_id, provider_changes.c.seq).distinct().subquery()
_NEXT = sa.select(
    *_NUMBERS.c,
    sa.func.lead(_NUMBERS.c.seq).over(partition_by=_NUMBERS.c.writer_id, order_by=_NUMBERS.c.seq).label("following"),
).subquery()
_GAPS = sa.select(_NEXT).where(_NEXT.c.following > _NEXT.c.seq + 1).order_by(_NEXT.c.writer_id, _NEXT.c.seq)
