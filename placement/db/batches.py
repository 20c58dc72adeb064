"""Statements about many values: a list of any length is sent in several statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.db.writes.transaction import Reading

#: Values in one statement.
BATCH_SIZE = 5000


def rows(
    db: Reading, statement: Any, name: str, values: Iterable[Any], batch_size: int = BATCH_SIZE, **parameters: Any
) -> Iterator[Any]:
    """Yield the rows of a statement for all of the values.

    Args:
        name: Of the expanding parameter that takes them.
        batch_size: Values in one statement.
        parameters: Parameters that are the same in each statement.
    """
    ordered = [*values]
    for start in range(0, len(ordered), batch_size):
        yield from db.execute(statement, {name: ordered[start : start + batch_size], **parameters})
