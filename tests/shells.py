"""The commands of pages, each a process: a fork of a process with the required imports, or of a shell."""

from __future__ import annotations

import os
import re
import shlex
import string
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests import preloaded, transcripts

#: The programs that run a command as another user.
_AS_USER = "runuser -u placement -- "


class CompletedCommand(NamedTuple):
    """A completed command."""

    command: str
    code: int
    out: str
    err: str


class Shell:
    """An operator's shell, in a directory with the commands of this package in ``bin``.

    Attributes:
        directory: The current directory.
        variables: Its own variables.
    """

    def __init__(self, directory: Path, openstack: Callable[..., Any]) -> None:
        self.directory, self._openstack = directory, openstack
        self.variables = {"PWD": str(directory), "COLUMNS": "200"}
        transcripts.install(directory / "bin")

    @property
    def environment(self) -> dict[str, str]:
        """All variables of its commands."""
        path = f"{self.directory}/bin:{os.environ['PATH']}"
        return transcripts.environment() | self.variables | {"PATH": path}

    def stand_in(self, name: str, script: str = "") -> None:
        """Replace a command by a script, if only root may run it or it is not installed."""
        path = self.directory / "bin" / name
        path.write_text(f"#!/bin/sh -e\n{script}\n")
        path.chmod(0o755)

    def run(self, text: str, replaced: Mapping[str, str] = {}, codes: tuple[int, ...] = (0,)) -> list[CompletedCommand]:
        """Run the commands of a block, with texts replaced; each must exit with one of the codes."""
        for old, new in replaced.items():
            text = text.replace(old, new)
        completed = [self._run(command) for command in lines(text)]
        assert completed
        for command in completed:
            assert command.code in codes, command
        return completed

    def _run(self, command: str) -> CompletedCommand:
        if match := re.fullmatch(r"([^|>]*?) *> *(\S+)(?: *#.*)?", command):
            completed = self._run(match[1])
            (self.directory / match[2]).write_text(completed.out)
            return completed._replace(out="")
        path, *words = shlex.split(command.removeprefix(_AS_USER), comments=True)
        program = Path(path).name
        if path == "export":
            values = (string.Template(word).safe_substitute(self.variables) for word in words)
            self.variables |= dict(value.split("=", 1) for value in values)
            return CompletedCommand(command, 0, "", "")
        if path == "unset":
            del self.variables[words[0]]
            return CompletedCommand(command, 0, "", "")
        argv = [sys.executable, str(Path(sys.executable).with_name(program)), *words]
        if re.search(r"[|>$;]", re.sub(r"'.*?'", "", command)):
            return self._by_bash(command, command)
        if program == "openstack":
            process = self._openstack(words, **self.variables)
        elif program in transcripts.COMMANDS:
            argv[1:2] = ["-m", transcripts.COMMANDS[program]]
            process = preloaded.service().run(argv, self.environment, self.directory)
        elif program.startswith("oslo"):
            process = preloaded.service().run(argv, self.environment, self.directory)
        else:
            return self._by_bash(command, command.removeprefix(_AS_USER).replace(path, program, 1))
        return CompletedCommand(command, process.returncode, process.stdout, process.stderr)

    def _by_bash(self, text: str, command: str) -> CompletedCommand:
        (out, code), err = transcripts.run(
            [f"{{ {command}\n}}; code=$?", "echo $code"], self.directory, self.environment
        )
        return CompletedCommand(text, int(code), out, err)


def lines(text: str) -> Iterator[str]:
    """Yield the commands of a block, without their output; a backslash continues a command."""
    prompted = re.search(r"^\$ ", text, re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("$ " if prompted else "") and line and not line.startswith("#"):
            yield line.removeprefix("$ ")
