"""placement-ask has an option for each parameter of its routes, and its page names every command and option."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from placement.extensions.terminal import commands
from placement.extensions.v1.api import TABLE
from placement.version_history import OLDEST
from tests.docs.test_complete import properties

TEXT = (Path(__file__).parents[4] / "docs/extensions/ask.rst").read_text()
ACTIONS = commands.parser()._actions
(COMMANDS,) = (action.choices for action in ACTIONS if isinstance(action, argparse._SubParsersAction))
#: The route of each command.
ROUTES = {
    "explain": ("GET", "/explain"),
    "capacity": ("GET", "/capacity"),
    "overview": ("GET", "/overview"),
    "consumers": ("GET", "/consumers"),
    "usage": ("GET", "/usage"),
    "events": ("GET", "/events"),
    "history": ("GET", "/history/{object}"),
    "doctor": ("GET", "/doctor"),
    "claim": ("POST", "/claims"),
    "extend": ("POST", "/claims/{consumer}/extend"),
    "release": ("DELETE", "/claims"),
}
#: Options whose name differs from their parameter or field.
RENAMED = {
    "resources": "--resource",
    "groups": "--group",
    "project_id": "--project",
    "user_id": "--user",
    "consumer_type": "--type",
    "only": "--only-provider",
}
#: Parameters and fields without an option, with the reason.
WITHOUT = {
    ("explain", "limit"): "it is a part of a query, as in a query string",
    ("capacity", "limit"): "it is a part of a query, as in a query string",
    ("overview", "after"): "the command fetches all pages",
    ("consumers", "after"): "the command fetches all pages",
    ("history", "after"): "the command fetches all pages",
    ("history", "order"): "--newest",
    ("events", "wait"): "--follow waits",
    ("claim", "requests"): "--file",
    ("claim", "keep"): "--move",
    ("claim", "consumer_generation"): "--move asks the service for it",
}


def options(name):
    return {option for action in COMMANDS[name]._actions for option in action.option_strings if option[:2] == "--"}


def name_without_suffix(pattern):
    """Return the name of a parameter, without its suffix, from the pattern that it matches."""
    return re.match(r"\^(\w+)\(", pattern)[1]


def test_every_command_has_a_route():
    assert ROUTES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", ROUTES)
def test_a_parameter_of_the_route_has_an_option(name):
    method, path = ROUTES[name]
    endpoint = TABLE[path][method]
    schemas = [declared.render(OLDEST) for declared in (endpoint.query, endpoint.body) if declared]
    parameters = {
        *properties(schemas),
        *(name_without_suffix(pattern) for schema in schemas for pattern in schema.get("patternProperties", ())),
    }
    without = {part for command, part in WITHOUT if command == name}
    assert without <= parameters
    arguments = [action for action in COMMANDS[name]._actions if not action.option_strings]
    offered = {
        *options(name),
        *(part for argument in arguments for part in (argument.dest, argument.metavar.strip("<>"))),
    }
    names = {part: RENAMED.get(part, f"--{part.replace('_', '-')}") for part in parameters - without}
    assert [part for part, option in sorted(names.items()) if not {option, part} & offered] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_described_with_its_options(name):
    assert f"``{name}" in TEXT
    assert f"``placement-ask {name}``" in TEXT  # the page names it before the command of openstack
    assert [option for option in sorted(options(name) - {"--help"}) if option not in TEXT] == []
    for action in COMMANDS[name]._actions:
        assert not action.choices or f"``{action.option_strings[0]} {'|'.join(action.choices)}``" in TEXT


def test_every_shell_with_completion_is_documented():
    (action,) = (action for action in ACTIONS if "--print-completion" in action.option_strings)
    assert f"``--print-completion {'|'.join(action.choices)}``" in TEXT
