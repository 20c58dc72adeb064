"""The table and the exit codes of placement-status, which deployment tools read (docs: commands)."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from placement.cmd import status
from placement.db.upkeep import online
from placement.objects import over_commitment
from placement.objects.over_commitment import OverCommitment
from tests import children, made
from tests.db import openstack_database
from tests.db.openstack_database import FULL, GHOST, OWNERLESS, ROOTLESS
from tests.made import opened

ALL_SUCCEED = """\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy Rules                       |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Misspelt Options                   |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Identity Service                   |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Used Above Capacity                |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
"""

SOME_FAIL = f"""\
+----------------------------------------------------------------------+
| Upgrade Check Results                                                |
+----------------------------------------------------------------------+
| Check: Missing Root Provider IDs                                     |
| Result: Failure                                                      |
| Details: Resource providers without a root provider id: 1. Run the   |
|   "placement-manage db online_data_migrations" command.              |
+----------------------------------------------------------------------+
| Check: Incomplete Consumers                                          |
| Result: Warning                                                      |
| Details: There are 1 incomplete consumers table records for existing |
|   allocations. Run the "placement-manage db                          |
|   online_data_migrations" command.                                   |
+----------------------------------------------------------------------+
| Check: Policy File JSON to YAML Migration                            |
| Result: Success                                                      |
| Details: None                                                        |
+----------------------------------------------------------------------+
| Check: Policy Rules                                                  |
| Result: Success                                                      |
| Details: None                                                        |
+----------------------------------------------------------------------+
| Check: Misspelt Options                                              |
| Result: Success                                                      |
| Details: None                                                        |
+----------------------------------------------------------------------+
| Check: Identity Service                                              |
| Result: Success                                                      |
| Details: None                                                        |
+----------------------------------------------------------------------+
| Check: Used Above Capacity                                           |
| Result: Warning                                                      |
| Details: Usage exceeds capacity in 2 inventories: inventory was      |
|   reduced after the claims, or claims were granted                   |
|   concurrently. No further claim is granted there until enough       |
|   is released.                                                       |
|   {FULL} (full): VCPU, 14 of 8         |
|   {FULL} (full): MEMORY_MB, 64 of 0    |
+----------------------------------------------------------------------+
"""


@pytest.fixture
def database(database_url):
    with opened(database_url) as database:
        yield database


@pytest.fixture
def check(tmp_path, database_url, in_process):
    """Return a function that runs the checks on the test's database; ``config`` is appended to the configuration."""

    def check(*words, url=database_url, config="", command=("upgrade", "check")):
        path = tmp_path / "placement.conf"
        path.write_text(f"[placement_database]\nconnection = {url}\nmax_retries = 0\n{config}\n")
        return in_process(status, "--config-file", str(path), *command, *words)

    return check


@pytest.fixture
def existing_database(database):
    """Return a database of OpenStack Placement with rows, some of them inconsistent."""
    openstack_database.make(database.engine, openstack_database.NEWEST)
    return database


def follow_advice(database):
    """Follow the advice of the checks."""
    online.set_root_provider_ids(database, 50)
    online.IncompleteConsumers("p", "u")(database, 50)


def test_a_new_database_passes_every_check(check, database):
    made.sync(database.engine)
    ran = check()
    assert (ran.code, ran.out) == (0, ALL_SUCCEED)


def test_inconsistent_rows_of_openstack_placement_are_reported(check, existing_database):
    ran = check()
    assert ran.out == SOME_FAIL
    assert ran.code == 2, "the exit code of the worst result"


def test_the_checks_run_before_and_after_the_switch(check, existing_database):
    before = check().out
    made.sync(existing_database.engine)
    assert check().out == before


def test_the_checks_run_at_the_first_revision(check, database):
    made.sync(database.engine, "b4ed3a175331")
    assert check().code == 0


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_misspelt_options_are_listed(check, database):
    made.sync(database.engine)
    ran = check("--json", config="[placement]\nmax_request_group = 7\n[api]\nnonsense = 1\n[of_others]\nx = 1\n")
    [result] = [check for check in json.loads(ran.out)["checks"] if check["check"] == "Misspelt Options"]
    assert (ran.code, result["result"]) == (1, "Warning")
    first, second = result["places"]
    assert first.endswith(": unknown option [placement]max_request_group; did you mean max_request_groups?")
    assert second.endswith("placement.conf: unknown option [api]nonsense")


def test_a_policy_rule_that_cannot_be_parsed_is_a_failure(check, existing_database, tmp_path):
    (tmp_path / "rules.yaml").write_text('"placement:traits:list": "role:admin or or"\n')
    ran = check("--json", config=f"[oslo_policy]\npolicy_file = {tmp_path}/rules.yaml")
    [result] = [check for check in json.loads(ran.out)["checks"] if check["check"] == "Policy Rules"]
    assert (ran.code, result["result"]) == (2, "Failure")
    [place] = result["places"]
    assert '"placement:traits:list" cannot be parsed' in place
    assert "Traceback" not in ran.err


def test_warnings_alone_exit_with_1(check, existing_database):
    follow_advice(existing_database)
    ran = check()
    assert ran.code == 1
    assert ran.out.count("Result: Success") == 6


def test_json_contains_every_check_and_place(check, existing_database):
    ran = check("--json")
    reported = json.loads(ran.out)
    assert ran.code == 2
    assert reported["name"] == "Upgrade Check Results"
    assert [(check["check"], check["result"]) for check in reported["checks"]] == [
        ("Missing Root Provider IDs", "Failure"),
        ("Incomplete Consumers", "Warning"),
        ("Policy File JSON to YAML Migration", "Success"),
        ("Policy Rules", "Success"),
        ("Misspelt Options", "Success"),
        ("Identity Service", "Success"),
        ("Used Above Capacity", "Warning"),
    ]
    assert reported["checks"][2] == {
        "check": "Policy File JSON to YAML Migration",
        "result": "Success",
        "details": None,
        "places": [],
    }
    assert reported["checks"][6]["places"] == [f"{FULL} (full): VCPU, 14 of 8", f"{FULL} (full): MEMORY_MB, 64 of 0"]


def test_consumers_are_counted_and_not_their_allocations(existing_database):
    """OWNERLESS has two allocations and no row; GHOST has a row and no allocation."""
    assert existing_database.read(online.count_ownerless) == 1
    with existing_database.engine.begin() as connection:
        connection.execute(sa.text(f"DELETE FROM consumers WHERE uuid = '{GHOST}'"))
        connection.execute(
            sa.text(f"UPDATE allocations SET consumer_id = 'other' WHERE consumer_id = '{OWNERLESS}' AND used = 2")
        )
    assert existing_database.read(online.count_ownerless) == 2


class TestOverCommitment:
    @pytest.fixture
    def find_over_committed(self, existing_database):
        """Return a function that returns the findings, by provider and class."""

        def find_over_committed():
            findings = OverCommitment.all(existing_database, lambda _: None)
            return {(place.uuid, place.resource_class): (place.used, place.capacity) for place in findings}

        return find_over_committed

    def change(self, existing_database, statement):
        with existing_database.engine.begin() as connection:
            connection.execute(sa.text(statement))

    def test_capacity_is_not_truncated_to_a_whole_number(self, existing_database, find_over_committed):
        """A capacity of 7.7 allows a usage of 7, not of 8; the ratio and the reserved amount count."""
        assert find_over_committed() == {(FULL, "VCPU"): (14, 8), (FULL, "MEMORY_MB"): (64, 0)}
        self.change(existing_database, "UPDATE inventories SET allocation_ratio = 1.75 WHERE resource_provider_id = 5")
        assert find_over_committed() == {(FULL, "MEMORY_MB"): (64, 0)}, "14 of 14 is not over-committed"
        self.change(existing_database, "UPDATE allocations SET used = 8 WHERE resource_provider_id = 3")
        assert find_over_committed()[openstack_database.NUMA1, "VCPU"] == (8, 7)

    def test_usage_without_inventory_is_reported_with_a_capacity_of_0(self, existing_database, find_over_committed):
        self.change(existing_database, "DELETE FROM inventories WHERE resource_provider_id = 6")
        assert find_over_committed()[ROOTLESS, "CUSTOM_FPGA"] == (1, 0)
        self.change(existing_database, "DELETE FROM resource_classes WHERE id = 10000")
        assert find_over_committed()[ROOTLESS, None] == (1, 0)

    def test_many_providers_are_read_in_batches(self, existing_database, find_over_committed, monkeypatch):
        monkeypatch.setattr(over_commitment, "_NEXT", over_commitment._NEXT.limit(2))
        batch_sizes = []
        findings = OverCommitment.all(existing_database, batch_sizes.append)
        assert batch_sizes == [2, 2, 2]
        assert (
            {(place.uuid, place.resource_class) for place in findings}
            == set(find_over_committed())
            == {(FULL, "VCPU"), (FULL, "MEMORY_MB")}
        )

    def test_the_table_shows_the_first_places_and_json_all_of_them(self, check, existing_database):
        with existing_database.engine.begin() as connection:
            connection.execute(sa.text("DELETE FROM inventories WHERE resource_provider_id = 5"))
            rows = [(f"c{number}", 5, number, 1) for number in range(2, 21)]
            openstack_database.insert(connection, "allocations", openstack_database.ROWS["allocations"][0], rows)
        ran = check()
        assert ran.out.count(FULL) == 20
        assert "|   and 1 more: --json prints all " in ran.out
        assert len(json.loads(check("--json").out)["checks"][-1]["places"]) == 21
        self.change(existing_database, "DELETE FROM allocations WHERE consumer_id = 'c20'")
        ran = check()
        assert ran.out.count(FULL) == 20
        assert "more: --json" not in ran.out


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
class TestPolicy:
    """The check of the policy; the rows of the database do not matter."""

    @pytest.fixture(autouse=True)
    def _sync(self, database):
        made.sync(database.engine)

    @pytest.mark.parametrize(
        ("text", "level"),
        [
            ('{"placement:usages": "role:admin"}', "Failure"),
            ('"placement:usages": "role:admin"', "Success"),
        ],
    )
    def test_a_json_file_is_a_failure_with_any_name(self, check, tmp_path, text, level):
        (tmp_path / "policy.yaml").write_text(text)
        ran = check(config=f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml")
        assert "| Check: Policy File JSON to YAML Migration" in ran.out
        assert ran.code == (2 if level == "Failure" else 0)
        assert ("oslopolicy-convert-json-to-yaml" in ran.out) == (level == "Failure")

    def test_a_missing_default_file_passes_and_a_missing_named_file_prevents_the_start(self, check, tmp_path):
        assert check().code == 0
        ran = check("--json", config=f"[oslo_policy]\npolicy_file = {tmp_path}/absent.json")
        failures = {check["check"] for check in json.loads(ran.out)["checks"] if check["result"] == "Failure"}
        assert (ran.code, failures) == (2, {"Policy Rules"})


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
class TestErrors:
    def test_a_database_that_does_not_answer_exits_with_255(self, check):
        ran = check(url=f"mysql+pymysql://someone:secret@127.0.0.1:{children.free_port()}/placement")
        assert (ran.code, ran.out) == (255, "")
        assert ran.err.splitlines()[-1].startswith("placement-status: The database cannot be reached.")
        assert "secret" not in ran.err

    def test_a_database_without_tables_exits_with_255(self, check):
        ran = check()
        assert (ran.code, ran.out) == (255, "")
        assert ran.err.splitlines()[-1].startswith("placement-status: The database has no tables yet.")

    def test_an_unexpected_error_exits_with_255_and_a_traceback(self, check, database, monkeypatch):
        made.sync(database.engine)
        monkeypatch.setitem(status.CHECKS, "Of numbers", lambda _subject: 1 // 0)
        ran = check()
        assert (ran.code, ran.out) == (255, "")
        assert "Traceback" in ran.err

    @pytest.mark.parametrize(
        "command", [[], ["upgrade"], ["upgrade", "foo"], ["foo"], ["upgrade", "check", "foo"]], ids=" ".join
    )
    def test_unknown_arguments_of_placement_status_show_the_usage_and_fail_with_2(self, check, command):
        ran = check(url="sqlite://", command=command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("usage: placement-status ")

    def test_help_shows_the_usage(self, check):
        ran = check("--help")
        assert ran.code == 0
        assert ran.out.startswith("usage: placement-status upgrade [-h] [--json] {check}")
