"""A database of OpenStack Placement is adopted, served and released (docs: commands, database-schema)."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from placement.db.schema import schema
from placement.db.upkeep import online, standard
from placement.errors import SchemaError
from placement.objects.over_commitment import OverCommitment
from tests import made
from tests.db import in_process, openstack_database, sql_hooks
from tests.db.openstack_database import (
    CN1,
    CROWD,
    FULL,
    GHOST,
    INSTANCE,
    LOST,
    MIGRATION,
    NUMA0,
    OWNERLESS,
    ROOTLESS,
    SECOND,
)
from tests.db.schema_description import describe, render
from tests.made import opened

pytestmark = pytest.mark.every_database

LIST, LISTED = "/resource_providers", "resource_providers"


@pytest.fixture(params=[openstack_database.NEWEST, openstack_database.OLDER])
def revision(request):
    return request.param


@pytest.fixture
def database(database_url, revision):
    with opened(database_url) as database:
        openstack_database.make(database.engine, revision)
        yield database


@pytest.fixture
def taken_over(database):
    made.sync(database.engine)
    standard.insert(database)
    return database


@pytest.fixture
def service(taken_over):
    """Return a function that sends requests at version 1.39 to the service on the database."""
    call = in_process.placement(taken_over)
    return lambda method, path, body=None: call(method, path, 39, body)


@pytest.fixture(scope="module")
def read(backend):
    """Return a function that returns the body of a GET at version 1.39."""
    url = backend.create_database()
    with opened(url) as database:
        openstack_database.make(database.engine, openstack_database.OLDER)
        made.sync(database.engine)
        standard.insert(database)
        call = in_process.placement(database)
        yield lambda path: call("GET", path).body
    backend.drop_database(url)


def rows(database):
    """Return every stored row of the tables of OpenStack Placement."""
    with database.engine.connect() as connection:
        return {
            name: sorted(map(repr, connection.execute(sa.text(f"SELECT * FROM {name}"))))
            for name in openstack_database.ROWS
        }


def indexes(lines_by_table):
    return {
        (table, line.split()[1])
        for table, lines in lines_by_table.items()
        for line in lines
        if line.startswith("index ")
    }


@pytest.mark.parametrize("revision", [openstack_database.NEWEST])
def test_the_tables_of_these_tests_match_openstack_placement(database, revision):
    """schema-a082b8bb98d0.txt was written from databases made by the reference implementation."""
    assert render(describe(database.engine)) == (Path(__file__).parent / f"schema-{revision}.txt").read_text()


class TestSync:
    def test_adds_our_tables_and_changes_no_other_table_or_row(self, database, revision):
        tables_before, rows_before = describe(database.engine), rows(database)
        made.sync(database.engine)
        assert rows(database) == rows_before
        tables_after = describe(database.engine)
        assert tables_after.keys() - tables_before.keys() == made.OURS
        removed = indexes(tables_before) - indexes(tables_after)
        assert len(removed) == (0 if revision == openstack_database.NEWEST else 5), (
            "dropped by the newest revision of OpenStack Placement"
        )
        for table, lines in tables_before.items():
            assert [line for line in lines if (table, line.split()[1]) not in removed] == tables_after[table]

    def test_writes_only_to_our_tables(self, database, revision):
        with sql_hooks.writes(database.engine) as statements:
            made.sync(database.engine)
        names = (*made.OURS, "alembic_version", *("DROP INDEX",) * (revision == openstack_database.OLDER))
        assert [statement for statement in statements if not any(name in statement for name in names)] == []

    def test_a_start_adds_only_the_traits_that_are_missing(self, database):
        rows_before = rows(database)
        made.sync(database.engine)
        standard.insert(database)
        rows_after = rows(database)
        assert set(rows_after.pop("traits")) > set(rows_before.pop("traits"))
        assert rows_after == rows_before


class TestRead:
    """Responses equal the responses of OpenStack Placement, except where a comment says otherwise."""

    def test_consumers_have_their_allocations(self, read):
        assert read(f"/allocations/{INSTANCE}") == {
            "allocations": {
                CN1: {"generation": 7, "resources": {"MEMORY_MB": 2048}},
                NUMA0: {"generation": 3, "resources": {"VCPU": 4}},
                openstack_database.SHARED: {"generation": 2, "resources": {"DISK_GB": 20}},
            },
            "consumer_generation": 3,
            "consumer_type": "INSTANCE",
            "project_id": "project-a",
            "user_id": "alice",
        }
        assert read(f"/allocations/{MIGRATION}")["consumer_type"] == "MIGRATION"
        assert read(f"/allocations/{CROWD}")["project_id"] == openstack_database.UNKNOWN_OWNER
        assert read(f"/allocations/{CROWD}")["consumer_type"] == "unknown"

    @pytest.mark.parametrize("consumer", [GHOST, OWNERLESS, LOST])
    def test_consumers_without_row_or_valid_allocations_are_not_shown(self, read, consumer):
        assert read(f"/allocations/{consumer}") == {"allocations": {}}

    def test_allocations_without_consumer_count_as_used(self, read):
        assert read(f"/resource_providers/{NUMA0}/usages")["usages"] == {"VCPU": 6}
        assert read(f"/resource_providers/{NUMA0}/allocations")["allocations"].keys() == {INSTANCE}
        assert read(f"/allocations/{OWNERLESS}") == {"allocations": {}}

    def test_usage_of_a_deleted_provider_counts_for_its_consumer(self, read):
        """The usages of a project are the usages of its consumers (docs: api-usage-rules)."""
        usages = read("/usages?project_id=project-a&user_id=alice&consumer_type=all")["usages"]
        assert usages["all"] == {"consumer_count": 2, "VCPU": 5, "MEMORY_MB": 2048, "DISK_GB": 20}

    def test_candidates_ignore_allocations_of_deleted_objects(self, read):
        candidates = read("/allocation_candidates?resources=VCPU:1&required=CUSTOM_GOLD")
        assert candidates == {"allocation_requests": [], "provider_summaries": {}}, "the capacity is 7.7, and 7 is used"
        candidates = read("/allocation_candidates?resources=VCPU:1")
        assert [set(request["allocations"]) for request in candidates["allocation_requests"]] == [{NUMA0}]
        assert candidates["provider_summaries"][NUMA0]["resources"] == {"VCPU": {"capacity": 128, "used": 6}}
        shared = read("/allocation_candidates?resources=MEMORY_MB:1,DISK_GB:5")
        assert [set(request["allocations"]) for request in shared["allocation_requests"]] == [
            {CN1, openstack_database.SHARED}
        ]


@pytest.mark.parametrize("revision", [openstack_database.OLDER])
class TestServed:
    """Inconsistent rows left by races of OpenStack Placement."""

    def test_a_provider_without_a_root_is_shown_and_becomes_its_own_root(self, taken_over, service):
        """OpenStack Placement hides it until ``online_data_migrations`` has run."""
        path = f"/resource_providers/{ROOTLESS}"
        assert service("GET", path).body["root_provider_uuid"] is None
        assert [provider["uuid"] for provider in service("GET", f"{LIST}?name=rootless").body[LISTED]] == [ROOTLESS]
        online.set_root_provider_ids(taken_over, 50)
        assert service("GET", path).body["root_provider_uuid"] == ROOTLESS
        assert [provider["uuid"] for provider in service("GET", f"{LIST}?in_tree={ROOTLESS}").body[LISTED]] == [
            ROOTLESS
        ]

    def test_a_consumer_without_allocations_may_claim_again(self, service):
        body = {"project_id": "p", "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
        allocations = {NUMA0: {"resources": {"VCPU": 1}}}
        assert service("PUT", f"/allocations/{GHOST}", {"allocations": allocations, **body}).status == 204
        assert service("GET", f"/allocations/{GHOST}").body["consumer_generation"] == 1

    def test_an_over_committed_provider_accepts_releases_and_refuses_claims(self, service):
        def claim(consumer, amount):
            there = {"allocations": {FULL: {"resources": {"VCPU": amount}}}, "consumer_type": "INSTANCE"}
            current = service("GET", f"/allocations/{consumer}").body
            return service("PUT", f"/allocations/{consumer}", current | there)

        assert service("GET", f"/resource_providers/{FULL}/usages").body["usages"] == {"VCPU": 14, "MEMORY_MB": 64}
        assert claim(CROWD, 7).status == 409
        assert claim(CROWD, 5).status == 204
        assert claim(SECOND, 3).status == 204
        assert claim(CROWD, 6).status == 409, "now it is full, but not over-committed"

    def test_a_class_deleted_while_in_use_causes_no_failure(self, taken_over, service):
        with taken_over.engine.begin() as connection:
            openstack_database.fill(connection, openstack_database.RUINS)
        assert service("GET", "/allocation_candidates?resources=CUSTOM_FPGA:1").body["provider_summaries"] == {
            ROOTLESS: {
                "resources": {"CUSTOM_FPGA": {"capacity": 4, "used": 1}},
                "traits": [],
                "parent_provider_uuid": None,
                "root_provider_uuid": ROOTLESS,
            }
        }
        for path in (
            f"/allocations/{LOST}",
            "/usages?project_id=project-a",
            f"/resource_providers/{ROOTLESS}/inventories",
        ):
            assert service("GET", path).status == 200
        above = OverCommitment.all(taken_over, lambda _: None)
        assert FULL in {finding.uuid for finding in above}


class TestRelease:
    def test_leaves_the_original_tables_and_rows(self, database, revision):
        tables_before, rows_before = describe(database.engine), rows(database)
        made.sync(database.engine)
        made.release(database.engine, revision, force=True)
        assert describe(database.engine) == tables_before
        assert rows(database) == rows_before
        assert schema.version(database.engine) == revision

    @pytest.mark.parametrize("revision", [openstack_database.NEWEST])
    def test_keeps_rows_written_meanwhile(self, taken_over, service, revision):
        assert service("DELETE", f"/allocations/{INSTANCE}").status == 204
        before = rows(taken_over)
        made.release(taken_over.engine, revision, force=True)
        assert rows(taken_over) == before
        assert describe(taken_over.engine).keys() & made.OURS == set()

    def test_can_be_repeated_and_reverted(self, taken_over, revision):
        for _ in range(2):
            made.release(taken_over.engine, revision, force=True)
            assert schema.version(taken_over.engine) == revision
        made.sync(taken_over.engine)
        assert schema.state(taken_over.engine) is schema.State.CURRENT

    @pytest.mark.parametrize("revision", [openstack_database.OLDER])
    def test_does_not_upgrade_an_older_schema(self, database):
        before = describe(database.engine)
        made.release(database.engine, force=True)
        assert schema.version(database.engine) == openstack_database.OLDER
        assert describe(database.engine) == before

    @pytest.mark.parametrize("revision", [openstack_database.NEWEST])
    def test_removes_our_tables_that_a_stamp_left(self, taken_over):
        schema.stamp(taken_over.engine, openstack_database.NEWEST)
        made.release(taken_over.engine, force=True)
        assert describe(taken_over.engine).keys() & made.OURS == set()

    @pytest.mark.parametrize("revision", [openstack_database.NEWEST])
    def test_of_an_empty_or_newer_database_is_refused(self, taken_over, backend):
        empty = backend.create_database()
        with opened(empty) as nothing, pytest.raises(SchemaError, match="no tables yet"):
            made.release(nothing.engine, force=True)
        backend.drop_database(empty)
        with taken_over.engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = 'ffffffffffff'"))
        with pytest.raises(SchemaError, match="ffffffffffff"):
            made.release(taken_over.engine, force=True)
        assert describe(taken_over.engine).keys() >= made.OURS

    @pytest.mark.parametrize("revision", [openstack_database.NEWEST])
    def test_a_service_left_running_writes_nothing(self, taken_over, service):
        """Neither the service nor OpenStack Placement would see the other's changes."""
        made.release(taken_over.engine, force=True)
        before = rows(taken_over)
        assert service("DELETE", f"/allocations/{INSTANCE}").status == 503
        assert rows(taken_over) == before

    @pytest.mark.parametrize("revision", [openstack_database.OLDER])
    def test_continues_after_a_power_cut(self, taken_over, revision):
        """On MySQL, dropped tables stay dropped; other databases roll back."""
        with sql_hooks.writes(taken_over.engine) as statements:
            made.release(taken_over.engine, revision, force=True)
        made.sync(taken_over.engine)
        drops = [statement for statement in statements if statement.startswith("DROP TABLE")]
        assert len(drops) == len(made.OURS)
        for drop in drops:
            with pytest.raises(sql_hooks.PowerCut), sql_hooks.power_cut(taken_over.engine, drop.__eq__):
                made.release(taken_over.engine, revision, force=True)
        made.release(taken_over.engine, revision, force=True)
        assert schema.version(taken_over.engine) == revision
        assert describe(taken_over.engine).keys() & made.OURS == set()
