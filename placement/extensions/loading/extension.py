"""Declaration of the extension ``loading``: its command and the demonstration."""

from __future__ import annotations

import argparse
from wsgiref.types import WSGIApplication

from placement.db.database import Database
from placement.extension import Extension


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from placement.extensions.loading import command

    command.add_command(commands)


def _demonstrate(database: Database, application: WSGIApplication) -> None:
    from placement.extensions.loading import demo

    demo.fill(database, application)


EXTENSION = Extension(name="loading", commands=_add_commands, demonstration=_demonstrate)
