"""placement-manage consumers with lists of known consumers: unknown ones are found and released."""

from __future__ import annotations

import csv
import io
import json
import re
import time

import pytest
import sqlalchemy as sa

from placement.cmd import manage
from placement.db.schema.tables import allocations, consumers, provider_changes
from placement.extensions.orphans import command as command
from placement.extensions.orphans import consumers as reading
from placement.extensions.v1.history import event
from placement.objects.claims import consumer_pages, release
from tests.db import sql_hooks
from tests.db.cloud import FLAVOR, Cloud

OTHER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa"


@pytest.fixture
def cloud(database, tmp_path, monkeypatch, in_process):
    return Cloud(database, tmp_path, monkeypatch, in_process)


def findings(ran):
    """Return the uuids of the findings, by kind."""
    document = json.loads(ran.out)
    kinds = {}
    for finding in document["found"]:
        kinds.setdefault(finding["kind"], set()).add(finding["consumer"])
    return kinds


class TestAll:
    def test_all_consumers_are_shown_with_their_allocations(self, cloud):
        first = cloud.claim(host1={"VCPU": 2, "MEMORY_MB": 512}, pool={"DISK_GB": 20})
        second = cloud.claim(kind=None, project="blue", days=0)
        ran = cloud.run()
        assert ran.code == 0
        header, first_row, second_row, number = ran.out.splitlines()
        assert header.split() == ["consumer", "type", "project", "user", "age", "holds"]
        assert first_row.split(None, 5) == [
            *(first, "INSTANCE", "red", "ann", "2d"),
            "host1: 2 VCPU, 512 MEMORY_MB; pool: 20 DISK_GB",
        ]
        assert second_row.split()[:4] == [second, "unknown", "blue", "ann"]
        assert re.fullmatch(r"\dm", second_row.split()[4])
        assert number == "2 consumers"

    def test_consumers_are_printed_as_json(self, cloud):
        made = [cloud.claim(), cloud.claim()]
        documents = json.loads(cloud.run("--json").out)["consumers"]
        assert [document["consumer"] for document in documents] == made
        host = cloud.providers["host1"]
        assert documents[0]["allocations"] == {host: {"name": "host1", "resources": FLAVOR}}
        assert (documents[0]["type"], documents[0]["project"], documents[0]["user"]) == ("INSTANCE", "red", "ann")
        assert documents[0]["age_seconds"] == pytest.approx(2 * 86400, abs=3600)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", documents[0]["created_at"])
        assert documents[0]["expires_at"] is None

    def test_consumers_are_printed_as_comma_separated_values(self, cloud):
        made = cloud.claim(host1={"VCPU": 2, "MEMORY_MB": 512})
        rows = [*csv.DictReader(io.StringIO(cloud.run("--csv").out))]
        assert [(row["consumer"], row["provider_name"], row["resource_class"], row["used"]) for row in rows] == [
            (made, "host1", "VCPU", "2"),
            (made, "host1", "MEMORY_MB", "512"),
        ]

    @pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)"])
    def test_comma_separated_values_contain_no_formulas_and_control_characters(self, cloud, name):
        cloud.claim(project=f"{name}\x1b[2J")
        path = cloud.file(cloud.claim(project="other"))
        for words in ([], ["--not-in", path]):
            row = next(csv.DictReader(io.StringIO(cloud.run(*words, "--csv").out)))
            assert row["project"] == f"'{name}\ufffd[2J"

    def test_consumers_are_selected_by_conditions(self, cloud):
        red, blue = cloud.claim(), cloud.claim(project="blue")
        moved, untyped = cloud.claim(kind="MIGRATION", days=40), cloud.claim(kind=None, days=0)

        def consumers(*words):
            return [consumer["consumer"] for consumer in json.loads(cloud.run("--json", *words).out)["consumers"]]

        assert consumers("--project", "blue") == [blue]
        assert consumers("--project", "nobody") == []
        assert consumers("--type", "MIGRATION") == [moved]
        assert consumers("--type", "MIGRATION", "--type", "unknown") == [moved, untyped]
        assert consumers("--older-than", "30d") == [moved]
        assert consumers("--older-than", "47h") == [red, blue, moved]

    def test_a_consumer_is_as_old_as_its_last_change(self, cloud):
        consumer = cloud.claim(days=40)
        cloud.age(consumer, 1, "updated_at")
        assert json.loads(cloud.run("--json", "--older-than", "2d").out)["consumers"] == []
        cloud.age(consumer, None)
        assert json.loads(cloud.run("--json", "--older-than", "1m").out)["consumers"] == []
        assert json.loads(cloud.run("--json").out)["consumers"][0]["age_seconds"] is None

    def test_control_characters_do_not_reach_the_terminal(self, cloud):
        cloud.claim(project="re\x1b[31md")
        assert "\x1b" not in cloud.run().out

    def test_no_statement_reads_more_than_a_page(self, cloud, monkeypatch):
        monkeypatch.setattr(reading, "PAGE", 2)
        made = [cloud.claim() for _ in range(5)]
        seen = []
        with sql_hooks.statements(cloud.database.reading_engine, seen.append):
            holders = [page.holder.uuid for page in reading.read(cloud.database, consumer_pages.ConsumerFilter())]
        assert holders == made
        # The time, and three pages of four statements: names, bound, consumers and trees.
        selects = [statement for statement in seen if statement.startswith("SELECT")]
        assert len(selects) == 1 + 3 * 4
        assert sum("FROM allocations" in statement or "JOIN allocations" in statement for statement in selects) == 3


class TestLists:
    def test_a_consumer_missing_in_the_file_is_an_orphan(self, cloud):
        listed_consumer, orphan, young = cloud.claim(), cloud.claim(), cloud.claim(days=0)
        ran = cloud.run("--not-in", cloud.file("# servers", "", listed_consumer, OTHER), "--json")
        assert ran.code == command.DISCREPANCIES
        assert findings(ran) == {"orphan": {orphan}, "young": {young}}
        summary = json.loads(ran.out)["summary"]
        assert (summary["compared"], summary["named_and_hold_nothing"]) == (3, 1)
        assert summary["found"]["orphan"] == 1

    def test_no_findings_is_a_success_and_young_consumers_are_not_findings(self, cloud):
        listed_consumer = cloud.claim()
        cloud.claim(days=0)
        ran = cloud.run("--not-in", cloud.file(listed_consumer))
        assert ran.code == 0
        assert "young" in ran.out

    def test_lists_are_read_from_stdin_and_several_files(self, cloud, monkeypatch):
        first, second, third = cloud.claim(), cloud.claim(), cloud.claim()
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{first}\n"))
        ran = cloud.run("--not-in", "-", "--not-in", cloud.file(second), "--json")
        assert findings(ran) == {"orphan": {third}}

    def test_a_uuid_is_recognized_in_another_form(self, cloud):
        made = [cloud.claim(), cloud.claim(), cloud.claim()]
        lines = (made[0].upper(), made[1].replace("-", ""), f'"{made[2]}"')
        assert cloud.run("--not-in", cloud.file(*lines)).code == 0
        with cloud.database.engine.begin() as connection:
            for table, column in ((consumers, consumers.c.uuid), (allocations, allocations.c.consumer_id)):
                connection.execute(sa.update(table).where(column == made[0]).values({column.name: made[0].upper()}))
        assert cloud.run("--not-in", cloud.file(*made)).code == 0

    @pytest.mark.parametrize("lines", [[], ["", "# none"]])
    def test_an_empty_file_is_refused(self, cloud, lines):
        made = cloud.claim()
        for words in ((), ("--release", "--older-than", "1h", "--yes", "--force")):
            ran = cloud.run("--not-in", cloud.file(*lines), *words)
            assert (ran.code, ran.out) == (1, "")
            assert "names no consumers" in ran.err
        assert cloud.consumers() == {made}
        assert cloud.run("--not-in", cloud.file(*lines), "--allow-empty").code == command.DISCREPANCIES

    def test_a_line_that_is_not_a_uuid_is_refused_with_its_number(self, cloud):
        made = cloud.claim()
        path = cloud.file(OTHER, "", "ID")
        ran = cloud.run("--not-in", path, "--release", "--older-than", "1h", "--yes", "--force")
        assert (ran.code, ran.out, ran.err) == (1, "", f"placement-manage: {path}:3: 'ID' is not a uuid\n")
        assert cloud.consumers() == {made}

    def test_a_file_that_cannot_be_read_is_reported_in_one_line(self, cloud, tmp_path):
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
        for path in (tmp_path / "none", tmp_path, tmp_path / "binary"):
            ran = cloud.run("--not-in", str(path))
            assert (ran.code, ran.err.count("\n")) == (1, 1)
            assert "cannot be read" in ran.err

    def test_migrations_are_in_no_list_of_servers(self, cloud):
        listed_consumer, move = cloud.claim(), cloud.claim(kind="MIGRATION")
        ran = cloud.run("--not-in", cloud.file(listed_consumer), "--json")
        assert (ran.code, json.loads(ran.out)["summary"]["not_compared"]) == (0, {"MIGRATION": 1})
        assert findings(cloud.run("--not-in", cloud.file(listed_consumer), "--type", "MIGRATION", "--json")) == {
            "orphan": {move}
        }

    def test_types_missing_in_a_file_are_not_compared(self, cloud):
        """A list of servers does not cover jobs."""
        listed_consumer, orphan = cloud.claim(), cloud.claim()
        jobs = [cloud.claim(kind="JOB") for _ in range(2)]
        words = ("--not-in", cloud.file(listed_consumer), "--json")
        ran = cloud.run(*words)
        assert findings(ran) == {"orphan": {orphan}}
        summary = json.loads(ran.out)["summary"]
        assert (summary["compared"], summary["not_compared"]) == (2, {"JOB": 2})
        assert findings(cloud.run("--not-in", cloud.file(listed_consumer, jobs[0]), "--json")) == {
            "orphan": {orphan, jobs[1]}
        }
        assert findings(cloud.run("--not-in", cloud.file(listed_consumer), "--type", "JOB", "--json")) == {
            "orphan": {*jobs}
        }
        assert findings(cloud.run("--not-in", cloud.file(), "--allow-empty", "--json")) == {"orphan": cloud.consumers()}
        text = cloud.run("--not-in", cloud.file(listed_consumer)).out
        assert "Not compared, because of their type: 2 JOB.  Choose types with --type." in text

    def test_a_list_that_names_no_consumer_of_this_cloud_releases_nothing(self, cloud):
        made = {cloud.claim(), cloud.claim(kind="JOB")}
        path = cloud.file(OTHER)
        assert findings(cloud.run("--not-in", path, "--json")) == {"orphan": made}
        ran = cloud.run("--not-in", path, "--release", "--older-than", "1d", "--yes")
        assert (ran.code, cloud.consumers()) == (1, made)
        assert "incomplete" in ran.err

    def test_the_time_of_reading_a_list_does_not_count_as_age(self, cloud, monkeypatch):
        """A server created after its page was sent is in no page, and is younger than the command."""
        listed_consumer = cloud.claim()

        def slowly():
            yield f"{listed_consumer}\n"
            cloud.claim(OTHER, days=0)
            time.sleep(2.1)

        monkeypatch.setattr("sys.stdin", slowly())
        ran = cloud.run("--not-in", "-", "--release", "--older-than", "2s", "--yes", "--force", "--json")
        assert findings(ran) == {"young": {OTHER}}
        assert cloud.consumers() == {listed_consumer, OTHER}

    def test_a_project_and_a_type_can_be_selected(self, cloud):
        cloud.claim()
        blue, lease = cloud.claim(project="blue"), cloud.claim(kind="LEASE", project="blue")
        listed_consumers = [cloud.claim(), cloud.claim(kind="LEASE")]
        words = ("--not-in", cloud.file(*listed_consumers), "--project", "blue", "--json")
        assert findings(cloud.run(*words)) == {"orphan": {blue, lease}}
        assert findings(cloud.run(*words, "--type", "LEASE")) == {"orphan": {lease}}

    def test_findings_are_printed_as_text_and_as_comma_separated_values(self, cloud):
        listed_consumer, orphan = cloud.claim(), cloud.claim()
        path = cloud.file(listed_consumer)
        text = cloud.run("--not-in", path).out
        assert f"orphan {orphan} (INSTANCE, project red, age 2d): unknown; holds host1: 2 VCPU" in text
        assert re.search(r"\| +orphans +\| +1 +\|", text)
        [row] = csv.DictReader(io.StringIO(cloud.run("--not-in", path, "--csv").out))
        assert (row["kind"], row["consumer"], row["project"]) == ("orphan", orphan, "red")


class TestRelease:
    WORDS = ("--release", "--older-than", "1d")

    def test_a_dry_run_shows_the_amounts_to_release_and_writes_nothing(self, cloud):
        listed_consumers = [cloud.claim(), cloud.claim(), cloud.claim()]
        cloud.claim(host2={"VCPU": 7}, pool={"DISK_GB": 3})
        cloud.claim(project="blue", host2={"VCPU": 1})
        # The command opens its own engines.
        with sql_hooks.writes(sa.Engine) as written:
            ran = cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS)
        assert (ran.code, written, len(cloud.consumers())) == (command.DISCREPANCIES, [], 5)
        assert "Dry run: nothing was released.  Consumers that --yes releases: 2.\n" in ran.out
        for row in (r"INSTANCE +\| +blue +\| +1", r"VCPU +\| +8", r"DISK_GB +\| +3", r"host2 +\| +2", r"pool +\| +1"):
            assert re.search(rf"\| +{row} +\|", ran.out)
        document = json.loads(cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--json").out)[
            "release"
        ]
        assert (document["dry_run"], document["amounts"]) == (True, {"VCPU": 8, "DISK_GB": 3})
        assert (len(document["consumers"]), document["released"]) == (2, [])

    def test_old_orphans_are_released_in_batches_and_recorded_in_the_feed(self, cloud, monkeypatch):
        monkeypatch.setattr(release, "BATCH", 2)
        listed_consumers = [cloud.claim() for _ in range(6)]
        orphans = [cloud.claim(host2={"VCPU": 1}) for _ in range(5)]
        young = cloud.claim(days=0.5)
        before = _changes(cloud)
        ran = cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--yes")
        assert ran.code == 0
        assert "Released consumers: 5 of 5.\n" in ran.out
        assert cloud.consumers() == {*listed_consumers, young}
        # One change of usage for each of the three transactions.
        assert _changes(cloud) - before == 3
        second_run = cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--yes", "--json")
        assert (second_run.code, json.loads(second_run.out)["release"]["released"]) == (0, [])
        assert not set(orphans) & cloud.consumers()

    def test_the_history_names_the_command_as_the_cause(self, cloud):
        listed_consumer, orphan = cloud.claim(), cloud.claim()
        assert cloud.run("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes").code == 0
        cloud.database.recorder.order()
        condition = event.EventFilter(uuids=(orphan,))
        last = cloud.database.snapshot(lambda db: event.page(db, condition, 1, newest_first=True)).events[0]
        assert last.generations[1] is None
        assert (last.request["api"], last.request["route"]) == ("placement-manage", "consumers")

    def test_a_release_of_more_than_half_is_refused(self, cloud):
        listed_consumer, orphans = cloud.claim(), {cloud.claim(), cloud.claim()}
        words = ("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes")
        ran = cloud.run(*words)
        assert ran.code == 1
        assert "2 of 3 consumers would be released, more than half" in ran.err
        assert "--yes releases" not in ran.out
        assert cloud.consumers() == {listed_consumer, *orphans}
        assert cloud.run(*words, "--force").code == 0
        assert cloud.consumers() == {listed_consumer}

    def test_a_release_of_half_is_accepted(self, cloud):
        listed_consumer, _ = cloud.claim(), cloud.claim()
        assert cloud.run("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes").code == 0
        assert cloud.consumers() == {listed_consumer}

    def test_a_consumer_that_changed_since_it_was_read_is_kept(self, cloud, monkeypatch):
        listed_consumers = [cloud.claim(), cloud.claim()]
        first, second = cloud.claim(), cloud.claim()
        release_orphans = command.releasing.release_orphans

        def late(*arguments):
            cloud.claim(first, generation=1, host2={"VCPU": 1})
            release_orphans(*arguments)

        monkeypatch.setattr(command.releasing, "release_orphans", late)
        ran = cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--yes")
        assert ran.code == command.DISCREPANCIES
        assert f"kept {first}: it has changed or been released since it was read\n" in ran.out
        assert cloud.consumers() == {*listed_consumers, first}
        assert second not in cloud.consumers()

    def test_consumers_of_unknown_age_are_never_released(self, cloud):
        listed_consumer, other = cloud.claim(), cloud.claim()
        cloud.age(other, None)
        assert cloud.run("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes", "--force").code == 0
        assert cloud.consumers() == {listed_consumer, other}

    def test_a_consumer_that_may_be_a_migration_is_kept(self, cloud):
        listed_consumer, other, move = cloud.claim(), cloud.claim(kind=None), cloud.claim(kind="MIGRATION")
        untyped = cloud.claim(kind=None)
        words = ("--not-in", cloud.file(listed_consumer, other), *self.WORDS, "--yes", "--force")
        ran = cloud.run(*words)
        assert ran.code == command.DISCREPANCIES
        assert "1 orphans of unknown type are kept" in ran.out
        assert cloud.consumers() == {listed_consumer, other, move, untyped}
        assert cloud.run(*words, "--type", "unknown").code == 0
        assert cloud.consumers() == {listed_consumer, other, move}

    def test_a_failure_between_batches_shows_the_released_consumers(self, cloud, monkeypatch):
        monkeypatch.setattr(release, "BATCH", 1)
        listed_consumers = [cloud.claim(), cloud.claim()]
        orphans = [cloud.claim(), cloud.claim()]
        end, released = release.end, []

        def fails(db, ending):
            if released:
                raise KeyboardInterrupt
            released.append(ending)
            end(db, ending)

        monkeypatch.setattr(release, "end", fails)
        ran = cloud.run("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--yes", "--json")
        assert ran.code == 130
        released = json.loads(ran.out)["release"]
        assert (released["released"], released["kept"], released["not_reached"]) == (orphans[:1], [], orphans[1:])
        assert cloud.consumers() == {*listed_consumers, orphans[1]}

    @pytest.mark.every_database
    def test_a_consumer_that_ended_and_was_created_again_is_kept(self, cloud, monkeypatch):
        """The new consumer has the same generation, the same allocations, and on SQLite the same id."""
        listed_consumer, orphan = cloud.claim(), cloud.claim()
        release_orphans = command.releasing.release_orphans

        def late(*arguments):
            cloud.database.write(lambda db: release.end_consumer(db, orphan))
            cloud.claim(orphan, days=0)
            release_orphans(*arguments)

        monkeypatch.setattr(command.releasing, "release_orphans", late)
        assert cloud.run("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes").code == command.DISCREPANCIES
        assert cloud.consumers() == {listed_consumer, orphan}

    def test_a_release_of_more_than_half_of_a_type_is_refused(self, cloud):
        """The list of that service is probably missing or incomplete, even if its consumers are few among all."""
        listed_consumers = [*(cloud.claim() for _ in range(30)), cloud.claim(kind="LEASE")]
        leases = {cloud.claim(kind="LEASE") for _ in range(11)}
        words = ("--not-in", cloud.file(*listed_consumers), *self.WORDS, "--yes")
        assert cloud.run(*words).code == 1
        assert cloud.consumers() == {*listed_consumers, *leases}

    def test_claims_of_bare_metal_are_in_no_list_of_servers(self, cloud):
        listed_consumer, metal = cloud.claim(), cloud.claim(kind="BAREMETAL")
        assert cloud.run("--not-in", cloud.file(listed_consumer), *self.WORDS, "--yes", "--force").code == 0
        assert cloud.consumers() == {listed_consumer, metal}


def _changes(cloud):
    counted = sa.select(sa.func.count()).select_from(provider_changes)
    return cloud.database.read(lambda db: db.execute(counted).scalar_one())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True, scope="session")
class TestArguments:
    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--release", "--older-than", "1d"], "--release requires --not-in, --nova or --ironic"),
            (["--release", "--not-in", "x"], "--release requires --older-than"),
            (["--yes"], "--yes and --force require --release"),
            (["--not-in", "-", "--not-in", "-"], "stdin can be read only once"),
            (["--json", "--csv"], "not allowed with"),
            (["--older-than", "30"], "'30' is not an age"),
            (["--older-than", "0d"], "'0d' is not an age"),
            (["--older-than", "99999999w"], "out of range"),
            (
                ["--release", "--older-than", "1d", "--not-in", "x", "--type", "MIGRATION"],
                "--release of migrations requires --nova",
            ),
        ],
    )
    def test_incompatible_arguments_are_refused(self, cloud, words, sentence):
        ran = cloud.run(*words)
        assert (ran.code, ran.out) == (2, "")
        assert sentence in ran.err

    def test_a_database_without_tables_is_named(self, database_url, in_process, monkeypatch):
        monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", database_url)
        ran = in_process(manage, "consumers")
        assert (ran.code, ran.out) == (1, "")
        assert "db sync" in ran.err
