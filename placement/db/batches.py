"""Execution of statements whose lists of values are too long for one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.db.writes.transaction import Reading

#: Values per statement.  With a list of 1000 values or more, MariaDB executes a SELECT as a join with a temporary table
#: (``in_predicate_conversion_threshold``).  For the join it may read a whole table instead of an index.
BATCH_SIZE = 999


def rows(
    db: Reading, statement: Any, name: str, values: Iterable[Any], batch_size: int | None = None, **parameters: Any
) -> Iterator[Any]:
    """Yield the rows of a statement, which is executed once for each batch of the values.

    Args:
        name: The expanding parameter that takes the values.
        batch_size: Values per statement; None for ``BATCH_SIZE``.
        parameters: Other parameters, the same for each batch.
    """
    ordered, size = [*values], batch_size or BATCH_SIZE
    for start in range(0, len(ordered), size):
        yield from db.execute(statement, {name: ordered[start : start + size], **parameters})
