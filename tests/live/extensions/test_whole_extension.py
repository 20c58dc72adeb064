"""The extension of docs/whole-extension.rst, installed beside the service, works as the page shows."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from pathlib import Path

import pytest

from tests import transcripts
from tests.docs import distribution
from tests.docs.blocks import PAGES, ROOT, blocks, text_of

PAGE = "docs/whole-extension.rst"
BLOCKS = [*blocks(PAGES[PAGE])]
COMMANDS = [step for block in BLOCKS if block.kind == "console" for step in transcripts.steps(block.text)]
#: A program that sends the requests of the page, compares the responses, and prints the metrics.
PROGRAM = f"""
from pathlib import Path
from placement import conf, deploy
from placement.metrics.directory import Directory
from tests.docs import examples

options = conf.load([])
examples.run(examples.parse(Path("{ROOT}/{PAGE}").read_text()), deploy.loadapp(options))
print(Directory(options.metrics.directory).text()[0].decode())
"""


class Host:
    """A directory with the commands of the service, its own database, and the extension."""

    def __init__(self, directory: Path) -> None:
        distribution.install(PAGE, directory / "site")
        transcripts.install(directory / "bin")
        (directory / "placement.conf").write_text(
            f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{directory}/placement.sqlite\n"
            f"[metrics]\ndirectory = {directory}/metrics\n[notes]\nmax_length = 20\n"
        )
        self.directory, inherited = directory, transcripts.environment()
        self._environment = inherited | {
            "PATH": f"{directory}/bin:{inherited['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{directory}/site",
            "OS_PLACEMENT_CONFIG_DIR": str(directory),
        }

    def run(self, *commands: str) -> tuple[list[str], str]:
        """Return the output of each command, and the stderr of all commands together."""
        return transcripts.run([*commands], self.directory, self._environment)

    def python(self, program: str) -> str:
        """Return the output of a program; raise AssertionError if it fails."""
        (self.directory / "program.py").write_text(program)
        (printed, ended), errors = self.run(f"{sys.executable} program.py; ended=$?", "echo $ended")
        assert ended == "0\n", errors
        return printed

    @property
    def tables(self) -> set[str]:
        with sqlite3.connect(self.directory / "placement.sqlite") as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_the_table_api_option_command_check_and_metric_work_as_shown(host):
    (sync, _), *other_commands = COMMANDS
    _, log = host.run(sync)
    assert re.search(r"Adding tables, columns or indexes of extensions: .*\bnotes\b", log)
    assert "notes" in host.tables
    metrics = host.python(PROGRAM)
    (sample,) = (block.text for block in BLOCKS if block.kind == "text")
    assert sample in metrics
    assert [command.split()[1] for command, _ in other_commands] == ["note", "doctor"]
    printed, _ = host.run(*(command for command, _ in other_commands))
    for (command, expected), output in zip(other_commands, printed, strict=True):
        assert transcripts.pattern(expected).fullmatch(output.strip("\n")), f"$ {command}\n{output}"


def test_a_command_without_its_table_or_its_note_fails_with_one_line(host):
    note = "placement-manage note 00000000-0000-4000-8000-000000000000; echo $?"
    printed, errors = host.run(note, "placement-manage db sync 2>&1", note)
    assert (printed[0], printed[2]) == ("1\n", "1\n")
    assert errors.splitlines() == [
        'placement-manage: The database has no tables yet. Run "placement-manage db sync".',
        "placement-manage: No note for 00000000-0000-4000-8000-000000000000",
    ]


def test_notes_are_not_lost_by_mistake(host):
    host.run("placement-manage db sync")
    host.python(PROGRAM)
    _, errors = host.run("placement-manage db release --force")
    assert errors.splitlines()[-1].endswith('There are 1 notes: "db release" drops them with --discard-notes.')
    assert "notes" in host.tables
    host.run("placement-manage db release --force --discard-notes")
    assert "notes" not in host.tables


def test_the_test_of_the_extension_passes(host):
    host.python(text_of(PAGE, "test_notes.py") + "\nimport unittest\nunittest.main()\n")
