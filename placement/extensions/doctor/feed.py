"""Checks of the feed (ADR 4): gaps in the numbers of its writers, writers that nobody has ended, and the index."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import sqlalchemy as sa

from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, counted, error, info, warning
from placement.db.feed import EXPIRED, LIFETIME
from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import provider_changes
from placement.extensions.doctor.examination import FIX


def gaps(subject: Subject) -> Iterator[Finding]:
    """Find numbers of a writer that have no row, between others that have one.

    A number is used by a commit only, and rows are deleted from the lowest number on: so there is no gap unless the
    database has lost commits that were answered, and the writer has gone on, or somebody has deleted rows.
    """
    found = tuple(
        f"writer {row.writer_id}: {row.seq + 1}" + (f" to {row.following - 1}" if row.following > row.seq + 2 else "")
        for row in subject.rows(_GAPS)
    )
    if found:
        yield warning(
            f"{counted(len(found), 'gap', 'gaps')} in the numbers of the feed's writers: the database has lost "
            "commits that clients were told of, as after a crash or a failover without durable commits, or rows were "
            "deleted by hand.",
            found,
            "placement-manage db restored; and have the server make commits durable: docs/database.rst. The gaps go as "
            "the rows get old.",
        )


def expired(subject: Subject) -> Iterator[Finding]:
    """Find writers whose lease is over, and that no process has ended: nothing has written since."""
    ids = subject.rows(EXPIRED, {"expired": since(subject)})
    if ids:
        yield info(
            counted(len(ids), "writer of the feed has", "writers of the feed have")
            + f" not been seen for {LIFETIME / 3600:.0f} hours, without being ended: the next writes end such writers.",
            tuple(f"writer {row.id}" for row in ids),
            FIX,
            fixable=True,
        )


def since(subject: Subject) -> datetime.datetime:
    """Return the time, by the database's clock, since which living writers were seen."""
    ((now,),) = subject.rows(sa.select(CLOCK))
    limit: datetime.datetime = now - datetime.timedelta(seconds=LIFETIME)
    return limit


def index(subject: Subject) -> Iterator[Finding]:
    """Find that the index of this worker is not what the database has."""
    if subject.index is None:
        raise NotMadeError("A command has no index: GET /v1/doctor asks a worker for its own.")
    found = tuple(
        f"providers with the ids from {first} to {last - 1}"
        for first, last in subject.index.differences(subject.on_rows)
    )
    if found:
        yield error(
            "The index of this worker differs from the database: rows were written without the change feed, by another "
            "program or by hand. Searches do not see them.",
            found,
            "placement-manage db restored",
        )


_NUMBERS = sa.select(provider_changes.c.writer_id, provider_changes.c.seq).distinct().subquery()
_NEXT = sa.select(
    *_NUMBERS.c,
    sa.func.lead(_NUMBERS.c.seq).over(partition_by=_NUMBERS.c.writer_id, order_by=_NUMBERS.c.seq).label("following"),
).subquery()
_GAPS = sa.select(_NEXT).where(_NEXT.c.following > _NEXT.c.seq + 1).order_by(_NEXT.c.writer_id, _NEXT.c.seq)
