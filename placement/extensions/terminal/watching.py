"""--watch: the answer to a question, again and again (docs: ask)."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from placement.extensions.terminal import address
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.answer import Answer, say
from placement.extensions.terminal.client import ServiceError
from placement.extensions.terminal.style import Style

#: Seconds from an answer to the next request.
_USUAL = 2.0
#: Options, by the names of their values, that do not go with it: a document would have a line with the time, and the
#: past stays as it was.
_EXCLUDED = {"json": "--json", "at": "--at", "end": "--to"}
#: Clears a terminal.
_CLEAR = "\x1b[H\x1b[2J"


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--watch``."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=address.seconds,
        const=_USUAL,
        metavar="<seconds>",
        help=f"show the answer again this many seconds later (default: {_USUAL:g}), until Ctrl-C",
    )


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageError if there are options that do not go with ``--watch``."""
    for name, option in _EXCLUDED.items():
        if getattr(arguments, name, None):
            raise UsageError(f"--watch and {option} do not go together.")


def watch(ask: Callable[[], Answer], seconds: float) -> NoReturn:
    """Print answers with the time, each on a screen of its own in a terminal, until the process is interrupted.

    A service that is away after the first answer is asked again, and the last answer stays; it is said once.

    Args:
        ask: Asks for the next answer.
        seconds: From an answer to the next request.

    Raises:
        ServiceError: The service refuses, or there is no first answer.
    """
    has_answer = is_away = False
    while True:
        style = Style.of(sys.stdout, os.environ)
        try:
            lines = [*ask().lines(style)]
        except ServiceError as error:
            if not (has_answer and error.is_away):
                raise
            if not is_away:
                say(f"{error}  It is asked again.")
            is_away = True
        else:
            _print(lines, style, seconds)
            has_answer, is_away = True, False
        time.sleep(seconds)


def _print(lines: list[str], style: Style, seconds: float) -> None:
    now = datetime.datetime.now(datetime.UTC)
    heading = style.dim(f"{now:%Y-%m-%dT%H:%M:%SZ}  every {seconds:g} seconds, until Ctrl-C")
    begin = _CLEAR if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else ""
    # In one piece, so that a terminal does not flicker.
    sys.stdout.write(begin + "\n".join([heading, "", *lines, "", ""]))
    sys.stdout.flush()
