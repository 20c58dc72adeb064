"""Every command of docs/tutorial.rst is run, in its order, and prints what is shown."""

from __future__ import annotations

import sys

import pytest

from tests import children, transcripts
from tests.docs.blocks import PAGES, blocks
from tests.transcripts import pattern

TUTORIAL = [*blocks(PAGES["docs/tutorial.rst"])]


@pytest.fixture
def directory(tmp_path):
    """A directory as a checkout in which ``make serve`` runs: with the files of the tutorial, and the commands."""
    for block in TUTORIAL:
        if block.caption:
            (tmp_path / block.caption).write_text(block.text)
    transcripts.install(tmp_path / ".venv/bin")
    return tmp_path


@pytest.fixture
def served(directory):
    """The service of the tutorial, on a free port."""
    service = children.Child(
        [sys.executable, "-m", "placement.cmd.serve", "--port", str(children.free_port())],
        directory / "log",
        cwd=directory,
        env=transcripts.environment(),
    )
    try:
        service.wait_until(lambda: "Ctrl-C" in service.log.read_text())
        yield
    finally:
        service.stop()


def test_every_command_prints_what_is_shown(served, directory):
    walked = [step for block in TUTORIAL if block.kind == "console" for step in transcripts.steps(block.text)]
    assert len(walked) == 21
    printed, errors = transcripts.run([command for command, _ in walked], directory, transcripts.environment())
    for (command, shown), output in zip(walked, printed, strict=True):
        assert pattern(shown).fullmatch(output.strip("\n")), f"$ {command}\n{output}\n{errors}"
    # On a busy machine a load reports its progress.
    lines = [line for line in errors.splitlines() if not line.startswith("load: ")]
    assert lines == ["Nothing fits job-7."]


def test_what_is_shown_is_compared():
    """The comparison itself: a line that differs, is missing or is one too many is found."""
    assert pattern("a\n...\nb").fullmatch("a\nx\ny\nb")
    assert pattern("a  ...  b").fullmatch("a  2026  b")
    assert pattern("a\n...").fullmatch("a\nx\ny")
    assert pattern("a\n...").fullmatch("a")
    assert not pattern("a\n...").fullmatch("ab")
    assert not pattern("a\nb").fullmatch("a\nc")
    assert not pattern("a\nb").fullmatch("a\nb\nc")
    assert not pattern("a\nb\nc").fullmatch("a\nb")
    assert not pattern("a...").fullmatch("a\nb")
