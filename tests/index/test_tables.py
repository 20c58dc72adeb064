"""All rows of a database are read as arrays that equal its tables, whatever they contain and however they are paged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sqlalchemy as sa

from placement.db.schema.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from placement.index import load, pages
from placement.index.tables import NULL
from placement.index.texts import Texts
from placement.objects.inventory import AMOUNTS
from tests.db import sql_hooks
from tests.made import opened

#: Characters that are special in JSON, SQL or UTF-8; PostgreSQL stores no NUL.
CHARACTERS = [chr(code) for code in range(1, 0x100)] + [
    *("\u2028", "\ufeff", "\ufffd", "\U0001f427", "e\u0301"),
    *('","', "\\u0041", "\\\\", '\\"', "null", ",,", "\r\n", "%s", ":low", "'--"),
]
#: Ids with gaps, in the order of insertion, which may be the order in which a database returns rows.
IDS = [2**30, 70_000, 70_001, 5, 6, 7, 1, 3, 10**6]
#: A provider without a row, as others leave behind.
ABSENT = 1000


def fill(database):
    """Insert rows of every kind, some of them inconsistent."""
    with database.engine.begin() as db:
        db.execute(
            sa.insert(resource_providers),
            [
                {
                    "id": id_,
                    "uuid": f"\"u\\'{number},",
                    "name": f"n{number} " + "".join(CHARACTERS[number :: len(IDS)]),
                    "generation": number,
                    "parent_provider_id": None,
                    "root_provider_id": id_,
                }
                for number, id_ in enumerate(IDS)
            ],
        )
        for id_, values in [
            (IDS[0], {"name": None, "generation": None, "root_provider_id": None}),
            (IDS[1], {"name": "", "parent_provider_id": IDS[0], "root_provider_id": None}),
            (IDS[2], {"name": None, "generation": 2**31 - 1, "parent_provider_id": IDS[1]}),
        ]:
            db.execute(sa.update(resource_providers).where(resource_providers.c.id == id_).values(values))
        trait_ids = db.execute(sa.select(traits.c.id).order_by(traits.c.id).limit(3)).scalars().all()
        db.execute(sa.insert(placement_aggregates), [{"id": n, "uuid": f"aggregate {n}"} for n in (1, 2, 3)])
        for number, id_ in enumerate([*IDS, ABSENT]):
            amounts = dict(zip(AMOUNTS, (2**31 - 1, number, 1, 2**31 - 1, 3, 1 / (number + 3)), strict=True))
            owner = {"resource_provider_id": id_}
            claim = owner | {"resource_class_id": 1, "used": 2**31 - 1}
            db.execute(sa.insert(inventories), [owner | amounts | {"resource_class_id": n} for n in range(number + 1)])
            db.execute(sa.insert(allocations), [claim | {"consumer_id": f"c{n}"} for n in range(number + 1)])
            if id_ != ABSENT:  # a foreign key
                db.execute(sa.insert(resource_provider_traits), [owner | {"trait_id": trait} for trait in trait_ids])
            # Aggregate 4 does not exist.
            aggregates = [owner | {"aggregate_id": aggregate} for aggregate in (2, 4)]
            db.execute(sa.insert(resource_provider_aggregates), aggregates)


def read(database):
    return database.snapshot(load.all_rows)


def texts(array):
    """Return an array of texts as a list."""
    data, offsets = array.data.tobytes(), array.offsets.tolist()
    assert offsets[0] == 0
    assert offsets[-1] == len(data)
    return [data[start:end].decode() for start, end in itertools.pairwise(offsets)]


def as_lists(tables):
    """Return the rows of each table as tuples, in ascending order."""

    def numbers(array):
        return [None if number == NULL else number for number in array.tolist()]

    names = [None if is_null else name for is_null, name in zip(tables.nameless, texts(tables.names), strict=True)]
    assert all(name is not None or text == "" for name, text in zip(names, texts(tables.names), strict=True))
    columns = (numbers(column) for column in (tables.generations, tables.parents, tables.roots))
    return {
        # In the order of the arrays.
        "providers": [*zip(tables.ids.tolist(), texts(tables.uuids), names, *columns, strict=True)],
        "inventories": sorted(map(tuple, tables.inventories.tolist())),
        "usages": sorted(map(tuple, tables.usages.tolist())),
        "traits": sorted(map(tuple, tables.traits.tolist())),
        "trait names": dict(tables.trait_names),
        "aggregates": sorted(map(tuple, tables.aggregates.tolist())),
        "aggregate names": dict(tables.aggregate_names),
    }


def expected(database):
    """Return the same as ``as_lists``, read by plain statements."""

    def rows(table, *names):
        columns = [table.c[name] for name in names]
        return database.read(lambda db: [*map(tuple, db.execute(sa.select(*columns).order_by(*columns[:2])))])

    used = {}
    for provider, class_id, amount in rows(allocations, "resource_provider_id", "resource_class_id", "used"):
        used[provider, class_id] = used.get((provider, class_id), 0) + amount
    owned_traits = rows(resource_provider_traits, "resource_provider_id", "trait_id")
    trait_ids = {trait for _, trait in owned_traits}
    return {
        "providers": rows(
            resource_providers, "id", "uuid", "name", "generation", "parent_provider_id", "root_provider_id"
        ),
        "inventories": rows(inventories, "resource_provider_id", "resource_class_id", *AMOUNTS),
        "usages": [(*key, amount) for key, amount in sorted(used.items())],
        "traits": owned_traits,
        "trait names": {id_: name for id_, name in rows(traits, "id", "name") if id_ in trait_ids},
        "aggregates": rows(resource_provider_aggregates, "resource_provider_id", "aggregate_id"),
        "aggregate names": {2: "aggregate 2"},
    }


@pytest.mark.every_database
@pytest.mark.parametrize("size", [1, 2, 7, pages.PAGE_SIZE])
def test_tables_equal_the_rows_of_the_database(database, monkeypatch, size):
    """In pages smaller than the rows of one provider, and in one page."""
    fill(database)
    monkeypatch.setattr(pages, "PAGE_SIZE", size)
    assert as_lists(read(database)) == expected(database)


@pytest.mark.every_database
def test_each_page_is_read_once(database):
    """A text that is not parsed would be read again as rows: slowly, but without an error."""
    fill(database)
    written = []
    with sql_hooks.statements(sa.Engine, written.append):
        read(database)
    # Of each table, the end of the page and the page; and the names of traits and of aggregates.
    assert sum(statement.startswith("SELECT") for statement in written) == 5 * 2 + 2, written


def test_an_empty_database_has_empty_tables(database):
    tables = read(database)
    assert as_lists(tables) == expected(database) | {"aggregate names": {}}
    assert tables.inventories.shape == (0, 8)
    assert tables.usages.shape == (0, 3)
    assert tables.traits.shape == tables.aggregates.shape == (0, 2)
    for array in (tables.ids, tables.generations, tables.parents, tables.roots, tables.traits, tables.aggregates):
        assert array.dtype == np.int64
    for texts_of in (tables.uuids, tables.names):
        assert texts_of.offsets.tolist() == [0]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_texts_truncated_by_the_server_lose_nothing(database):
    """A text may be truncated anywhere: inside a number or a name, at a comma, or only by its last comma."""
    fill(database)
    rows = expected(database)
    associations = sum(len(f"{provider},{id_},") for provider, id_ in rows["traits"])
    with opened(database.url) as another:

        def read_truncated(db, max_len):
            db.exec_driver_sql(f"SET SESSION group_concat_max_len = {max_len}")
            return load.all_rows(db)

        for max_len in (*range(4, associations + 2), 500, 1000, 1001, 1002, 1003):
            tables = another.snapshot(lambda db, max_len=max_len: read_truncated(db, max_len))
            assert as_lists(tables) == rows, max_len


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_providers_are_in_the_order_of_their_ids_with_any_plan(database):
    fill(database)

    def read_without_an_index(db):
        db.exec_driver_sql("SET LOCAL enable_indexscan = off")
        db.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        return load.all_rows(db)

    assert as_lists(database.snapshot(read_without_an_index)) == expected(database)


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["postgresql", "sqlite"], indirect=True)
def test_numbers_that_json_lacks_are_read(database):
    """Other implementations can store them, and MySQL cannot."""
    ratios = [np.inf, -np.inf]
    if database.engine.dialect.name == "postgresql":
        ratios.append(np.nan)  # NULL in SQLite
    fill(database)
    changed = dict(zip(IDS, ratios, strict=False))
    with database.engine.begin() as db:
        for id_, ratio in changed.items():
            of_provider = inventories.c.resource_provider_id == id_
            db.execute(sa.update(inventories).where(of_provider).values(allocation_ratio=ratio))
    found = {int(row[0]): float(row[7]) for row in read(database).inventories}
    assert found.keys() == {*IDS, ABSENT}
    assert str([found[id_] for id_ in changed]) == str(ratios)


def test_texts_are_concatenated():
    parts = [Texts.of(["a", ""]), Texts.of([]), Texts.of(["ü\0", "b"])]
    assert texts(Texts.concatenate(parts)) == ["a", "", "ü\0", "b"]
