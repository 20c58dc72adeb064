"""The check of claims with an end."""

from __future__ import annotations

from collections.abc import Iterator

from placement.checks.examination import Subject
from placement.checks.finding import Finding, warning
from placement.objects.claims import leases

#: Minutes after which a lease counts as overdue: every search and a request now and then gives back what is due.
OVERDUE = 5


def overdue(subject: Subject) -> Iterator[Finding]:
    """Find leases whose time has been over for minutes, and that are not given back."""
    found = subject.database.read(lambda db: leases.overdue(db, 60 * OVERDUE))
    if found:
        yield warning(
            f"{len(found)} leases have been over for more than {OVERDUE} minutes, and what they hold is not given "
            "back: no request came, the database takes no writes, or their consumers are locked.",
            tuple(f"consumer {uuid}: since {ended:%Y-%m-%dT%H:%M:%SZ}" for uuid, ended in found),
            "placement-manage leases sweep",
            fixable=True,
        )
