"""Driver errors are reported as client errors or as an unavailable server, never as internal errors."""

import contextlib
import sqlite3

import pytest
import sqlalchemy as sa

from placement import errors
from placement.objects.locked_provider import LockedProvider
from placement.objects.trait import Trait
from placement.search.query import existence
from tests import made
from tests.made import opened
from tests.world import World

pytestmark = pytest.mark.every_database

UUID = "11111111-1111-4111-8111-111111111111"


def test_more_names_than_a_statement_allows_are_the_clients_fault(database):
    names = [f"T{number}" for number in range(250_001)]
    with pytest.raises(errors.BadRequest):
        existence._refuse(existence.unknown_traits(names, World().snapshot(), database), "required")


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("charset", ["utf8mb3", "latin1"])
def test_unsupported_characters_are_the_clients_fault(database_url, charset):
    """Most existing databases of Placement have such a character set; MySQL refuses to compare other characters."""
    with opened(database_url) as database:
        with database.engine.connect() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE CHARACTER SET {charset}")
        made.sync(database.engine)
        with pytest.raises(errors.InvalidValue):
            database.read(lambda db: Trait.find(db, "\N{GRINNING FACE}"))
        with pytest.raises(errors.InvalidValue):
            database.write(lambda db: LockedProvider.create(db, uuid=UUID, name="\N{GRINNING FACE}"))


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("limit", ["max_page_count = 1", "query_only = ON"])
@pytest.mark.parametrize("attempts", [1, 10])
def test_a_full_or_read_only_disk_is_not_an_internal_error(database, limit, attempts):
    """Nor is it a conflict, even if only one attempt is allowed."""
    # Deletions of earlier tests left free pages, which can be used even on a full disk.
    with contextlib.closing(sqlite3.connect(database.url.database)) as connection:
        connection.execute("VACUUM")

    @sa.event.listens_for(database.engine, "checkout")
    def restrict(connection, _record, _fairy):
        connection.execute(f"PRAGMA {limit}")

    def work(db):
        for number in range(1000):
            db.execute(sa.text("INSERT INTO traits (name) VALUES (:name)"), {"name": f"{number:0200}"})

    with pytest.raises(errors.DatabaseUnavailable):
        database.write(work, attempts=attempts)


SIGNAL = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = 'told to'"
RAISE = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{}'; END $$"


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("number", [1021, 1114, 1180, 1203, 1290, 1317, 1836, 1969, 3024])
def test_a_mariadb_that_cannot_continue_is_not_an_internal_error(database, number):
    with pytest.raises(errors.DatabaseUnavailable):
        database.write(lambda db: db.execute(sa.text(SIGNAL.format(number))))


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("state", ["53100", "53200", "57014"])
def test_a_postgresql_that_cannot_continue_is_not_an_internal_error(database, state):
    with pytest.raises(errors.DatabaseUnavailable):
        database.write(lambda db: db.execute(sa.text(RAISE.format(state))))


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("wrong", ["password", "database"])
def test_refused_credentials_are_not_an_unreachable_server(database_url, wrong):
    """Waiting at the start does not help, and a password that is changed later is not an internal error."""
    changes = {"username": "nobody", "password": "wrong"} if wrong == "password" else {"database": "nowhere"}
    with opened(sa.make_url(database_url).set(**changes)) as database:
        with pytest.raises(errors.DatabaseRefuses):
            database.wait_until_reachable(max_retries=-1, retry_interval=10)
        with pytest.raises(errors.DatabaseRefuses):
            database.read(lambda db: db.execute(sa.select(1)))
        with pytest.raises(errors.DatabaseRefuses):
            database.write(lambda db: db.execute(sa.select(1)))
