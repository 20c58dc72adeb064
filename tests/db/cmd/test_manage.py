"""The output and the exit codes of placement-manage, which deployment tools read (docs: commands)."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement import extension, package
from placement.cmd import manage
from placement.cmd.progress import Progress
from placement.db.schema import schema, tables
from placement.db.upkeep import online, standard
from placement.objects.locked_provider import LockedProvider
from tests import children, made
from tests.clock import PATIENCE
from tests.db import in_process, sql_hooks
from tests.db.manage import OWNER, execute, write_configuration
from tests.made import opened

INITIAL, LAST_COMMON = "b4ed3a175331", "a082b8bb98d0"
UUID = "11111111-1111-4111-8111-111111111111"
ROOTS, CONSUMERS = "set_root_provider_ids", "create_incomplete_consumers"


@pytest.fixture
def database(database_url):
    with opened(database_url) as database:
        yield database


def fill(database, rootless=0, ownerless=0):
    """Insert rows as an old Placement left them; each consumer has two allocations."""
    providers = [{"uuid": f"p{number}", "name": f"p{number}"} for number in range(rootless)]
    allocations = [
        {"resource_provider_id": 1, "resource_class_id": kind, "used": 1, "consumer_id": f"c{number}"}
        for number in range(ownerless)
        for kind in range(2)
    ]
    if providers:
        execute(database.engine, sa.insert(tables.resource_providers).values(providers))
    if allocations:
        execute(database.engine, sa.insert(tables.allocations).values(allocations))


def frame(**rows):
    """Return the table at the end: the numbers of matching and completed rows of each migration."""
    width = max(map(len, rows))
    rule = f"+-{'-' * width}-+-------------+-----------+\n"
    lines = "".join(
        f"| {name:^{width}} | {_center(matching, 11)} | {_center(migrated, 9)} |\n"
        for name, (matching, migrated) in rows.items()
    )
    return f"{rule}| {'Migration':^{width}} | Total Found | Completed |\n{rule}{lines}{rule}"


def _center(number, width):
    text = str(number)
    right = (width - len(text)) // 2
    return text.rjust(width - right) + " " * right


class TestSchema:
    def test_version_of_an_empty_database_is_none(self, run):
        ran = run("db", "version")
        assert (ran.code, ran.out) == (0, "None\n")

    def test_sync_is_silent_on_stdout_and_logs_its_revisions(self, run, database):
        ran = run("db", "sync")
        assert (ran.code, ran.out) == (0, "")
        assert f"-> {INITIAL}" in ran.err
        assert schema.state(database.engine) is schema.State.CURRENT

    def test_version_is_the_revision_and_nothing_else(self, run):
        run("db", "sync")
        ran = run("db", "version")
        assert (ran.code, ran.out, ran.err) == (0, f"{schema.HEAD}\n", "")

    def test_stamp_writes_the_revision(self, run, database):
        for word, revision in (("head", schema.HEAD), (LAST_COMMON, LAST_COMMON)):
            ran = run("db", "stamp", word)
            assert (ran.code, ran.out) == (0, "")
            assert schema.version(database.engine) == revision

    def test_stamp_of_an_unknown_revision_fails(self, run, database):
        run("db", "sync")
        ran = run("db", "stamp", "nope")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.splitlines()[-1] == "placement-manage: Can't locate revision identified by 'nope'"
        assert schema.version(database.engine) == schema.HEAD

    def test_sync_does_nothing_at_an_unknown_revision_and_names_it(self, run, database):
        run("db", "sync")
        with database.engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = 'ffffffffffff'"))
        ran = run("db", "sync")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.splitlines()[-1] == (
            "placement-manage: The database is at revision ffffffffffff, which this release does not know: "
            "a newer release or another application created it."
        )
        assert "Traceback" not in ran.err
        assert schema.version(database.engine) == "ffffffffffff"

    def test_sync_names_the_required_preparation(self, run, database):
        made.sync(database.engine, INITIAL)
        fill(database, rootless=3)
        ran = run("db", "sync")
        assert ran.code == 1
        assert ran.err.splitlines()[-1] == (
            "placement-manage: 3 resource providers have no root provider id. "
            'Run "placement-manage db online_data_migrations", then this command again.'
        )


class TestRelease:
    """Its effect on tables and rows is tested in test_existing_databases.py."""

    @pytest.mark.parametrize(
        ("words", "revision"),
        [([], LAST_COMMON), (["--revision", "422ece571366"], "422ece571366")],
        ids=["the newest", "an older"],
    )
    def test_leaves_the_schema_of_another_placement(self, run, database, words, revision):
        run("db", "sync")
        ran = run("db", "release", *words)
        assert (ran.code, ran.out) == (0, "")
        assert run("db", "version").out == f"{revision}\n"
        assert not {table.name for table in tables.OURS} & set(sa.inspect(database.engine).get_table_names())

    def test_refuses_any_other_revision(self, run, database):
        run("db", "sync")
        ran = run("db", "release", "--revision", INITIAL)
        assert (ran.code, ran.out) == (2, "")
        assert "choose from" in ran.err
        assert schema.state(database.engine) is schema.State.CURRENT

    @pytest.mark.every_database
    def test_is_refused_while_a_service_writes(self, run, database, monkeypatch):
        """A writer is active for two minutes after its last renewal, which is due once a minute; here for a day."""
        assert schema.QUIET_PERIOD == 120
        monkeypatch.setattr(schema, "QUIET_PERIOD", 86400)
        run("db", "sync")
        standard.insert(database)
        database.write(lambda db: LockedProvider.create(db, uuid=UUID, name="host1"))
        ran = run("db", "release")
        assert (ran.code, ran.out) == (1, "")
        assert re.search(
            r"A process of this service wrote to the database \d+ seconds ago\. .* --force\.$", ran.err.strip()
        )
        assert schema.state(database.engine) is schema.State.CURRENT
        ((writer_id, seen_at),) = execute(
            database.engine, sa.select(tables.change_writers.c.id, tables.change_writers.c.seen_at)
        )
        for ago, code in ((80000, 1), (90000, 0)):
            old = {"seen_at": seen_at - datetime.timedelta(seconds=ago)}
            execute(
                database.engine,
                sa.update(tables.change_writers).where(tables.change_writers.c.id == writer_id).values(old),
            )
            assert run("db", "release").code == code

    def test_is_refused_while_there_are_leases(self, run, database):
        run("db", "sync")
        consumer = {"id": 1, "uuid": UUID, "project_id": 1, "user_id": 1}
        claim = {"consumer_id": 1, "generation": 1, "mappings": []}
        execute(database.engine, sa.insert(tables.consumers).values(consumer), sa.insert(tables.claims).values(claim))
        ends = sa.update(tables.claims).values(expires_at=tables.utcnow())
        execute(database.engine, ends)
        added = extension.installed_extensions().values()
        discarding = [
            f"--discard-{installed.name}" for installed in added if installed.schema and installed.schema().losses
        ]
        for words in ([], ["--force", *discarding]):
            ran = run("db", "release", *words)
            assert (ran.code, ran.out) == (1, "")
            assert "The expiry of leases would be lost (1)" in ran.err
            assert "--discard-leases" in ran.err
        assert run("db", "version").out == f"{schema.HEAD}\n"
        assert run("db", "release", "--discard-leases").code == 0
        assert "claims" not in sa.inspect(database.engine).get_table_names()
        assert execute(database.engine, sa.select(tables.consumers.c.uuid)) == [(UUID,)]
        run("db", "sync")
        execute(database.engine, sa.insert(tables.claims).values(claim))
        assert run("db", "release").code == 0, "every implementation supports a claim without an expiry"

    def test_under_a_running_service_is_reported_and_undone_by_sync(self, run, database):
        """With --force the response to a write and the health check name the remedy."""
        run("db", "sync")
        standard.insert(database)
        service = in_process.placement(database)
        body = {"name": "host1", "uuid": UUID}
        assert service("POST", "/resource_providers", body=body).status == 200
        assert run("db", "release", "--force").code == 0
        for answer in (
            service("POST", "/resource_providers", body={"name": "host2"}),
            service("GET", "/resource_providers?name=host1"),
            service("GET", "/allocation_candidates?resources=VCPU:1"),
        ):
            assert answer.status == 503
            assert "lacks tables of this service" in answer.error["detail"]
            assert "sync" in answer.error["detail"]
        health = service("GET", "/healthcheck")
        assert (health.status, health.body["reasons"]) == (503, [answer.error["detail"].split("\n")[-1].strip()])
        assert run("db", "sync").code == 0
        assert service("GET", "/healthcheck").status == 200
        assert service("POST", "/resource_providers", body={"name": "host2"}).status == 200
        assert len(service("GET", "/resource_providers").body["resource_providers"]) == 2

    def test_of_an_empty_database_fails(self, run):
        ran = run("db", "release")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.splitlines()[-1].startswith("placement-manage: The database has no tables yet.")


class TestRestored:
    def test_every_worker_reloads_its_index_and_standard_names_are_restored(self, run, database):
        run("db", "sync")
        standard.insert(database)
        call = in_process.placement(database)
        call("POST", "/resource_providers", body={"name": "host1", "uuid": UUID})
        assert [provider["name"] for provider in call("GET", "/resource_providers").body["resource_providers"]] == [
            "host1"
        ]
        execute(database.engine, sa.update(tables.resource_providers).values(name="by hand"), sa.delete(tables.traits))
        ran = run("db", "restored")
        assert (ran.code, ran.out) == (0, "")
        assert [provider["name"] for provider in call("GET", "/resource_providers").body["resource_providers"]] == [
            "by hand"
        ]
        assert call("GET", "/traits/HW_CPU_X86_AVX").status == 204

    def test_requires_a_schema(self, run):
        ran = run("db", "restored")
        assert ran.code == 1
        assert "db sync" in ran.err


class TestOnlineDataMigrations:
    @pytest.mark.every_database
    @pytest.mark.parametrize("revision", [INITIAL, "head"])
    def test_all_rows_are_completed_in_batches_of_fifty(self, run, database, revision):
        """This includes the first revision, since later ones refuse a database that needs the migrations."""
        made.sync(database.engine, revision)
        fill(database, rootless=70, ownerless=120)
        ran = run("db", "online_data_migrations")
        assert ran.out == (
            "Running batches of 50 until complete\n"
            f"50 rows matched query {ROOTS}, 50 migrated\n"
            f"20 rows matched query {ROOTS}, 20 migrated\n"
            f"30 rows matched query {CONSUMERS}, 30 migrated\n"
            f"50 rows matched query {CONSUMERS}, 50 migrated\n"
            f"40 rows matched query {CONSUMERS}, 40 migrated\n"
        ) + frame(**{ROOTS: (70, 70), CONSUMERS: (120, 120)})
        assert ran.code == 0
        assert run("db", "sync").code == 0

    def test_nothing_to_do_is_success(self, run, database):
        made.sync(database.engine)
        ran = run("db", "online_data_migrations")
        nothing = frame(**{ROOTS: (0, 0), CONSUMERS: (0, 0)})
        assert (ran.code, ran.out) == (0, "Running batches of 50 until complete\n" + nothing)

    def test_an_empty_database_is_reported_in_one_line(self, run):
        ran = run("db", "online_data_migrations")
        assert (ran.code, ran.out) == (2, "")
        # On a busy machine the command prints its progress, too.
        [line] = [
            printed_line
            for printed_line in ran.err.splitlines()
            if not printed_line.startswith("db online_data_migrations: ")
        ]
        assert line == 'placement-manage: The database has no tables yet. Run "placement-manage db sync".'

    def test_the_exit_code_of_a_limited_run_shows_whether_to_run_again(self, run, database):
        made.sync(database.engine)
        fill(database, rootless=7, ownerless=7)
        expected = [
            (1, f"5 rows matched query {ROOTS}, 5 migrated\n", {ROOTS: (5, 5)}),
            (
                1,
                f"2 rows matched query {ROOTS}, 2 migrated\n3 rows matched query {CONSUMERS}, 3 migrated\n",
                {ROOTS: (2, 2), CONSUMERS: (3, 3)},
            ),
            (1, f"4 rows matched query {CONSUMERS}, 4 migrated\n", {ROOTS: (0, 0), CONSUMERS: (4, 4)}),
            (0, "", {ROOTS: (0, 0), CONSUMERS: (0, 0)}),
        ]
        for code, sentence, totals in expected:
            ran = run("db", "online_data_migrations", "--max-count", "5")
            assert (ran.code, ran.out) == (code, sentence + frame(**totals))

    def test_a_provider_without_a_root_becomes_its_own_root(self, run, database):
        made.sync(database.engine)
        fill(database, rootless=2)
        first, second = sorted(row.id for row in execute(database.engine, "SELECT id FROM resource_providers"))
        execute(
            database.engine,
            f"UPDATE resource_providers SET root_provider_id = {first}, updated_at = NULL WHERE id = {first}",
        )
        run("db", "online_data_migrations")
        rows = execute(database.engine, sa.select(tables.resource_providers).order_by("id"))
        assert [row.root_provider_id for row in rows] == [first, second]
        assert [row.updated_at is None for row in rows] == [True, False]
        feed = execute(
            database.engine, sa.select(tables.provider_changes.c.provider_id, tables.provider_changes.c.what)
        )
        assert [tuple(row) for row in feed] == [(second, "shape")], "running services must read the change"

    @pytest.mark.every_database
    def test_missing_consumers_are_created_with_the_incomplete_project_and_user(self, run, database):
        made.sync(database.engine)
        execute(database.engine, sa.insert(tables.users).values([{"external_id": "u"}, {"external_id": OWNER}]))
        execute(database.engine, sa.insert(tables.consumers).values(uuid="c1", project_id=77, user_id=77, generation=5))
        fill(database, ownerless=3)
        run("db", "online_data_migrations")
        project, user = (
            execute(database.engine, sa.select(table.c.id).where(table.c.external_id == OWNER))[0].id
            for table in (tables.projects, tables.users)
        )
        consumers = tables.consumers.c
        columns = (
            consumers.uuid,
            consumers.project_id,
            consumers.user_id,
            consumers.generation,
            consumers.consumer_type_id,
        )
        rows = execute(database.engine, sa.select(*columns).order_by("uuid"))
        assert [tuple(row) for row in rows] == [
            ("c0", project, user, 0, None),
            ("c1", 77, 77, 5, None),
            ("c2", project, user, 0, None),
        ]
        ages = execute(database.engine, sa.select(consumers.created_at).where(consumers.created_at.is_(None)))
        assert ages == []

    def test_a_batch_begins_where_the_previous_one_ended_and_misses_no_row(self, database):
        """Rows that were added before the start of a batch are found at the end."""
        made.sync(database.engine)
        fill(database, ownerless=5)
        migrate = online.IncompleteConsumers(OWNER, OWNER)
        statements = []
        with sql_hooks.statements(database.engine, statements.append):
            assert migrate(database, 2) == online.Counts(2, 2)
            first = [statement for statement in statements if "FROM allocations" in statement]
            execute(database.engine, sa.delete(tables.consumers).where(tables.consumers.c.uuid == "c0"))
            assert migrate(database, 9) == online.Counts(3, 3)
        later = [statement for statement in statements if "FROM allocations" in statement][len(first) :]
        assert "consumer_id >" not in first[0]
        assert "consumer_id >" in later[0]
        assert [migrate(database, 9) for _ in range(2)] == [online.Counts(1, 1), online.Counts()]
        assert len(execute(database.engine, sa.select(tables.consumers.c.uuid))) == 5

    def test_no_project_or_user_is_created_without_a_consumer(self, run, database):
        made.sync(database.engine)
        run("db", "online_data_migrations")
        assert execute(database.engine, "SELECT external_id FROM projects UNION SELECT external_id FROM users") == []

    def test_a_failing_migration_does_not_stop_the_others(self, run, database):
        made.sync(database.engine)
        fill(database, rootless=1, ownerless=1)
        execute(database.engine, "DROP TABLE projects")
        ran = run("db", "online_data_migrations")
        assert ran.out == (
            "Running batches of 50 until complete\n"
            f"1 rows matched query {ROOTS}, 1 migrated\n"
            f"Error attempting to run {CONSUMERS}\n"
            f"Error attempting to run {CONSUMERS}\n"
            + frame(**{ROOTS: (1, 1), CONSUMERS: (0, 0)})
            + "Some migrations failed unexpectedly. Check log for details.\n"
        )
        assert ran.code == 2
        assert "projects" in ran.err, "the log has the details"

    def test_a_limited_run_that_progressed_despite_a_failure_must_be_repeated(self, run, database):
        made.sync(database.engine)
        fill(database, rootless=1, ownerless=1)
        execute(database.engine, "DROP TABLE projects")
        assert [run("db", "online_data_migrations", "--max-count", "9").code for _ in range(2)] == [1, 2]

    def test_long_work_prints_the_number_of_migrated_rows(self, capsys):
        steps, reported = iter([3, 4]), []

        def slow(_database, _limit):
            migrated = next(steps, 0)
            if not migrated:
                children.until(lambda: "Migrating: 7 rows migrated, " in read_output())
            return online.Counts(migrated, migrated)

        def read_output():
            reported.append(capsys.readouterr().err)
            return "".join(reported)

        with Progress("Migrating", "rows migrated", first=0.01) as progress:
            assert manage._migrate(None, {"slow": slow}, None, progress) == 0

    @pytest.mark.parametrize("count", ["0", "-1", "x", "1.5", ""])
    def test_an_invalid_count_is_refused(self, run, count):
        ran = run("db", "online_data_migrations", f"--max-count={count}")
        assert (ran.code, ran.out) == (127, "Must supply a positive value for max_count\n")


@pytest.fixture
def configure(tmp_path):
    """Return a function that writes a configuration with this URL, and returns its path."""
    return lambda url, more="": write_configuration(tmp_path, url, more)


@pytest.fixture
def command(main, tmp_path, monkeypatch):
    """Return a function that runs a command without a database and without any configuration of the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    return main


class TestCommandLine:
    """Arguments, configuration and help."""

    def test_a_command_line_without_arguments_shows_the_help_and_fails(self, command):
        ran = command()
        assert ran.code == 1
        assert ran.out.startswith("usage: placement-manage [-h] [--config-dir DIR] [--config-file PATH]")

    def test_a_configuration_file_alone_shows_the_help_and_fails(self, command, configure):
        ran = command("--config-file", str(configure("sqlite://")))
        assert ran.code == 1
        assert ran.out.startswith("usage: placement-manage [-h]")

    def test_db_alone_shows_its_help(self, command, configure):
        ran = command("--config-file", str(configure("sqlite://")), "db")
        assert (ran.code, ran.err) == (0, "")
        usage = "usage: placement-manage db [-h] {sync,version,stamp,release,restored,online_data_migrations,sweep}"
        assert " ".join(ran.out.split()).startswith(usage)

    @pytest.mark.parametrize("words", [["foo"], ["db", "foo"], ["db", "sync", "foo"], ["db", "stamp"]], ids=" ".join)
    def test_unknown_arguments_of_placement_manage_show_the_usage_and_fail_with_2(self, command, configure, words):
        ran = command("--config-file", str(configure("sqlite://")), *words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("usage: placement-manage ")

    def test_a_completion_that_cannot_be_written_is_reported_in_one_line(self, command):
        """Releases of oslo.config lack the template of the completion, and older releases also the option."""
        ran = command("--shell_completion", "bash")
        assert ran.code == 0 or ran.err.splitlines()[-1].startswith("placement-manage: ")
        assert "Traceback" not in ran.err

    def test_version(self):
        """Run the command in its own process."""
        argv = [sys.executable, "-m", "placement.cmd.manage", "--version"]
        ran = subprocess.run(argv, capture_output=True, text=True, cwd=Path(__file__).parents[3], timeout=PATIENCE)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{package.version()}\n", "")

    def test_a_configuration_directory_is_read(self, command, configure, tmp_path):
        directory = tmp_path / "conf.d"
        directory.mkdir()
        configure(f"sqlite:///{tmp_path}/a.sqlite").rename(directory / "a.conf")
        ran = command("--config-dir", str(directory), "db", "version")
        assert (ran.code, ran.out) == (0, "None\n")

    def test_the_directory_named_by_the_environment_is_read(self, command, configure, tmp_path, monkeypatch):
        """The service reads the same directory; otherwise a command would change another database."""
        configure(f"sqlite:///{tmp_path}/a.sqlite")
        monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path))
        ran = command("db", "version")
        assert (ran.code, ran.out) == (0, "None\n")

    def test_a_named_file_takes_precedence_over_the_environment(self, command, configure, tmp_path, monkeypatch):
        monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path / "nowhere"))
        ran = command("--config-file", str(configure(f"sqlite:///{tmp_path}/a.sqlite")), "db", "version")
        assert (ran.code, ran.out) == (0, "None\n")


class TestErrors:
    """Errors are reported in one line with the reason, without a traceback."""

    @staticmethod
    def complaint(ran):
        assert ran.code == 1
        assert "Traceback" not in ran.err
        return ran.err.splitlines()[-1]

    def test_no_connection_is_configured(self, command):
        assert "value required for option connection in group [placement_database]" in self.complaint(
            command("db", "sync")
        )

    def test_the_configuration_is_missing(self, command):
        ran = command("--config-file", "/nonexistent/placement.conf", "db", "sync")
        assert self.complaint(ran) == "placement-manage: Failed to find some config files: /nonexistent/placement.conf"

    @pytest.mark.parametrize("driver", ["mysql+pymysql", "postgresql+psycopg", "postgresql"])
    def test_the_server_does_not_answer(self, command, configure, driver):
        url = f"{driver}://someone:secret@127.0.0.1:{children.free_port()}/placement"
        ran = command("--config-file", str(configure(url)), "db", "sync")
        complaint = self.complaint(ran)
        assert complaint.startswith("placement-manage: The database cannot be reached.")
        assert "refused" in complaint
        assert "secret" not in ran.err

    @pytest.mark.parametrize("url", ["nonsense", "oracle5://x/y", "mysql+nodriver://x/y", "postgresql+asyncpg://x/y"])
    def test_the_url_is_wrong(self, command, configure, url):
        ran = command("--config-file", str(configure(url)), "db", "sync")
        assert self.complaint(ran).startswith("placement-manage: [placement_database]connection: ")

    def test_an_option_is_wrong(self, command, configure):
        ran = command("--config-file", str(configure("sqlite://", "max_pool_size = many")), "db", "sync")
        assert "max_pool_size" in self.complaint(ran)


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_no_consumer_is_created_for_allocations_deleted_meanwhile(database, database_url):
    """SQLite has no concurrent transactions."""
    made.sync(database.engine)
    fill(database, ownerless=1)
    with opened(database_url) as other:

        def delete_them(statement):
            if "INTO consumers" in statement:
                execute(other.engine, sa.delete(tables.allocations))

        with sql_hooks.statements(database.engine, delete_them):
            assert online.IncompleteConsumers(OWNER, OWNER)(database, 9) == online.Counts(0, 0)
    assert execute(database.engine, sa.select(tables.consumers.c.uuid)) == []


def test_sweep_prints_the_marked_and_removed_rows(database, run):
    """The message names the state of a database that is not ready."""
    assert run("db", "sweep").code == 1
    made.sync(database.engine)
    made.release(database.engine, schema.COMMON_HEADS[0])
    ran = run("db", "sweep")
    assert ran.code == 1
    assert 'Run "placement-manage db sync"' in ran.err
    made.sync(database.engine)
    execute(database.engine, sa.insert(tables.projects).values(external_id="gone"))
    for row in ("projects 0 1", "projects 1 0"):
        ran = run("db", "sweep", "--grace", "0")
        assert ran.code == 0
        assert row in re.sub(r"[ |]+", " ", ran.out)
    assert run("db", "sweep", "--grace", "soon").code == 2


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_tables_of_another_application_are_reported_in_one_line(database, run):
    execute(database.engine, sa.text("CREATE TABLE alembic_version (other INT)"))
    ran = run("db", "version")
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert ran.err.splitlines()[-1].startswith('placement-manage: column "version_num" does not exist')
