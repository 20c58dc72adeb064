"""A packed query has the rows that the same query has without packing, whatever they are."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from placement.db.engine.compiled import CompiledStatement
from placement.db.engine.packed import FEW, PackedQuery
from placement.db.schema.tables import traits

pytestmark = pytest.mark.every_database

AMONG = traits.c.name.in_(sa.bindparam("names", expanding=True))
SELECT = sa.select(traits.c.id, traits.c.name, (traits.c.id * 0.5).label("ratio")).where(AMONG)
#: Names that nothing has: with them a query has more than a few values.
ABSENT = [f"CUSTOM_ABSENT_{number}" for number in range(FEW)]
#: Names as other programs may have written them.
ODD = ['CUSTOM_"', "CUSTOM_\\", "CUSTOM_'", "CUSTOM_\n", "CUSTOM_ä", "CUSTOM_%s", "CUSTOM_A,1,1.5", "CUSTOM_,"]


@pytest.fixture
def connection(database):
    with database.engine.connect() as connection, connection.begin():
        yield connection


def inserted(connection, names):
    if names:
        connection.execute(sa.insert(traits), [{"name": name} for name in names])
    return {"names": [*names, *ABSENT]}


def rows(query, connection, among):
    return sorted((row.id, row.name, float(row.ratio)) for row in query.execute(connection, among))


@pytest.mark.parametrize("names", [[], ["CUSTOM_A"], [f"CUSTOM_{row:05}" for row in range(1000)], ODD, *zip(ODD)])
def test_the_rows_are_those_of_the_query(connection, names):
    among = inserted(connection, [*names])
    packed = rows(PackedQuery(SELECT), connection, among)
    assert packed == rows(CompiledStatement(SELECT), connection, among)
    assert [name for _, name, _ in packed] == [*names]


def test_a_null_is_read_as_one(connection):
    among = inserted(connection, ["CUSTOM_A", "CUSTOM_B"])
    null = sa.func.nullif(traits.c.name, "CUSTOM_A", type_=sa.Integer).label("null")
    (first, _) = PackedQuery(sa.select(traits.c.name, null).where(AMONG).order_by(traits.c.id)).execute(
        connection, among
    )
    assert (first.name, first.null) == ("CUSTOM_A", None)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("limit", range(4, 40, 5))
def test_a_text_that_the_server_cuts_is_not_used(connection, limit):
    among = inserted(connection, ["CUSTOM_A", "CUSTOM_B"])
    wanted = rows(PackedQuery(SELECT), connection, among)
    connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {limit}")
    assert rows(PackedQuery(SELECT), connection, among) == wanted
    connection.exec_driver_sql("SET SESSION group_concat_max_len = DEFAULT")


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_mariadb_sends_one_row_of_a_packed_query(connection):
    among = inserted(connection, [f"CUSTOM_{row:05}" for row in range(500)])
    sent = []
    sa.event.listen(connection, "after_cursor_execute", lambda *event: sent.append(event[1].rowcount))
    PackedQuery(SELECT).execute(connection, among)
    assert sent == [1]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize(("values", "number"), [(FEW, FEW), (FEW + 1, 1)])
def test_few_rows_are_sent_as_rows(connection, values, number):
    """The server takes time for each text that it makes, more than a driver for few rows."""
    names = [f"CUSTOM_{row:05}" for row in range(values)]
    inserted(connection, names)
    sent = []
    sa.event.listen(connection, "after_cursor_execute", lambda *event: sent.append(event[1].rowcount))
    PackedQuery(SELECT).execute(connection, {"names": names})
    assert sent == [number]
