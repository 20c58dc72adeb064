"""tools/compare_with_original.py reports the differences that matter to an operator, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests import children, closed, made, running, transcripts
from tests.db import openstack_database
from tests.docs.run_by import blocks_of
from tests.made import opened

SCRIPT = Path(__file__).parents[2] / "tools" / "compare_with_original.py"


@pytest.fixture
def service(database_url):
    """Our service on a database that the original filled."""
    with opened(database_url) as database:
        openstack_database.make(database.engine, openstack_database.NEWEST)
        made.sync(database.engine)
    with running.embedded(database_url) as service:
        yield service


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the script like an operator, with a Python without packages.

    Dates of the last hour count as "now", since a start or a response may be slow on a busy machine.
    """
    script, now = tmp_path / SCRIPT.name, "\nMAX_NOW_AGE = 2\n"
    assert now in SCRIPT.read_text()
    script.write_text(SCRIPT.read_text().replace(now, "\nMAX_NOW_AGE = 3600\n"))

    def run_script(*words):
        argv = [sys.executable, "-I", "-S", str(script), *words, "--versions", "1.39"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=children.PATIENCE)

    return run_script


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_only_the_change_is_reported(service, run, tmp_path):
    before, after = str(tmp_path / "before"), str(tmp_path / "after")
    assert run("record", service.url, before).returncode == 0
    unchanged = run("compare", before, service.url)
    assert unchanged.returncode == 0
    count = len(Path(before).read_text().splitlines())
    assert count > 100
    assert unchanged.stdout == f"{count} responses compared, 0 differ, 0 were errors (5xx) of the first service only\n"

    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
    path = f"/allocations/{openstack_database.MIGRATION}"
    urllib.request.urlopen(
        urllib.request.Request(service.url + path, headers=headers, method="DELETE"), timeout=children.PATIENCE
    )
    changed = run("compare", before, service.url)
    assert changed.returncode == 1
    differences = {line for line in changed.stdout.splitlines() if " GET " in line}
    assert changed.stdout.endswith(
        f"{count} responses compared, {len(differences)} differ, 0 were errors (5xx) of the first service only\n"
    )
    assert f"1.39 GET {path}" in differences
    assert f"1.39 GET /resource_providers/{openstack_database.NUMA1}/usages" in differences
    assert not [line for line in differences if "/aggregates" in line or "/traits" in line]

    run("record", service.url, after)
    Path(after).write_text("\n".join(Path(after).read_text().splitlines()[:-1]))
    assert run("compare", service.url, after).stdout.count(" GET ") == 1, (
        "only the request missing from the recording is reported"
    )


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_commands_of_the_page_of_the_migration_work(database_url, run, shell, tmp_path):
    before, record, after, shown_block = blocks_of(__file__, "docs/upgrade.rst")
    table = re.sub(r"\S+ \(cn7\)", f"{openstack_database.FULL} (full)", shown_block.text)
    full = transcripts.pattern(_narrow(table.replace(" 1 inventory: ", " 2 inventories: ")))
    with opened(database_url) as database:
        openstack_database.make(database.engine, openstack_database.NEWEST)
    shell.variables |= {"OS_PLACEMENT_DATABASE__CONNECTION": database_url, "TOKEN": "admin", "OS_TOKEN": "admin"}
    shell.stand_in("nova-status", 'test "$*" = "upgrade check"')
    revision, check = shell.run(before.text, codes=(0, 1, 2))
    assert revision.out.strip() in revision.command
    assert full.search(_narrow(check.out)), check.out
    shell.run("placement-manage db sync")
    with running.embedded(database_url) as service:
        shell.variables |= {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": service.url}
        # One of 25 versions suffices here.
        replacements = {"http://controller/placement": service.url, "--token": "--versions 1.39 --token"}
        shell.run(record.text, replacements)
        revision, check, compared, *_ = shell.run(after.text, replacements, codes=(0, 1, 2))
    assert revision.command.endswith(f"# {revision.out.strip()}")
    assert full.search(_narrow(check.out)), check.out
    assert (compared.code, " 0 differ, " in compared.out) == (0, True), compared


def _narrow(table):
    return re.sub(" +", " ", table.strip())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_service_that_refuses_the_token_is_reported(service, run, tmp_path):
    """Otherwise all responses would be equal refusals."""
    done = run("record", service.url, str(tmp_path / "refused"), "--token", "user")
    assert done.returncode == 1
    assert "The service refuses access" in done.stderr


def test_an_incomplete_recording_is_removed(run, tmp_path):
    (tmp_path / "there").mkdir()
    done = run("record", closed.URL, str(tmp_path / "there" / "before"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "refused" in done.stderr
    assert not list((tmp_path / "there").iterdir())
