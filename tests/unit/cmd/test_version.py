"""Each command prints the version of the package."""

from __future__ import annotations

import importlib
import importlib.metadata

import pytest

from placement import package

VERSION = importlib.metadata.version("placement-service")


@pytest.mark.parametrize("name", ["extensions.terminal.main", "cmd.manage", "cmd.metrics", "cmd.serve", "cmd.status"])
def test_a_command_prints_its_version(name, capsys):
    main = importlib.import_module(f"placement.{name}").main
    try:
        code = main(["--version"])
    except SystemExit as ended:
        code = ended.code
    assert code in (0, None)
    assert capsys.readouterr().out == f"{VERSION}\n"


def test_code_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(package, "NAME", "no-such-package")
    assert package.version() == "unknown"
