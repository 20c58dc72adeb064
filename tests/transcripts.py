"""Pages with commands to run: ``$ command`` in blocks of the language console, with the output below it."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests import children
from tests.docs.blocks import ROOT

#: The commands of this package, by name, and the module of each.
COMMANDS = {
    "placement-ask": "placement.extensions.terminal.main",
    "placement-manage": "placement.cmd.manage",
    "placement-serve": "placement.cmd.serve",
    "placement-status": "placement.cmd.status",
}
_END = "@ the end of a command @"
#: Maximum seconds of a command of a page.
_LONGEST = 300


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with the output shown below it.

    A command continues in the next line after a backslash, and within quotes.
    """
    pairs: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if pairs and not is_complete(pairs[-1][0]):
            command, output = pairs.pop()
            pairs.append((f"{command}\n{line}", output))
        elif line.startswith("$ "):
            pairs.append((line.removeprefix("$ "), []))
        else:
            pairs[-1][1].append(line)
    return [(command, "\n".join(output).strip("\n")) for command, output in pairs]


def is_complete(command: str) -> bool:
    """Whether a command does not continue in the next line."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


def install(directory: Path) -> None:
    """Put the commands of this package into a directory."""
    directory.mkdir(parents=True)
    for name, module in COMMANDS.items():
        (directory / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (directory / name).chmod(0o755)


def install_in_checkout(directory: Path) -> None:
    """Make a directory a checkout whose ``make`` finds the commands of this package installed."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml"):
        (directory / name).symlink_to(ROOT / name)
    install(directory / ".venv/bin")
    for name in ("pyvenv.cfg", "service"):
        (directory / ".venv" / name).touch()


@contextlib.contextmanager
def run_make(command: str, directory: Path, port: int) -> Iterator[str]:
    """Run a ``make`` that starts a service on a port; provide its URL."""
    service = children.Child(shlex.split(command), directory / "log", cwd=directory, env=environment())
    try:
        service.wait_until(lambda: "Ctrl-C" in service.log.read_text())
        yield f"http://127.0.0.1:{port}"
    finally:
        service.stop()


def environment() -> dict[str, str]:
    """Return an environment without settings of a client."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return {**variables, "PYTHONPATH": str(ROOT)}


def run(commands: list[str], directory: Path, environment: Mapping[str, str]) -> tuple[list[str], str]:
    """Run commands in one shell; return the output of each, and the stderr of all."""
    completed = subprocess.run(
        ["bash", "-uc", "\n".join(f"{command}\necho '{_END}'" for command in commands)],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LONGEST * len(commands),
        check=False,
    )
    outputs = completed.stdout.split(f"{_END}\n")
    assert len(outputs) == len(commands) + 1, completed.stderr
    return outputs[:-1], completed.stderr


def pattern(output: str) -> re.Pattern[str]:
    """Return the regular expression for the output shown.

    ``...`` matches anything, on its own line any lines; an empty output matches only itself.
    """
    lines = [
        ".*" if line == "..." else re.escape(line).replace(re.escape("..."), "[^\n]*") for line in output.split("\n")
    ]
    expression = "\n".join(lines)
    return re.compile(re.sub(r"\n\.\*$", r"(\n.*)?", expression), re.DOTALL)
