"""Every command of docs/tutorial.rst is run, in its order, and prints what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import children

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.rst"
BLOCK = re.compile(r"^\.\. code-block:: (\w+)\n((?:   :\w+: .*\n)*)\n((?:   .*\n|\n)+)", re.MULTILINE)
COMMANDS = {"placement-ask": "placement.ask.main", "placement-manage": "placement.cmd.manage"}
END = "@ the end of a command @"


def blocks(language):
    """The options and the text of each block in a language."""
    for kind, options, text in BLOCK.findall(TUTORIAL.read_text()):
        if kind == language:
            yield dict(re.findall(r":(\w+): (.*)", options)), textwrap.dedent(text)


def steps():
    """The commands, each with the text that is shown below it."""
    found = []
    for _, text in blocks("console"):
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(shown).strip("\n")) for command, shown in found]


@pytest.fixture
def directory(tmp_path):
    """A directory as a checkout in which ``make serve`` runs: with the files of the tutorial, and the commands."""
    for language in ("yaml", "python"):
        for options, text in blocks(language):
            (tmp_path / options["caption"]).write_text(text)
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name, module in COMMANDS.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (programs / name).chmod(0o755)
    return tmp_path


@pytest.fixture
def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return {**kept, "PYTHONPATH": os.getcwd()}


@pytest.fixture
def served(directory, environment):
    """The service of the tutorial, on a free port."""
    service = children.Child(
        [sys.executable, "-m", "placement.cmd.serve", "--port", str(children.free_port())],
        directory / "log",
        cwd=directory,
        env=environment,
    )
    try:
        service.wait_until(lambda: "Ctrl-C" in service.log.read_text())
        yield
    finally:
        service.stop()


def test_every_command_prints_what_is_shown(served, directory, environment):
    """``...`` stands for anything, on a line of its own for any lines; nothing shown is nothing printed."""
    walked = steps()
    assert len(walked) == 21
    script = "\n".join(f"{command}\necho '{END}'" for command, _ in walked)
    done = subprocess.run(
        ["bash", "-uc", script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout.split(f"{END}\n")
    assert len(printed) == len(walked) + 1, done.stderr
    for (command, shown), output in zip(walked, printed, strict=False):
        assert re.fullmatch(pattern(shown), output.strip("\n")), f"$ {command}\n{output}\n{done.stderr}"
    # On a busy machine a load reports its progress.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("load: ")]
    assert lines == ["Nothing fits job-7."]


def pattern(shown):
    """The regular expression of what is shown."""
    lines = [
        ".*" if line == "..." else re.escape(line).replace(re.escape("..."), "[^\n]*") for line in shown.split("\n")
    ]
    expression = "\n".join(lines)
    return re.compile(re.sub(r"\n\.\*$", r"(\n.*)?", expression), re.DOTALL)


def test_what_is_shown_is_compared():
    """The comparison itself: a line that differs, is missing or is one too many is found."""
    assert pattern("a\n...\nb").fullmatch("a\nx\ny\nb")
    assert pattern("a  ...  b").fullmatch("a  2026  b")
    assert pattern("a\n...").fullmatch("a\nx\ny")
    assert pattern("a\n...").fullmatch("a")
    assert not pattern("a\n...").fullmatch("ab")
    assert not pattern("a\nb").fullmatch("a\nc")
    assert not pattern("a\nb").fullmatch("a\nb\nc")
    assert not pattern("a...").fullmatch("a\nb")
