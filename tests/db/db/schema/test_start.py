"""A start of the service, or of one of its workers, while the database restarts or changes its primary."""

from __future__ import annotations

import contextlib
import itertools
import logging

import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.errors import StartError
from tests import caller, made, proxies, proxy_faults, web
from tests.db import faults
from tests.made import opened

pytestmark = pytest.mark.every_database


@pytest.fixture
def url(backend, database_url):
    with opened(database_url) as database:
        made.sync(database.engine)
        standard.insert(database)
    return database_url


UNKNOWN = "ffffffffffff"

syncing = pytest.mark.parametrize("sync", [True, False], ids=["sync_on_startup", "without"])


@pytest.fixture
def database(database_url):
    """Return a database without tables."""
    with opened(database_url) as empty:
        yield empty


def migrate(database, *statements):
    """Change the schema, and record a revision that this release does not know."""
    with database.engine.begin() as connection:
        for statement in (*statements, f"UPDATE alembic_version SET version_num = '{UNKNOWN}'"):
            connection.execute(sa.text(statement))


def start(database, sync):
    """Start the service on this database; return a function that sends requests to it."""
    options = {"placement_database__connection": database.url, "placement_database__sync_on_startup": sync}
    return caller.inside(deploy.loadapp(web.configuration(**options), database))


@syncing
def test_the_schema_of_a_newer_version_is_served_unchanged(database, sync, caplog):
    """In a rolling upgrade: uWSGI replaces a worker of the old version after the schema was migrated."""
    made.sync(database.engine)
    migrate(database, "CREATE TABLE newer (id INTEGER)", "ALTER TABLE claims ADD COLUMN newer INTEGER")
    assert start(database, sync)("PUT", "/traits/CUSTOM_OLDER", 39).status == 201
    [warning] = [record.getMessage() for record in caplog.records if UNKNOWN in record.getMessage()]
    assert warning.endswith("It contains everything that this version needs, and is used unchanged.")
    assert schema.version(database.engine) == UNKNOWN


@syncing
@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ("DROP TABLE provider_changes", "provider_changes"),
        ("ALTER TABLE claims DROP COLUMN content", r"claims\.content"),
    ],
    ids=["a table", "a column"],
)
def test_an_unknown_schema_without_a_required_table_or_column_is_not_served(database, sync, change, lacking):
    made.sync(database.engine)
    migrate(database, change)
    with pytest.raises(StartError, match=rf"revision {UNKNOWN}, .* It lacks {lacking}\.$"):
        start(database, sync)


@syncing
def test_a_later_schema_of_another_placement_is_not_served(database, sync):
    made.sync(database.engine, schema.COMMON_HEADS[0])
    migrate(database)
    ours = sorted(made.OURS)
    assert {"claims", "provider_changes"} < {*ours}
    with pytest.raises(StartError, match=rf"It lacks {', '.join(ours)}\.$"):
        start(database, sync)
    assert schema.missing_columns(database.engine, made.ADDITIONS) == ours, "nothing was created"


@syncing
def test_a_database_of_another_application_is_neither_served_nor_changed(database, sync):
    create = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"
    migrate(database, create, "INSERT INTO alembic_version VALUES ('')")
    with pytest.raises(StartError, match=f"revision {UNKNOWN}, .* It lacks allocations, "):
        start(database, sync)
    assert sa.inspect(database.engine).get_table_names() == ["alembic_version"]


def test_the_schema_of_another_placement_is_upgraded_only_with_sync_on_startup(database):
    made.sync(database.engine, schema.COMMON_HEADS[0])
    with pytest.raises(StartError, match=f"is at revision {schema.COMMON_HEADS[0]}, not yet at"):
        start(database, False)
    assert start(database, True)("GET", "/resource_providers", 39).status == 200
    assert schema.state(database.engine) is schema.State.CURRENT


@contextlib.contextmanager
def lost_at(backend, url, numbers):
    """End all connections of the server at the statements with these numbers, counted from 1, in the block."""
    count = 0

    def end(connection, *_):
        nonlocal count
        if connection.engine.url.database == sa.make_url(url).database:
            count += 1
            if count in numbers:
                backend._disconnect(sa.make_url(url).database)

    sa.event.listen(sa.Engine, "before_cursor_execute", end)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", end)
    assert count >= max(numbers)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize(("sync", "number"), [(True, 1), (True, 3), (True, 5), (True, 7), (False, 1), (False, 5)])
def test_a_start_that_loses_its_connection_continues_with_another(backend, url, sync, number):
    conf = web.configuration(placement_database__connection=url, placement_database__sync_on_startup=sync)
    with opened(url) as database:
        with lost_at(backend, url, [number]):
            call = caller.inside(deploy.loadapp(conf, database))
        assert call("GET", "/resource_providers").status == 200


@pytest.mark.parametrize("number", range(1, 6))
def test_a_start_whose_statement_collides_continues(backend, url, number):
    plan = faults.Plan(number, [faults.collisions(backend.kind)[number % 3]])
    conf = web.configuration(placement_database__connection=url, placement_database__retry_interval=0)
    with opened(url) as database:
        with faults.plant(database, plan):
            call = caller.inside(deploy.loadapp(conf, database))
        assert plan.victim is not None
        assert call("GET", "/resource_providers").status == 200


def test_a_schema_that_is_synced_leaves_no_error_in_the_log(url, caplog):
    with opened(url) as database:
        schema.sync(database.engine)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_start_whose_commit_is_interrupted_continues(backend, url, number):
    direct, commits = sa.make_url(url), itertools.count(1)
    cuts = proxy_faults.CutsAtCommit(lambda: next(commits) == number, forwards=True)
    with proxies.proxy(direct.port) as proxy, proxy.behaving(cuts):
        through = direct.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        conf = web.configuration(placement_database__connection=through, placement_database__sync_on_startup=True)
        call = caller.inside(deploy.loadapp(conf))
        assert call("GET", "/resource_providers").status == 200
    assert cuts.cut == 1


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_start_that_always_loses_its_connection_fails_with_the_reason(backend, url):
    conf = web.configuration(placement_database__connection=url, placement_database__max_retries=1)
    with opened(url) as database, lost_at(backend, url, [1, 3]), pytest.raises(StartError, match="at every attempt"):
        deploy.loadapp(conf, database)
