"""Every way to create the schema yields the schema of OpenStack Placement and our tables (docs: database-schema)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from placement.db.schema import revisions, schema, tables
from placement.db.schema.schema import State
from placement.errors import SchemaError
from tests import made
from tests.db import sql_hooks
from tests.db.manage import execute
from tests.db.schema_description import describe, render
from tests.made import opened

pytestmark = pytest.mark.every_database

INITIAL, LAST_COMMON = "b4ed3a175331", "a082b8bb98d0"
FEED = "a3683ed2ecbc"
COMMON = ["b4ed3a175331", "611cd6dffd7b", "b5c396305c25", "422ece571366", "a082b8bb98d0"]
UUID = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def database(database_url):
    """Return a database without tables."""
    with opened(database_url) as empty:
        yield empty


@pytest.fixture
def engine(database):
    return database.engine


def provider(**values):
    row = {"uuid": "u1", "name": "n1", "generation": 0, **values}
    return sa.insert(tables.resource_providers).values(row)


def allocation(**values):
    return sa.insert(tables.allocations).values(resource_provider_id=1, resource_class_id=0, used=1, **values)


def test_the_revisions_are_the_common_ones_followed_by_ours():
    scripts = ScriptDirectory.from_config(revisions.configuration())
    chain = [script.revision for script in scripts.walk_revisions()][::-1]
    assert chain[: len(COMMON)] == COMMON
    assert schema.HEAD == chain[-1] != LAST_COMMON


def test_the_common_schema_equals_the_schema_of_openstack_placement(engine):
    """schema-a082b8bb98d0.txt was written from databases made by the reference implementation."""
    made.sync(engine, LAST_COMMON)
    assert render(describe(engine)) == (Path(__file__).parent / "schema-a082b8bb98d0.txt").read_text()


def test_allocation_ratio_has_the_precision_of_openstack_placement(engine):
    made.sync(engine, LAST_COMMON)
    kinds = {"sqlite": sa.FLOAT, "mysql": sa.FLOAT, "postgresql": sa.DOUBLE_PRECISION}
    columns = {column["name"]: column["type"] for column in sa.inspect(engine).get_columns("inventories")}
    assert isinstance(columns["allocation_ratio"], kinds[engine.dialect.name])
    assert not isinstance(columns["allocation_ratio"], sa.DOUBLE) or engine.dialect.name == "postgresql"


def test_schema_from_revisions_is_the_schema_of_the_tables(engine):
    made.sync(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, tables.metadata) == []
    by_revisions = describe(engine)
    tables.metadata.drop_all(engine)
    tables.metadata.create_all(engine)
    assert render(by_revisions) == render(describe(engine))


def test_a_database_stamped_back_returns_with_a_new_feed(engine):
    made.sync(engine)
    before, (feed,) = describe(engine), execute(engine, "SELECT uuid FROM feed_instance")
    execute(engine, sa.insert(tables.change_writers))

    schema.stamp(engine, LAST_COMMON)
    assert schema.version(engine) == LAST_COMMON
    assert describe(engine) == before, "a stamp changes nothing else"

    made.sync(engine)
    assert schema.version(engine) == schema.HEAD
    (feed_after,) = execute(engine, "SELECT uuid FROM feed_instance")
    assert feed_after != feed, "the feed lacks the changes made meanwhile: its readers must reload everything"


def test_tables_are_added_to_a_served_database_and_nothing_else_changes(engine):
    made.sync(engine, FEED)
    tables_before, (feed,) = describe(engine), execute(engine, "SELECT uuid FROM feed_instance")
    execute(engine, sa.insert(tables.change_writers))
    with sql_hooks.writes(engine) as statements:
        made.sync(engine)
    tables_after = describe(engine)
    assert {table: tables_after[table] for table in tables_before} == tables_before
    assert tables_after.keys() - tables_before.keys() == {
        "claims",
        *(table.name for addition in made.ADDITIONS for table in addition.tables),
    }
    writable_tables = ("claims", "alembic_version", *(tables_after.keys() - tables_before.keys()))
    assert [statement for statement in statements if not any(name in statement for name in writable_tables)] == []
    assert execute(engine, "SELECT uuid FROM feed_instance") == [feed], "workers continue meanwhile"


def test_a_second_sync_does_nothing(engine):
    made.sync(engine)
    with sql_hooks.writes(engine) as statements:
        made.sync(engine)
    assert statements == []


@pytest.mark.parametrize(
    ("flaw", "remedy"),
    [
        (provider(id=1), "UPDATE resource_providers SET root_provider_id = id"),
        (allocation(consumer_id="c1"), "INSERT INTO consumers (uuid, project_id, user_id) VALUES ('c1', 1, 1)"),
    ],
    ids=["a provider without a root", "an allocation without a consumer"],
)
def test_sync_refuses_incomplete_rows_and_names_the_remedy(engine, flaw, remedy):
    made.sync(engine, INITIAL)
    execute(engine, flaw)
    for _ in range(2):
        with pytest.raises(SchemaError, match='Run "placement-manage db online_data_migrations"'):
            made.sync(engine)
        assert schema.state(engine) is State.OLDER
    assert "consumer_types" not in describe(engine)
    execute(engine, remedy)
    made.sync(engine)
    assert schema.state(engine) is State.CURRENT


def test_sync_continues_after_a_power_cut_at_any_statement(engine):
    """MySQL keeps the steps before a power cut, so each step is followed by one; other databases start over."""
    keeps_steps = engine.dialect.name == "mysql"
    cuts = 0
    for attempt in itertools.count(1):
        steps = itertools.count(1)

        def is_cut(statement, steps=steps, allowed=1 if keeps_steps else 5 * attempt):
            is_step = statement.startswith(("CREATE", "ALTER", "DROP")) or "alembic_version SET" in statement
            return is_step and next(steps) > allowed

        try:
            with sql_hooks.power_cut(engine, is_cut):
                made.sync(engine)
            break
        except sql_hooks.PowerCut:
            cuts += 1
    assert cuts > (30 if keeps_steps else 6)
    synced = describe(engine)
    tables.metadata.drop_all(engine)
    tables.metadata.create_all(engine)
    assert synced == describe(engine)


def test_tables_of_other_applications_are_not_changed(engine):
    execute(engine, "CREATE TABLE users (name VARCHAR(9))")
    before = describe(engine)
    with pytest.raises(SchemaError, match="has tables users but no alembic_version"):
        made.sync(engine)
    assert describe(engine) == before


def test_stamp_refuses_an_unknown_revision(engine):
    made.sync(engine, LAST_COMMON)
    with pytest.raises(SchemaError, match="Can't locate revision identified by 'nope'"):
        schema.stamp(engine, "nope")
    assert schema.version(engine) == LAST_COMMON


def test_a_database_newer_than_this_release_is_not_changed_but_can_be_stamped(engine):
    made.sync(engine)
    execute(engine, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    with pytest.raises(schema.UnknownRevision, match="is at revision ffffffffffff, which this release does not know"):
        made.sync(engine)
    assert schema.version(engine) == "ffffffffffff"
    schema.stamp(engine, "head")
    assert schema.state(engine) is State.CURRENT


def test_every_state_of_a_schema_except_current_has_a_finding(engine):
    def state_and_finding():
        return schema.state(engine).value, schema.finding(engine)

    assert state_and_finding() == ("missing", 'The database has no tables yet. Run "placement-manage db sync".')
    made.sync(engine, LAST_COMMON)
    state, finding = state_and_finding()
    assert state == "older"
    assert LAST_COMMON in finding
    assert schema.HEAD in finding
    made.sync(engine)
    assert state_and_finding() == ("current", None)
    execute(engine, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    state, finding = state_and_finding()
    assert state == "newer-unknown"
    assert "ffffffffffff" in finding


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_sync_works_where_named_locks_are_forbidden(engine):
    """Some Galera clusters forbid them."""

    def forbid(statement):
        if "get_lock" in statement.lower():
            raise sa.exc.OperationalError(statement, {}, Exception(1105, "prohibits use of GET_LOCK"))

    with sql_hooks.statements(engine, forbid):
        made.sync(engine)
    assert schema.state(engine) is State.CURRENT


def test_a_sync_that_failed_does_not_lock_others_out(database_url, engine, monkeypatch):
    monkeypatch.setattr(schema, "SCHEMA_LOCK_TIMEOUT", 60)
    made.sync(engine, INITIAL)
    execute(engine, provider(id=1))
    with pytest.raises(SchemaError, match="root"):
        made.sync(engine)
    execute(engine, sa.delete(tables.resource_providers))
    with opened(database_url) as other:
        made.sync(other.engine)
    assert schema.state(engine) is State.CURRENT


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
def test_a_failed_sync_rolls_back_every_revision_and_addition(engine):
    last = schema.Addition((_things_table(),))

    def last_step(statement):
        return statement.startswith("CREATE TABLE things")

    with sql_hooks.power_cut(engine, last_step), pytest.raises(sql_hooks.PowerCut):
        schema.sync(engine, additions=[*made.ADDITIONS, last])
    assert sa.inspect(engine).get_table_names() == []


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_sync_that_waits_too_long_fails_with_the_reason(database_url, engine, monkeypatch):
    monkeypatch.setattr(schema, "SCHEMA_LOCK_TIMEOUT", 1)
    with (
        schema._exclusive_connection(engine),
        opened(database_url) as other,
        pytest.raises(SchemaError, match="for 1 seconds"),
    ):
        made.sync(other.engine)
    made.sync(engine)


def _things_table(*columns):
    return sa.Table("things", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), *columns)


def test_missing_parts_of_an_addition_are_detected_and_added(engine, caplog):
    """First a table, then a column and an index of it."""
    caplog.set_level("INFO")
    first = schema.Addition((_things_table(),))
    schema.sync(engine)
    assert schema.finding(engine, [first]) == 'The database lacks things. Run "placement-manage db sync".'
    schema.sync(engine, additions=[first])
    assert schema.finding(engine, [first]) is None

    second = schema.Addition((_things_table(sa.Column("size", sa.Integer), sa.Index("things_size_idx", "size")),))
    assert schema.finding(engine, [second]) == (
        'The database lacks things.size, things_size_idx. Run "placement-manage db sync".'
    )
    assert schema.missing_columns(engine, [second]) == ["things.size"]
    schema.sync(engine, additions=[second])
    assert schema.finding(engine, [second]) is None
    assert [record.getMessage() for record in caplog.records if record.name == schema.__name__] == [
        "Adding tables, columns or indexes of extensions: things",
        "Adding tables, columns or indexes of extensions: things.size, things_size_idx",
    ]
    with sql_hooks.writes(engine) as statements:
        schema.sync(engine, additions=[second])
    assert statements == []


def test_a_release_reports_tables_that_belong_to_no_installed_extension(engine, caplog):
    made.sync(engine)
    execute(engine, "CREATE TABLE things (id INTEGER)")
    made.release(engine, force=True)
    assert [record.getMessage() for record in caplog.records if "are kept" in record.getMessage()] == [
        "Tables that belong to no installed extension are kept: things."
    ]
