"""Samples of the usage: what all providers together have of each class, and what is used of it, every ten minutes.

They are for pictures of the past (docs/adr/0042).  A sample bears the beginning of its interval, by the clock of the
database, so that each interval has one, whichever process takes it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from placement.db.schema.clock import CLOCK
from placement.db.schema.tables import LARGEST_RATIO, allocations, inventories, resource_classes
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.v1.history.tables import usage_samples

#: The time between two samples.
INTERVAL = datetime.timedelta(minutes=10)
#: The greatest sum that is kept; absurd ratios give more.
_LARGEST = 2**62


def due(db: Reading) -> datetime.datetime | None:
    """Return the beginning of the present interval (naive, UTC); None if it has its sample."""
    now: datetime.datetime = db.execute(sa.select(CLOCK)).scalar_one()
    at = beginning(now)
    return None if db.execute(_HAS_SAMPLE, {"at": at}).first() else at


def beginning(moment: datetime.datetime) -> datetime.datetime:
    """Return the beginning of the interval of a moment (naive, UTC)."""
    return moment - (moment - datetime.datetime.min) % INTERVAL


def read(db: Reading, at: datetime.datetime) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a sample of the present usage; a sum over all inventories and all allocations."""
    return [dict(row) for row in db.execute(_SAMPLE, {"at": at}).mappings()]


def insert(db: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert a sample, unless its interval has one.

    Two processes that insert it at once collide: one of them is run again, and finds the other's.
    """
    if rows and not db.execute(_HAS_SAMPLE, {"at": rows[0]["at"]}).first():
        db.execute(_INSERT, rows)


def prune(db: Transaction, retention: datetime.timedelta) -> None:
    """Remove the samples that are older than a time."""
    before = db.execute(sa.select(CLOCK)).scalar_one() - retention
    db.execute(_DELETE, {"before": before})


# --- statements ------------------------------------------------------------------------------------------------------


class _WholeCapacity(FunctionElement[float]):
    """The capacity of an inventory in whole units, of its total less what is reserved, and its ratio.

    Each database gives what the index computes (``placement.objects.capacity``).
    """

    name = "whole_capacity"
    type = sa.Float()
    inherit_cache = True


@compiles(_WholeCapacity, "mysql", "mariadb")
def _on_mysql(element: Any, compiler: Any, **options: Any) -> str:
    # The ratio of the decimal number that clients have written and read: the column is single precision.
    amount, ratio = (compiler.process(each, **options) for each in element.clauses)
    return f"FLOOR(({amount}) * (0e0 + CAST({ratio} AS CHAR)))"


@compiles(_WholeCapacity, "postgresql")
def _on_postgresql(element: Any, compiler: Any, **options: Any) -> str:
    amount, ratio = (compiler.process(each, **options) for each in element.clauses)
    finite = f"GREATEST(LEAST(COALESCE(NULLIF({ratio}, 'NaN'), 0), {LARGEST_RATIO}), -{LARGEST_RATIO})"
    return f"FLOOR(({amount})::float8 * {finite})"


@compiles(_WholeCapacity, "sqlite")
def _on_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    # SQLite may have been built without FLOOR.  Beyond the range of integers there are no fractions.
    amount, ratio = (compiler.process(each, **options) for each in element.clauses)
    capacity = f"(({amount}) * 1.0 * MAX(MIN({ratio}, {LARGEST_RATIO}), -{LARGEST_RATIO}))"
    whole = f"CAST({capacity} AS INTEGER)"
    return f"CASE WHEN ABS({capacity}) < {_LARGEST} THEN {whole} - ({capacity} < {whole}) ELSE {capacity} END"


_I, _A = inventories.c, allocations.c
_HAS_SAMPLE = sa.select(usage_samples.c.at).where(usage_samples.c.at == sa.bindparam("at")).limit(1)
_CAPACITY = sa.func.sum(_WholeCapacity(_I.total - _I.reserved, _I.allocation_ratio) * sa.literal_column("1.0"))
_CAPACITIES = (
    sa.select(
        _I.resource_class_id,
        sa.case(
            (_CAPACITY < 0, sa.literal_column("0")),
            (_CAPACITY < _LARGEST, sa.cast(_CAPACITY, sa.BigInteger)),
            else_=sa.literal_column(str(_LARGEST)),
        ).label("capacity"),
    )
    .group_by(_I.resource_class_id)
    .subquery()
)
_USED = sa.select(_A.resource_class_id, sa.func.sum(_A.used).label("used")).group_by(_A.resource_class_id).subquery()
_SAMPLE = (
    sa.select(
        sa.bindparam("at", type_=usage_samples.c.at.type).label("at"),
        resource_classes.c.name.label("resource_class"),
        sa.func.coalesce(_CAPACITIES.c.capacity, 0).label("capacity"),
        sa.func.coalesce(_USED.c.used, 0).label("used"),
    )
    .select_from(resource_classes)
    .outerjoin(_CAPACITIES, _CAPACITIES.c.resource_class_id == resource_classes.c.id)
    .outerjoin(_USED, _USED.c.resource_class_id == resource_classes.c.id)
    .where(sa.or_(_CAPACITIES.c.resource_class_id.is_not(None), _USED.c.resource_class_id.is_not(None)))
)
_INSERT = sa.insert(usage_samples)
_DELETE = sa.delete(usage_samples).where(usage_samples.c.at < sa.bindparam("before"))
