"""Compiled statements behave like SQLAlchemy with the same statement: rows, counts, errors, lost connections."""

import datetime

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from placement import errors
from placement.db.engine import driver_errors
from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.engine.driver_errors import ErrorClass
from placement.db.schema.tables import claims, consumers, inventories, resource_classes, traits
from tests.db import faults

pytestmark = pytest.mark.every_database

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
INSERT = CompiledInsert(traits, "created_at", "name")
HAS_NAME = traits.c.name.in_(sa.bindparam("names", expanding=True))
SELECT = sa.select(traits.c.name, traits.c.created_at).where(HAS_NAME).order_by(traits.c.name)
UPDATE = sa.update(traits).where(HAS_NAME).values(updated_at=sa.bindparam("now"))


@pytest.fixture
def connection(database):
    """Return a connection in a transaction."""
    with database.engine.connect() as connection:
        connection.begin()
        yield connection


def rows(*names):
    return [{"created_at": NOW, "name": name} for name in names]


@pytest.mark.parametrize("number", [1, 3, 17, 500, 1001])
def test_any_number_of_rows_is_inserted_and_read(connection, number):
    names = [f"CUSTOM_{row:05}_%_:x" for row in range(number)]
    INSERT.execute(connection, rows(*names))
    rows_read = CompiledStatement(SELECT).execute(connection, {"names": names})
    assert [(row.name, row.created_at) for row in rows_read] == [(name, NOW) for name in names]


@pytest.mark.parametrize("number", [1, 2, 1001])
def test_an_insertion_returns_the_ids_of_its_rows(connection, number):
    check_ids(connection, number)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_ids_are_selected_on_a_server_without_returning(connection, number, monkeypatch):
    """MySQL, and MariaDB before 10.5."""
    monkeypatch.setattr(connection.dialect, "insert_returning", False)
    check_ids(connection, number)


def check_ids(connection, number):
    names = [f"CUSTOM_{row:05}" for row in range(number)]
    ids = INSERT.execute_returning_ids(connection, rows(*reversed(names)), "name")
    rows_read = connection.execute(sa.select(traits.c.name, traits.c.id).where(traits.c.name.like("CUSTOM%"))).all()
    assert sorted(ids.items()) == sorted(map(tuple, rows_read))
    assert sorted(ids) == names


@pytest.mark.parametrize("number", [1, 16, 17, 1001])
def test_rows_of_several_tables_are_inserted_together(connection, number):
    """The values of the tables are not confused, although their columns have the same names."""
    other = CompiledInsert(resource_classes, "created_at", "id", "name")
    names = [f"CUSTOM_{row:05}_'%_:x" for row in range(number)]
    later = NOW + datetime.timedelta(days=1)
    classes = [{"created_at": later, "id": 20_000 + place, "name": name} for place, name in enumerate(reversed(names))]
    CompiledInsert.execute_together(connection, [(INSERT, rows(*names)), (other, classes)])
    CompiledInsert.execute_together(connection, [(INSERT, []), (other, []), (INSERT, rows("CUSTOM_LAST"))])
    CompiledInsert.execute_together(connection, [])
    mine = sa.select(traits.c.name, traits.c.created_at).where(traits.c.name.like("CUSTOM%"))
    rows_read = connection.execute(mine.order_by(traits.c.id)).all()
    assert rows_read == [*((name, NOW) for name in names), ("CUSTOM_LAST", NOW)]
    mine = sa.select(resource_classes.c.name, resource_classes.c.created_at).where(resource_classes.c.id >= 20_000)
    assert connection.execute(mine.order_by(resource_classes.c.id)).all() == [(row["name"], later) for row in classes]


def test_rows_inserted_together_are_stored_all_or_not_at_all(database):
    """The transaction fails as for a single table."""
    other = CompiledInsert(resource_classes, "created_at", "id", "name")
    duplicates = [{**row, "id": 20_000 + place} for place, row in enumerate(rows("CUSTOM_B", "CUSTOM_B"))]
    in_order = [(INSERT, rows("CUSTOM_A")), (other, duplicates)]
    for inserts in (in_order, in_order[::-1]):
        with pytest.raises(exc.IntegrityError) as caught, database.engine.begin() as connection:
            CompiledInsert.execute_together(connection, inserts)
        assert driver_errors.classify(caught.value) is ErrorClass.COLLISION
    names = sa.select(traits.c.name).where(traits.c.name == "CUSTOM_A")
    assert database.read(lambda db: db.execute(names).all()) == []


def test_a_row_may_contain_any_value_of_its_columns(connection):
    """Null, quotes, JSON within JSON, fractions of seconds; a text that is too long is refused, not truncated."""
    owner = {"project_id": 1, "user_id": 1, "generation": 1}
    connection.execute(sa.insert(consumers), [{"id": number, "uuid": str(number), **owner} for number in (1, 2)])
    insert = CompiledInsert(claims, "consumer_id", "content", "generation", "mappings", "expires_at")
    claim_rows = [
        {
            "content": None,
            "mappings": [{"": ['"x"\\', "%(p0)s", "{0}"]}],
            "expires_at": NOW.replace(microsecond=123456),
        },
        {"content": "c" * 64, "mappings": [], "expires_at": None},
    ]
    claim_rows = [{"consumer_id": number, "generation": 1, **row} for number, row in enumerate(claim_rows, 1)]
    insert.execute(connection, claim_rows)
    columns = (claims.c[name] for name in claim_rows[0])
    rows_read = connection.execute(sa.select(*columns).order_by(claims.c.consumer_id)).mappings().all()
    assert [dict(row) for row in rows_read] == claim_rows
    if connection.dialect.name != "sqlite":
        with pytest.raises(exc.DataError):
            INSERT.execute(connection, rows("CUSTOM_" + "X" * 300))


def test_a_statement_is_executed_with_any_number_of_values(connection):
    """The statement text depends on the number of values."""
    select = CompiledStatement(SELECT)
    INSERT.execute(connection, rows("CUSTOM_A", "CUSTOM_B"))
    names_of_runs = [["CUSTOM_A"], ["CUSTOM_A", "CUSTOM_B"], ["CUSTOM_B"], [], ["CUSTOM_A", *map(str, range(200))]]
    for names in names_of_runs:
        rows_read = select.execute(connection, {"names": names})
        assert [row.name for row in rows_read] == [name for name in names if name.startswith("CUSTOM")]


def test_a_change_counts_the_rows_that_it_matches(connection):
    """By default MySQL counts only the rows that become different."""
    update = CompiledStatement(UPDATE)
    INSERT.execute(connection, rows("CUSTOM_A", "CUSTOM_B"))
    for _ in range(2):
        assert update.execute(connection, {"names": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"], "now": NOW}).rowcount == 2


def test_values_are_converted_by_the_types_of_their_columns(connection):
    """Dates are texts in SQLite; a ratio is finite."""
    select = CompiledStatement(sa.select(inventories.c.allocation_ratio, inventories.c.created_at))
    columns = ("total", "reserved", "min_unit", "max_unit", "step_size")
    ids = {"resource_provider_id": 1, "resource_class_id": 0}
    insert = CompiledInsert(inventories, "created_at", *ids, *columns, "allocation_ratio")
    insert.execute(connection, [{**ids, "created_at": NOW, **dict.fromkeys(columns, 1), "allocation_ratio": 16.0}])
    if connection.dialect.name != "mysql":
        connection.exec_driver_sql("UPDATE inventories SET allocation_ratio = '1e308'")
        [row] = select.execute(connection, {})
        assert row.allocation_ratio < 1e39
    else:
        [row] = select.execute(connection, {})
        assert row.allocation_ratio == 16
    assert row.created_at == NOW


def test_values_are_stored_as_sqlalchemy_stores_them(connection):
    """SQLite's driver writes dates in another form; a list of any length in a JSON column is one value."""
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
    rows_read = CompiledStatement(sa.select(claims.c.mappings).order_by(claims.c.consumer_id)).execute(connection, {})
    assert [row.mappings for row in rows_read] == [[{"": ["x"]}], [{"": ["x"]}] * 2]


def test_a_default_that_would_not_be_computed_is_refused(connection):
    with pytest.raises(ValueError, match="default"):
        CompiledStatement(sa.update(traits).values(name="x")).execute(connection, {})


def test_errors_equal_the_errors_of_sqlalchemy(connection):
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
    """Otherwise the next statement would read the response."""

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
    """The attempt is retried as after an error of any other statement."""
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
