"""docs/ask.rst names every command of placement-ask and each of its options."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from placement.ask import main

TEXT = (Path(__file__).parents[3] / "docs/ask.rst").read_text()
(COMMANDS,) = (action.choices for action in main._parser()._actions if isinstance(action, argparse._SubParsersAction))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_described_with_its_options(name):
    options = {option for action in COMMANDS[name]._actions for option in action.option_strings if option[:2] == "--"}
    assert f"``{name}" in TEXT
    assert f"``placement-ask {name}``" in TEXT  # beside the command of openstack
    assert [option for option in sorted(options - {"--help"}) if option not in TEXT] == []
    for action in COMMANDS[name]._actions:
        assert not action.choices or f"``{action.option_strings[0]} {'|'.join(action.choices)}``" in TEXT
