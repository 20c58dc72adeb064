"""The completion of commands, options and their choices by a shell (docs: ask)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script with which a shell completes the words of a command line; it does not run the program.

    Args:
        parser: Of the command line.
        shell: bash, zsh or fish.
    """
    for action in _actions(parser):
        if action.metavar == "<file>":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of those of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
