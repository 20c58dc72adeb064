"""Statements with lists of values of any length, executed in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.db.writes.transaction import Reading

#: Values per statement.
BATCH_SIZE = 5000


def rows(
    db: Reading, statement: Any, name: str, values: Iterable[Any], batch_size: int = BATCH_SIZE, **parameters: Any
) -> Iterator[Any]:
    """Yield the rows of a statement that is executed for each batch of the values.

    Args:
        name: The expanding parameter that takes the values.
        batch_size: Values per statement.
        parameters: Other parameters, the same for each batch.
    """
    ordered = [*values]
    for start in range(0, len(ordered), batch_size):
        yield from db.execute(statement, {name: ordered[start : start + batch_size], **parameters})
