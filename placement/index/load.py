"""Reading of the rows that an index is built from, for all or some providers."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.engine import bulkhead
from placement.db.schema.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from placement.index import inconsistent
from placement.index.records import Rows
from placement.index.tables import Tables

Matrix = npt.NDArray[np.float64]


def matrix(rows, columns):
    return np.asarray(rows, dtype=np.float64).reshape(-1, columns)


#: Ids per statement.  More than ``batches.BATCH_SIZE``: fewer statements are faster, and these find the ids in an index
#: with any plan.
_BATCH_SIZE = 5000
#: The number of consecutive provider ids whose rows MySQL sends as one text.
_PACK_SIZE = 256


def all_rows(db: Connection) -> Tables:
    return Tables.of(_all_rows(db))


def _all_rows(db: Connection) -> Rows:
    """Return the rows of all providers."""
    trait_pairs, aggregate_pairs = _pairs(db, _TRAITS), _pairs(db, _AGGREGATES)
    trait_names = _names(db, trait_pairs, _TRAIT_NAMES)
    return Rows(
        providers=_driver_rows(db, _PROVIDERS.all),
        inventories=_read_matrix(db, _INVENTORIES),
        usages=_read_matrix(db, _USAGES),
        traits=_with_names(trait_pairs, trait_names, "trait"),
        aggregates=_with_names(aggregate_pairs, _names(db, aggregate_pairs, _AGGREGATE_NAMES), "aggregate"),
        trait_ids={name: id_ for id_, name in trait_names.items() if name is not None},
    )


def of_providers(db: Connection, ids: Collection[int]) -> Rows:
    """Return the rows of these providers; ids of missing providers are ignored."""
    providers = _by_id(db, _PROVIDERS, ids)
    # Ignore rows that a deleted provider may have left behind.
    present = [row[0] for row in providers]
    trait_pairs, aggregate_pairs = _by_id(db, _TRAITS, present), _by_id(db, _AGGREGATES, present)
    trait_names = _names(db, trait_pairs, _TRAIT_NAMES)
    return Rows(
        providers=providers,
        inventories=_by_id(db, _INVENTORIES, present),
        usages=_as_integers(_by_id(db, _USAGES, present)),
        traits=_with_names(trait_pairs, trait_names, "trait"),
        aggregates=_with_names(aggregate_pairs, _names(db, aggregate_pairs, _AGGREGATE_NAMES), "aggregate"),
        trait_ids={name: id_ for id_, name in trait_names.items() if name is not None},
    )


def generations_and_usages(db: Connection, ids: Collection[int]) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
    """Return the generations of existing providers, by id, and their usages: provider id, class id, amount."""
    rows: list[tuple[Any, ...]] = []
    for batch in _batches(ids):
        rows += db.exec_driver_sql(_GENERATIONS_AND_USAGES.format(ids=", ".join(map(str, batch))))
        bulkhead.note_progress()
    return {row[0]: row[1] or 0 for row in rows}, _as_integers((row[0], *row[2:]) for row in rows if row[2] is not None)


def _as_integers(usages: Iterable[tuple[Any, ...]]) -> list[tuple[int, int, int]]:
    """Convert the amounts to integers, because MySQL's sums are decimals."""
    return [(provider_id, class_id, int(used)) for provider_id, class_id, used in usages]


def class_names(db: Connection) -> dict[int, str]:
    """Return the names of all resource classes, by id."""
    return dict(_driver_rows(db, sa.select(resource_classes.c.id, resource_classes.c.name)))


class Checksum(NamedTuple):
    """Counts and sums over a range of providers; most writes change them."""

    providers: int
    highest_id: int
    #: The sum of all generations.
    generations: int
    #: The sum of the usages, each multiplied by the weight of its inventory.
    usage: int


#: The number of weights.  Without weights, the sum would not show usage that moves from one inventory to another.
_WEIGHTS = 1021


def weight(provider_id: Any, class_id: Any) -> Any:
    """Return the weight of an inventory's usage in a checksum, for numbers, arrays or SQL columns."""
    return (provider_id * 31 + class_id) % _WEIGHTS + 1


def checksum(db: Connection, low: int, high: int) -> Checksum:
    """Return the checksum of the providers in the database with ``low <= id < high``."""
    ((count, highest, generations, usage),) = _driver_rows(db, _CHECKSUM, {"low": low, "high": high})
    return Checksum(count, highest or 0, int(generations or 0), int(usage or 0))


class _Query(NamedTuple):
    """A statement for all rows, and one for the rows whose first column is in a list of ids."""

    all: sa.Select[Any]
    by_id: sa.Select[Any]

    @classmethod
    def from_select(cls, statement: sa.Select[Any]) -> _Query:
        return cls(statement, statement.where(statement.selected_columns[0].in_(_IDS)))


def _driver_rows(db: Connection, statement: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return the driver's rows, since SQLAlchemy's take twice the time."""
    cursor = cast(Any, db.execute(statement, parameters).cursor)
    rows = list(cursor.fetchall())
    bulkhead.note_progress()
    return rows


def _by_id(db: Connection, query: _Query, ids: Iterable[int]) -> list[tuple[Any, ...]]:
    """Return the rows whose first column is one of the ids."""
    return [row for batch in _batches(ids) for row in _driver_rows(db, query.by_id, {"ids": batch})]


def _batches(ids: Iterable[int]) -> Iterator[list[int]]:
    remaining = iter(ids)
    while batch := list(itertools.islice(remaining, _BATCH_SIZE)):
        yield batch


def _read_matrix(db: Connection, query: _Query) -> Matrix:
    """Return all rows of a query that selects only numbers.

    PyMySQL is written in Python, and spends most of its time reading rows.  So MySQL sends the rows of many providers
    as one text, which is parsed as JSON.
    """
    if db.dialect.name not in ("mysql", "mariadb"):
        return matrix(_driver_rows(db, query.all), len(query.all.selected_columns))
    columns = query.all.subquery().c
    pack = columns[0].op("DIV")(_PACK_SIZE)
    # A comma follows every number, so a text that was truncated at GROUP_CONCAT's limit has too few commas.
    text = sa.func.aggregate_strings(sa.func.concat_ws(",", *columns, ""), "")
    packs, truncated = [np.empty(0)], []
    for number, count, numbers in _driver_rows(db, sa.select(pack, sa.func.count(), text).group_by(pack)):
        if numbers.count(",") == count * len(columns):
            packs.append(np.array(orjson.loads(f"[{numbers[:-1]}]"), dtype=np.float64))
        else:
            truncated.append(number)
    for number in truncated:
        # Read rows instead, for example of a provider with 100,000 traits.
        packs.append(matrix(_driver_rows(db, sa.select(*columns).where(pack == number)), len(columns)).ravel())
    return matrix(np.concatenate(packs), len(columns))


def _pairs(db: Connection, query: _Query) -> list[tuple[int, int]]:
    return [(provider_id, named_id) for provider_id, named_id in _read_matrix(db, query).astype(np.int64).tolist()]


def _names(db: Connection, pairs: Iterable[tuple[Any, ...]], names: _Query) -> dict[int, str | None]:
    """Return the names of the traits or aggregates in the pairs, by id."""
    return dict(_by_id(db, names, {named_id for _, named_id in pairs}))


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_PROVIDER_TRAITS, _PROVIDER_AGGREGATES = resource_provider_traits.c, resource_provider_aggregates.c

_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True, literal_execute=True)
_PROVIDERS = _Query.from_select(
    sa.select(_P.id, _P.uuid, _P.name, _P.generation, _P.parent_provider_id, _P.root_provider_id),
)
_GENERATIONS_AND_USAGES = """
SELECT p.id, p.generation, a.resource_class_id, SUM(a.used)
  FROM resource_providers p LEFT JOIN allocations a ON a.resource_provider_id = p.id
 WHERE p.id IN ({ids}) GROUP BY p.id, p.generation, a.resource_class_id"""
_IN_RANGE = _P.id.between(sa.bindparam("low"), sa.bindparam("high") - 1)
# Only the allocations that the index includes: on an existing provider with inventory in the class.
_WEIGHTED_USAGE = (
    sa.select(
        sa.func.sum(sa.cast(_A.used, sa.BigInteger) * weight(sa.cast(_P.id, sa.BigInteger), _A.resource_class_id))
    )
    .select_from(
        allocations.join(
            inventories,
            (_I.resource_provider_id == _A.resource_provider_id) & (_I.resource_class_id == _A.resource_class_id),
        ).join(resource_providers, _P.id == _A.resource_provider_id)
    )
    .where(_IN_RANGE)
    .scalar_subquery()
)
_CHECKSUM = sa.select(sa.func.count(), sa.func.max(_P.id), sa.func.sum(_P.generation), _WEIGHTED_USAGE).where(_IN_RANGE)
_INVENTORIES = _Query.from_select(
    sa.select(
        *(_I.resource_provider_id, _I.resource_class_id, _I.total, _I.reserved),
        *(_I.min_unit, _I.max_unit, _I.step_size, _I.allocation_ratio),
    )
)
# Answered from allocations_resource_provider_class_used_idx alone (a covering index).
_USAGES = _Query.from_select(
    sa.select(_A.resource_provider_id, _A.resource_class_id, sa.func.sum(_A.used).label("used")).group_by(
        _A.resource_provider_id, _A.resource_class_id
    )
)
_TRAITS = _Query.from_select(sa.select(_PROVIDER_TRAITS.resource_provider_id, _PROVIDER_TRAITS.trait_id))
_AGGREGATES = _Query.from_select(
    sa.select(_PROVIDER_AGGREGATES.resource_provider_id, _PROVIDER_AGGREGATES.aggregate_id)
)
_TRAIT_NAMES = _Query.from_select(sa.select(traits.c.id, traits.c.name))
_AGGREGATE_NAMES = _Query.from_select(sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid))


def _with_names(pairs, names, kind):
    rows = inconsistent.with_names(np.array([*pairs], dtype=np.int64).reshape(-1, 2), names, kind)
    return [(owner, names[id_]) for owner, id_ in rows.tolist()]
