"""Every command of docs/tutorial.rst runs, in order, and prints the output shown."""

from __future__ import annotations

import pytest

from tests import children, transcripts
from tests.docs.blocks import PAGES, blocks
from tests.docs.run_by import blocks_of
from tests.transcripts import pattern

TUTORIAL = [*blocks(PAGES["docs/tutorial.rst"])]


@pytest.fixture
def directory(tmp_path):
    """A checkout with the files of the tutorial."""
    for block in TUTORIAL:
        if block.caption:
            (tmp_path / block.caption).write_text(block.text)
    transcripts.install_in_checkout(tmp_path)
    return tmp_path


@pytest.fixture
def service_url(directory):
    """The service of the tutorial, on a free port."""
    (block,) = blocks_of(__file__, "docs/tutorial.rst", "shell")
    port = children.free_port()
    with transcripts.run_make(f"{block.text.strip()} ARGS='--port {port}'", directory, port) as url:
        yield url


def test_every_command_prints_the_output_shown(service_url, directory):
    pairs = [step for block in TUTORIAL if block.kind == "console" for step in transcripts.steps(block.text)]
    assert len(pairs) == 21
    printed, errors = transcripts.run([command for command, _ in pairs], directory, transcripts.environment())
    for (command, expected), output in zip(pairs, printed, strict=True):
        assert pattern(expected).fullmatch(output.strip("\n")), f"$ {command}\n{output}\n{errors}"
    # On a busy machine the load command reports its progress.
    lines = [line for line in errors.splitlines() if not line.startswith("load: ")]
    assert lines == ["Nothing fits job-7."]


def test_the_comparison_of_the_output_detects_differences():
    """A different, missing or additional line is detected."""
    assert pattern("a\n...\nb").fullmatch("a\nx\ny\nb")
    assert pattern("a  ...  b").fullmatch("a  2026  b")
    assert pattern("a\n...").fullmatch("a\nx\ny")
    assert pattern("a\n...").fullmatch("a")
    assert not pattern("a\n...").fullmatch("ab")
    assert not pattern("a\nb").fullmatch("a\nc")
    assert not pattern("a\nb").fullmatch("a\nb\nc")
    assert not pattern("a\nb\nc").fullmatch("a\nb")
    assert not pattern("a...").fullmatch("a\nb")
