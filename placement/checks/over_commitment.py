"""The check for over-committed inventories."""

from __future__ import annotations

from collections.abc import Iterator

from placement.checks.check import Subject
from placement.checks.finding import Finding, count_phrase, warning
from placement.objects.over_commitment import OverCommitment


def over_commitment(subject: Subject) -> Iterator[Finding]:
    """Find inventories whose usage exceeds their capacity."""
    over_committed = OverCommitment.all(subject.database, subject.on_rows)
    if over_committed:
        yield warning(
            f"Usage exceeds capacity in {count_phrase(len(over_committed), 'inventory', 'inventories')}: inventory was "
            "reduced after the claims, or claims were granted concurrently. No further claim is granted there until "
            "enough is released.",
            tuple(map(str, over_committed)),
            "placement-ask overview --over-committed shows them; placement-ask consumers --provider <provider> shows "
            "who holds them.",
        )
