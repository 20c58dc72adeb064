"""Compiled statements do what SQLAlchemy does with the same statement: rows, counts, errors, lost connections."""

import contextlib
import datetime

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from placement import errors
from placement.db import driver_errors
from placement.db.compiled import CompiledInsert, CompiledStatement
from placement.db.driver_errors import ErrorClass
from placement.db.tables import claims, consumers, inventories, traits
from tests.db import faults

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
INSERT = CompiledInsert(traits, "created_at", "name")
AMONG = traits.c.name.in_(sa.bindparam("names", expanding=True))
SELECT = sa.select(traits.c.name, traits.c.created_at).where(AMONG).order_by(traits.c.name)
UPDATE = sa.update(traits).where(AMONG).values(updated_at=sa.bindparam("now"))


@pytest.fixture(params=["by the driver", "observed"])
def connection(request, database):
    """A connection in a transaction, with a listener or without."""
    with contextlib.ExitStack() as stack:
        if request.param == "observed":
            sa.event.listen(database.engine, "before_cursor_execute", lambda *_: None)
        connection = stack.enter_context(database.engine.connect())
        connection.begin()
        yield connection


def rows(*names):
    return [{"created_at": NOW, "name": name} for name in names]


@pytest.mark.parametrize("number", [1, 3, 17, 500, 1001])
def test_any_number_of_rows_is_inserted_and_found(connection, number):
    names = [f"CUSTOM_{row:05}_%_:x" for row in range(number)]
    INSERT.execute(connection, rows(*names))
    found = CompiledStatement(SELECT).execute(connection, {"names": names})
    assert [(row.name, row.created_at) for row in found] == [(name, NOW) for name in names]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_equal_values_of_a_column_are_one_parameter_of_many_rows(connection):
    """The driver converts each parameter.  Equal values of different columns are several: they may have other types."""
    sent = []
    sa.event.listen(connection, "before_cursor_execute", lambda *event: sent.append(event[3]))
    insert = CompiledInsert(traits, "created_at", "updated_at", "name")
    insert.execute(connection, [{**row, "updated_at": NOW} for row in rows(*(f"CUSTOM_{row}" for row in range(100)))])
    (values,) = sent
    assert sorted(map(str, values.values())) == sorted([str(NOW)] * 2 + [f"CUSTOM_{row}" for row in range(100)])


def test_a_statement_is_executed_with_other_numbers_of_values(connection):
    """The text of the first number is not that of the others."""
    select = CompiledStatement(SELECT)
    INSERT.execute(connection, rows("CUSTOM_A", "CUSTOM_B"))
    wanted = [["CUSTOM_A"], ["CUSTOM_A", "CUSTOM_B"], ["CUSTOM_B"], [], ["CUSTOM_A", *map(str, range(200))]]
    for names in wanted:
        found = select.execute(connection, {"names": names})
        assert [row.name for row in found] == [name for name in names if name.startswith("CUSTOM")]


def test_a_change_counts_the_rows_that_it_matches(connection):
    """Not those that become different: MySQL counts these unless it is told otherwise."""
    update = CompiledStatement(UPDATE)
    INSERT.execute(connection, rows("CUSTOM_A", "CUSTOM_B"))
    for _ in range(2):
        assert update.execute(connection, {"names": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"], "now": NOW}).rowcount == 2


def test_values_are_converted_as_the_types_of_the_columns_say(connection):
    """Dates are texts in SQLite; a ratio is finite."""
    largest = CompiledStatement(sa.select(inventories.c.allocation_ratio, inventories.c.created_at))
    columns = ("total", "reserved", "min_unit", "max_unit", "step_size")
    ids = {"resource_provider_id": 1, "resource_class_id": 0}
    insert = CompiledInsert(inventories, "created_at", *ids, *columns, "allocation_ratio")
    insert.execute(connection, [{**ids, "created_at": NOW, **dict.fromkeys(columns, 1), "allocation_ratio": 16.0}])
    if connection.dialect.name != "mysql":
        connection.exec_driver_sql("UPDATE inventories SET allocation_ratio = '1e308'")
        [row] = largest.execute(connection, {})
        assert row.allocation_ratio < 1e39
    else:
        [row] = largest.execute(connection, {})
        assert row.allocation_ratio == 16
    assert row.created_at == NOW


def test_values_are_stored_as_sqlalchemy_stores_them(connection):
    """SQLite's driver writes dates in another form; a list in a JSON column is one value, whatever its length."""
    INSERT.execute(connection, rows("CUSTOM_A"))
    connection.execute(sa.insert(traits), {"name": "CUSTOM_B", "created_at": NOW})
    stored = connection.exec_driver_sql("SELECT DISTINCT created_at FROM traits WHERE name LIKE 'CUSTOM%%'").all()
    assert len(stored) == 1
    owner = {"project_id": 1, "user_id": 1, "generation": 1}
    connection.execute(sa.insert(consumers), [{"id": number, "uuid": str(number), **owner} for number in (1, 2)])
    values = {name: sa.bindparam(name) for name in ("consumer_id", "generation", "mappings")}
    insert = CompiledStatement(sa.insert(claims).values(values).inline())
    for number in (1, 2):
        insert.execute(connection, {"consumer_id": number, "generation": 1, "mappings": [{"": ["x"]}] * number})
    found = CompiledStatement(sa.select(claims.c.mappings).order_by(claims.c.consumer_id)).execute(connection, {})
    assert [row.mappings for row in found] == [[{"": ["x"]}], [{"": ["x"]}] * 2]


def test_a_default_that_nobody_would_compute_is_refused(connection):
    with pytest.raises(ValueError, match="default"):
        CompiledStatement(sa.update(traits).values(name="x")).execute(connection, {})


def test_errors_are_those_of_sqlalchemy(connection):
    INSERT.execute(connection, rows("CUSTOM_A"))
    with pytest.raises(exc.IntegrityError) as caught:
        INSERT.execute(connection, rows("CUSTOM_A"))
    assert driver_errors.classify(caught.value) is ErrorClass.COLLISION
    assert not caught.value.connection_invalidated
    assert caught.value.statement.startswith("INSERT INTO traits")
    connection.rollback()
    with pytest.raises(exc.ProgrammingError if connection.dialect.name != "sqlite" else exc.OperationalError):
        CompiledStatement(sa.select(sa.column("x")).select_from(sa.table("nowhere"))).execute(connection, {})


@pytest.mark.parametrize("loss", faults.LOSSES)
def test_a_lost_connection_is_not_used_again(connection, loss):
    select = CompiledStatement(SELECT)
    assert not list(select.execute(connection, {"names": ["CUSTOM_A"]}))
    loss(connection.connection)
    sqlite = connection.dialect.name == "sqlite"
    with pytest.raises(exc.DBAPIError) as caught:
        select.execute(connection, {"names": ["CUSTOM_A"]})
    assert driver_errors.classify(caught.value) is ErrorClass.LOST
    assert caught.value.connection_invalidated == connection.invalidated
    assert connection.invalidated or sqlite


def test_a_connection_that_was_interrupted_is_not_used_again(connection, monkeypatch):
    """The answer would be taken for that of the next statement."""

    class Interrupted(BaseException):
        pass

    def interrupt(*_):
        raise Interrupted

    proxied = connection.connection
    cursor = proxied.cursor()

    class Cursor:
        def __getattr__(self, name):
            return interrupt if name == "execute" else getattr(cursor, name)

    monkeypatch.setattr(type(proxied), "cursor", lambda *_, **__: Cursor())
    with pytest.raises(Interrupted):
        CompiledStatement(SELECT).execute(connection, {"names": ["CUSTOM_A"]})
    assert connection.invalidated


def test_a_write_survives_one_lost_connection(database):
    """The statements of a claim are executed by the driver; the attempt is run again as after any other error."""
    attempts = []

    def work(db):
        attempts.append(db.attempt)
        if len(attempts) == 1:
            faults.kill(db._connection.connection)
        db.execute(INSERT, rows("CUSTOM_A"))

    database.write(work)
    assert len(attempts) == 2
    assert database.read(
        lambda db: [row.name for row in db.execute(CompiledStatement(SELECT), {"names": ["CUSTOM_A"]})]
    )


def test_a_duplicate_is_a_collision(database):
    database.write(lambda db: db.execute(INSERT, rows("CUSTOM_A")))
    with pytest.raises(errors.TooManyConflicts):
        database.write(lambda db: db.execute(INSERT, rows("CUSTOM_A")), attempts=2)
