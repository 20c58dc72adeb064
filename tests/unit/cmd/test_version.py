"""Each command prints the version of the package."""

from __future__ import annotations

from importlib import metadata

import pytest

from placement import package

VERSION = metadata.version("placement-service")
COMMANDS = metadata.distribution("placement-service").entry_points.select(group="console_scripts")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_prints_its_version(command, capsys, restored_signals):
    try:
        code = command.load()(["--version"])
    except SystemExit as ended:
        code = ended.code
    assert code in (0, None)
    assert capsys.readouterr().out == f"{VERSION}\n"


def test_uninstalled_code_has_no_version(monkeypatch):
    monkeypatch.setattr(package, "NAME", "no-such-package")
    assert package.version() == "unknown"
