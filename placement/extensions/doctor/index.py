"""The comparison of a worker's index with the database."""

from __future__ import annotations

from collections.abc import Iterator

from placement.checks.examination import NotMadeError, Subject
from placement.checks.finding import Finding, error


def index(subject: Subject) -> Iterator[Finding]:
    """Find that the index of this worker is not what the database has."""
    if subject.index is None:
        raise NotMadeError("A command has no index: GET /v1/doctor asks a worker for its own.")
    found = tuple(
        f"providers with the ids from {first} to {last - 1}"
        for first, last in subject.index.differences(subject.examined)
    )
    if found:
        yield error(
            "The index of this worker differs from the database: rows were written without the change feed, by another "
            "program or by hand. Searches do not see them.",
            found,
            "placement-manage db restored",
        )
