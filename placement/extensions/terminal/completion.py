"""Shell completion of commands, options and choices (docs: ask)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import shtab


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script for a shell; the script does not run the command.

    Args:
        parser: The parser of the command line.
        shell: ``bash``, ``zsh`` or ``fish``.
    """
    for action in _actions(parser):
        if action.metavar == "<file>":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
