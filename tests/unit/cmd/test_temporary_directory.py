"""The directory of a demonstration is removed at its end, and after a kill by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from placement.cmd import temporary_directory as directory
from placement.cmd.temporary_directory import temporary_directory

#: Has such a directory with a file until its stdin ends.
PROGRAM = """
import sys
from placement.cmd.temporary_directory import temporary_directory
with temporary_directory() as directory:
    (directory / "data").write_text("x")
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The directory in which temporary ones are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.fixture
def program():
    """Another program, and its directory."""
    words = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield running, Path(running.stdout.readline().strip())


def test_it_is_removed_at_the_end(temporary):
    with temporary_directory() as mine:
        (mine / "data").write_text("x")
        assert list(temporary.iterdir()) == [mine]
    assert list(temporary.iterdir()) == []


def test_that_of_a_program_that_was_killed_is_removed_by_the_next(temporary, program):
    running, theirs = program
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert (theirs / "data").exists()
    with temporary_directory() as mine:
        assert list(temporary.iterdir()) == [mine]


def test_that_of_a_program_that_runs_stays(temporary, program):
    running, theirs = program
    with temporary_directory() as mine:
        assert set(temporary.iterdir()) == {mine, theirs}
        assert (theirs / "data").exists()
        running.communicate()
        assert list(temporary.iterdir()) == [mine]


def test_nothing_else_is_removed(temporary):
    """Neither another directory, nor what a link with such a name leads to."""
    other = temporary / "other"
    other.mkdir()
    link = temporary / "placement-demonstration-link"
    link.symlink_to(other)
    with temporary_directory() as mine:
        assert set(temporary.iterdir()) == {mine, other, link}


def test_one_that_is_removed_before_it_is_locked_is_made_again(temporary, monkeypatch):
    """Another program finds it without a lock, and takes it for one that is left."""
    make = directory.tempfile.mkdtemp
    made = []

    def removed_at_once(prefix):
        made.append(make(prefix=prefix))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr("placement.cmd.temporary_directory.tempfile.mkdtemp", removed_at_once)
    with temporary_directory() as mine:
        assert [str(mine), mine.exists(), len(made)] == [made[1], True, 2]


def test_many_at_once():
    failures = []

    def work():
        try:
            for _ in range(30):
                with temporary_directory() as mine:
                    (mine / "data").write_text("x")
        except OSError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
