"""What the doctor adds to the service."""

from __future__ import annotations

import argparse

from placement.extension import Extension


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from placement.extensions.doctor import command

    command.add_command(commands)


EXTENSION = Extension(name="doctor", commands=_add_commands)
