"""The commands of docs/backup.rst: a backup is one state of a running service, and a restore brings it back."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement.cmd import manage
from tests.conftest import missing
from tests.db.in_process import placement

PAGE = (Path(__file__).parents[2] / "docs" / "backup.rst").read_text()
COMMANDS = re.findall(r"``((?:sqlite3|mariadb-dump|mariadb|pg_dump|pg_restore) .*?)``", re.sub(r"\s+", " ", PAGE))


def command(backend, url, backup, index):
    """Return the command of the page for this database, with the names of the test, and its environment."""
    url = sa.make_url(url)
    programs = {"sqlite": ["sqlite3"], "mariadb": ["mariadb-dump", "mariadb"], "postgresql": ["pg_dump", "pg_restore"]}
    text = [text for text in COMMANDS if text.split()[0] in programs[backend.kind]][index]
    if shutil.which(text.split()[0]) is None:
        missing(f"{text.split()[0]} is not installed")
    text = re.sub(r"/backup/placement\.\w+", str(backup), text)
    if backend.kind == "sqlite":
        return text.replace("/var/lib/placement/placement.sqlite", url.database), {}
    text = re.sub(r"(?<=[ =])placement(?= |$)", url.database, text)
    client = f"{text.split()[0]} --host={url.host} --port={url.port} --user" + (
        f"={url.username} --protocol=tcp" if backend.kind == "mariadb" else f"name={url.username}"
    )
    passwords = {"mariadb": "MYSQL_PWD", "postgresql": "PGPASSWORD"}
    return text.replace(text.split()[0], client, 1), {passwords[backend.kind]: url.password}


def run(text, more):
    done = subprocess.run(["sh", "-c", text], env=os.environ | more, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


def test_a_restore_brings_the_state_of_the_backup_back(backend, database, in_process, monkeypatch, tmp_path):
    call = placement(database)
    url = database.engine.url.render_as_string(hide_password=False)

    def create(name):
        body = {"name": name, "uuid": str(uuid.uuid4())}
        assert call("POST", "/resource_providers", 39, body).status == 200

    def listed():
        return [each["name"] for each in call("GET", "/resource_providers").body["resource_providers"]]

    create("before")
    run(*command(backend, url, tmp_path / "dump", 0))
    create("after")
    assert sorted(listed()) == ["after", "before"]
    database.dispose()
    run(*command(backend, url, tmp_path / "dump", 1))
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    assert in_process(manage, "db", "restored").code == 0
    assert listed() == ["before"]
    create("later")


def test_the_page_has_a_backup_and_a_restore_for_each_database():
    assert [shlex.split(text)[0] for text in COMMANDS] == [
        "sqlite3", "mariadb-dump", "pg_dump", "sqlite3", "mariadb", "pg_restore",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["db sync", "db restored", "upgrade check"])
def test_the_page_names_what_follows_a_restore(word):
    assert word in PAGE
