"""Reading of the rows that an index is built from, for all or some providers."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
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
from placement.index.pages import Pages, driver_rows
from placement.index.records import Rows
from placement.index.tables import NULL, Integers, Tables
from placement.index.texts import Texts

Number = TypeVar("Number", np.int64, np.float64)

#: Ids per statement.  More than ``batches.BATCH_SIZE``: fewer statements are faster, and these find the ids in an index
#: with any plan.
_BATCH_SIZE = 5000


def all_rows(db: Connection) -> Tables:
    """Return the rows of all providers."""
    pages = map(_provider_arrays, _PROVIDERS.all.read(db))
    ids, uuids, names, nameless, generations, parents, roots = map(list, zip(*pages, strict=True))
    traits = _matrix(db, _TRAITS.all, np.int64)
    aggregates = _matrix(db, _AGGREGATES.all, np.int64)
    return Tables(
        ids=np.concatenate(ids),
        uuids=Texts.concatenate(uuids),
        names=Texts.concatenate(names),
        nameless=np.concatenate(nameless),
        generations=np.concatenate(generations),
        parents=np.concatenate(parents),
        roots=np.concatenate(roots),
        inventories=_matrix(db, _INVENTORIES.all, np.float64),
        usages=_matrix(db, _USAGES.all, np.float64),
        traits=traits,
        trait_names=_names(db, np.unique(traits[:, 1]).tolist(), _TRAIT_NAMES),
        aggregates=aggregates,
        aggregate_names=_names(db, np.unique(aggregates[:, 1]).tolist(), _AGGREGATE_NAMES),
    )


def of_providers(db: Connection, ids: Collection[int]) -> Rows:
    """Return the rows of these providers; ids of missing providers are ignored."""
    providers = _by_id(db, _PROVIDERS.by_id, ids)
    # Ignore rows that a deleted provider may have left behind.
    present = [row[0] for row in providers]
    trait_pairs, aggregate_pairs = _by_id(db, _TRAITS.by_id, present), _by_id(db, _AGGREGATES.by_id, present)
    trait_names = _names(db, {trait_id for _, trait_id in trait_pairs}, _TRAIT_NAMES)
    aggregate_names = _names(db, {aggregate_id for _, aggregate_id in aggregate_pairs}, _AGGREGATE_NAMES)
    return Rows(
        providers=providers,
        inventories=_by_id(db, _INVENTORIES.by_id, present),
        usages=_as_integers(_by_id(db, _USAGES.by_id, present)),
        traits=_with_names(trait_pairs, trait_names, "trait"),
        aggregates=_with_names(aggregate_pairs, aggregate_names, "aggregate"),
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


def _with_names(pairs: Iterable[tuple[Any, ...]], names: Mapping[int, str | None], kind: str) -> list[tuple[int, str]]:
    """Return pairs of provider id and name; pairs whose id has no name are left out and logged."""
    rows = inconsistent.with_names(np.array([*pairs], dtype=np.int64).reshape(-1, 2), names, kind)
    return [(owner, names[id_] or "") for owner, id_ in rows.tolist()]


def class_names(db: Connection) -> dict[int, str]:
    """Return the names of all resource classes, by id."""
    return dict(driver_rows(db, sa.select(resource_classes.c.id, resource_classes.c.name)))


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
    ((count, highest, generations, usage),) = driver_rows(db, _CHECKSUM, {"low": low, "high": high})
    return Checksum(count, highest or 0, int(generations or 0), int(usage or 0))


class _Query(NamedTuple):
    """The rows of all providers, and a statement for the rows of the providers in a list of ids."""

    all: Pages
    by_id: sa.Select[Any]

    @classmethod
    def from_select(cls, key: sa.Column[int], rows: sa.Select[Any]) -> _Query:
        """Return the query for a statement whose first column is the id of the provider."""
        return cls(Pages(key, rows), _with_ids(rows))


_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True, literal_execute=True)


def _with_ids(rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return the statement for the rows whose first column is in a list of ids."""
    return rows.where(rows.selected_columns[0].in_(_IDS))


def _by_id(db: Connection, by_id: sa.Select[Any], ids: Iterable[int]) -> list[tuple[Any, ...]]:
    """Return the rows whose first column is one of the ids."""
    return [row for batch in _batches(ids) for row in driver_rows(db, by_id, {"ids": batch})]


def _batches(ids: Iterable[int]) -> Iterator[list[int]]:
    remaining = iter(ids)
    while batch := list(itertools.islice(remaining, _BATCH_SIZE)):
        yield batch


def _matrix(db: Connection, pages: Pages, kind: type[Number]) -> npt.NDArray[Number]:
    """Return all rows of numbers."""
    values = [np.fromiter(page, kind, len(page)) for page in pages.read(db)]
    return np.concatenate(values).reshape(-1, len(pages.rows.selected_columns))


def _provider_arrays(page: list[Any]) -> tuple[Any, ...]:
    """Return the columns of a page of providers, in ascending order of the ids."""
    width = len(_PROVIDERS.all.rows.selected_columns)
    ids, uuids, names, *integers = (page[number::width] for number in range(width))
    columns = [_integers(ids), *map(_integers, integers)]
    nameless = np.array([name is None for name in names], dtype=np.bool_)
    texts = Texts.of(uuids), Texts.of(name or "" for name in names)
    if (np.diff(columns[0]) < 0).any():
        order = np.argsort(columns[0])
        columns, nameless = [column[order] for column in columns], nameless[order]
        texts = texts[0].take(order), texts[1].take(order)
    return columns[0], *texts, nameless, *columns[1:]


def _integers(values: Sequence[Any]) -> Integers:
    return np.fromiter(values, np.int64, len(values))


def _names(db: Connection, ids: Iterable[int], names: sa.Select[Any]) -> dict[int, str | None]:
    """Return the names of traits or aggregates by id."""
    return dict(_by_id(db, names, ids))


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_PROVIDER_TRAITS, _PROVIDER_AGGREGATES = resource_provider_traits.c, resource_provider_aggregates.c

_NULL = sa.literal(NULL, sa.BigInteger)
_PROVIDERS = _Query(
    Pages(
        _P.id,
        sa.select(
            *(_P.id, _P.uuid, _P.name, sa.func.coalesce(_P.generation, _NULL)),
            *(sa.func.coalesce(_P.parent_provider_id, _NULL), sa.func.coalesce(_P.root_provider_id, _NULL)),
        ),
    ),
    _with_ids(sa.select(_P.id, _P.uuid, _P.name, _P.generation, _P.parent_provider_id, _P.root_provider_id)),
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
    _I.id,
    sa.select(
        *(_I.resource_provider_id, _I.resource_class_id, _I.total, _I.reserved),
        *(_I.min_unit, _I.max_unit, _I.step_size, _I.allocation_ratio),
    ),
)
# Answered from allocations_resource_provider_class_used_idx alone (a covering index).
_USAGES = _Query.from_select(
    _A.resource_provider_id,
    sa.select(_A.resource_provider_id, _A.resource_class_id, sa.func.sum(_A.used).label("used")).group_by(
        _A.resource_provider_id, _A.resource_class_id
    ),
)
_TRAITS = _Query.from_select(
    _PROVIDER_TRAITS.resource_provider_id, sa.select(_PROVIDER_TRAITS.resource_provider_id, _PROVIDER_TRAITS.trait_id)
)
_AGGREGATES = _Query.from_select(
    _PROVIDER_AGGREGATES.resource_provider_id,
    sa.select(_PROVIDER_AGGREGATES.resource_provider_id, _PROVIDER_AGGREGATES.aggregate_id),
)
_TRAIT_NAMES = _with_ids(sa.select(traits.c.id, traits.c.name))
_AGGREGATE_NAMES = _with_ids(sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid))
