"""The rows of a database, in the form that an index is made from: all of them, or those of some providers."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, cast

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from placement.index.records import Rows

#: Ids in one statement.
_MANY = 5000
#: Providers in one pack, and what no pack is longer than, in bytes.
_PACK = 256
_LONGEST_PACK = 2**23

Numbers = Sequence[tuple[Any, ...]]


def everything(db: Connection) -> Rows:
    """The rows of all providers."""
    return Rows(
        providers=_plain(db, _PROVIDERS),
        inventories=_packed(db, _INVENTORIES),
        usages=_packed(db, _USAGES),
        traits=_named(db, _packed(db, _TRAITS), _TRAIT_NAMES),
        aggregates=_named(db, _packed(db, _AGGREGATES), _AGGREGATE_NAMES),
    )


def of_providers(db: Connection, ids: Collection[int]) -> Rows:
    """The rows of those providers that are there."""
    providers = _some(db, _PROVIDERS, ids)
    # What an absent provider may have left behind is of no use to anybody.
    present = [row[0] for row in providers]
    return Rows(
        providers=providers,
        inventories=_some(db, _INVENTORIES, present),
        usages=usages(db, present),
        traits=_named(db, _some(db, _TRAITS, present), _TRAIT_NAMES),
        aggregates=_named(db, _some(db, _AGGREGATES, present), _AGGREGATE_NAMES),
    )


def usages(db: Connection, ids: Collection[int]) -> list[tuple[int, int, int]]:
    """What is used of these providers: only of classes of which something is."""
    # MySQL's sums are decimal numbers.
    return [(provider_id, class_id, int(used)) for provider_id, class_id, used in _some(db, _USAGES, ids)]


def generations(db: Connection, ids: Collection[int]) -> dict[int, int]:
    """The generations of those providers that are there, by id."""
    return dict(_some(db, _GENERATIONS, ids))


def class_names(db: Connection) -> dict[int, str]:
    """The names of all resource classes, by id."""
    return dict(_plain(db, sa.select(resource_classes.c.id, resource_classes.c.name)))


def census(db: Connection) -> tuple[int, int, int]:
    """How many providers there are, the highest id, and the sum of their generations: what changes with most writes."""
    count, highest, generation = _plain(db, _CENSUS)[0]
    return count, highest or 0, int(generation or 0)


def _plain(db: Connection, statement: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
    """The rows as the driver gives them: SQLAlchemy's own cost as much again."""
    cursor = cast(Any, db.execute(statement, parameters).cursor)
    return list(cursor.fetchall())


def _some(db: Connection, statement: sa.Select[Any], ids: Iterable[int]) -> list[tuple[Any, ...]]:
    """The rows whose first column is one of the ids."""
    first = statement.selected_columns[0]
    limited = statement.where(first.in_(_IDS))
    return [row for batch in _batches(ids) for row in _plain(db, limited, {"ids": batch})]


def _batches(ids: Iterable[int]) -> Iterator[list[int]]:
    remaining = iter(ids)
    while batch := list(itertools.islice(remaining, _MANY)):
        yield batch


def _packed(db: Connection, statement: sa.Select[Any]) -> Numbers:
    """All rows of a statement that selects only numbers.

    The driver of MySQL that is written in Python takes more time for a row than anything else here, so the server is
    asked for the rows of many providers in one text.
    """
    if db.dialect.name not in ("mysql", "mariadb"):
        return _plain(db, statement)
    db.exec_driver_sql(f"SET SESSION group_concat_max_len = {_LONGEST_PACK}")
    columns = statement.subquery().c
    texts = sa.select(sa.func.group_concat(sa.func.concat_ws(",", *columns))).group_by(columns[0].op("DIV")(_PACK))
    rows: list[tuple[Any, ...]] = []
    for (text,) in _plain(db, texts):
        numbers = iter(orjson.loads(f"[{text}]"))
        rows.extend(zip(*[numbers] * len(columns), strict=True))
    return rows


def _named(db: Connection, pairs: Numbers, names: sa.Select[Any]) -> list[tuple[int, str]]:
    """Names in place of the ids that are second in the pairs."""
    name_of = dict(_some(db, names, {named for _, named in pairs}))
    return [(provider_id, name_of[named]) for provider_id, named in pairs]


_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_HAS, _IN = resource_provider_traits.c, resource_provider_aggregates.c

_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True, literal_execute=True)
_PROVIDERS = sa.select(_P.id, _P.uuid, _P.name, _P.generation, _P.parent_provider_id, _P.root_provider_id)
_GENERATIONS = sa.select(_P.id, _P.generation)
_CENSUS = sa.select(sa.func.count(), sa.func.max(_P.id), sa.func.sum(_P.generation))
_INVENTORIES = sa.select(
    *(_I.resource_provider_id, _I.resource_class_id, _I.total, _I.reserved),
    *(_I.min_unit, _I.max_unit, _I.step_size, _I.allocation_ratio),
)
# Answered from an index alone.
_USAGES = sa.select(_A.resource_provider_id, _A.resource_class_id, sa.func.sum(_A.used).label("used")).group_by(
    _A.resource_provider_id, _A.resource_class_id
)
_TRAITS = sa.select(_HAS.resource_provider_id, _HAS.trait_id)
_AGGREGATES = sa.select(_IN.resource_provider_id, _IN.aggregate_id)
_TRAIT_NAMES = sa.select(traits.c.id, traits.c.name)
_AGGREGATE_NAMES = sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid)
