"""Statements about many values: a list of any length is sent in several statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.db.writes.transaction import Reading

#: Values in one statement.
MANY = 5000


def rows(
    db: Reading, statement: Any, name: str, values: Iterable[Any], most: int = MANY, **others: Any
) -> Iterator[Any]:
    """Yield the rows of a statement for all of the values.

    Args:
        name: Of the expanding parameter that takes them.
        most: Values in one statement.
        others: Parameters that are the same in each statement.
    """
    ordered = [*values]
    for start in range(0, len(ordered), most):
        yield from db.execute(statement, {name: ordered[start : start + most], **others})
