"""Declaration of the extension ``orphans``: its command."""

from __future__ import annotations

import argparse

from placement.extension import Extension


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from placement.extensions.orphans import command

    command.add_command(commands)


EXTENSION = Extension(name="orphans", commands=_add_commands, requires=("baremetal",))
