"""The option ``--watch``, which repeats a command (docs: ask)."""

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

#: Seconds between a response and the next request, by default.
_DEFAULT = 2.0
#: Options that cannot be combined with ``--watch``, by the name of the argument: the heading is not JSON, and the past
#: does not change.
_EXCLUDED = {"json": "--json", "at": "--at", "end": "--to"}
#: The escape sequence that clears a terminal.
_CLEAR = "\x1b[H\x1b[2J"


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--watch``."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=address.seconds,
        const=_DEFAULT,
        metavar="<seconds>",
        help=f"repeat the command until Ctrl-C, waiting <seconds> after each response (default: {_DEFAULT:g})",
    )


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageError if an option cannot be combined with ``--watch``."""
    for name, option in _EXCLUDED.items():
        if getattr(arguments, name, None):
            raise UsageError(f"--watch and {option} cannot be combined.")


def watch(ask: Callable[[], Answer], seconds: float) -> NoReturn:
    """Print the output and the time repeatedly, in a terminal each on a new screen, until the process is interrupted.

    If the service becomes unavailable after the first response, keep the last output, say so once, and retry.

    Args:
        ask: A function that sends the request, and returns the output.
        seconds: Seconds between a response and the next request.

    Raises:
        ServiceError: The service refuses a request, or does not respond to the first one.
    """
    has_response = is_unavailable = False
    while True:
        style = Style.for_stream(sys.stdout, os.environ)
        try:
            lines = [*ask().lines(style)]
        except ServiceError as error:
            if not (has_response and error.is_unavailable):
                raise
            if not is_unavailable:
                say(f"{error}  Retrying.")
            is_unavailable = True
        else:
            _print(lines, style, seconds)
            has_response, is_unavailable = True, False
        time.sleep(seconds)


def _print(lines: list[str], style: Style, seconds: float) -> None:
    now = datetime.datetime.now(datetime.UTC)
    heading = style.dim(f"{now:%Y-%m-%dT%H:%M:%SZ}  every {seconds:g} seconds, until Ctrl-C")
    begin = _CLEAR if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else ""
    # In one write, so that the terminal does not flicker.
    sys.stdout.write(begin + "\n".join([heading, "", *lines, "", ""]))
    sys.stdout.flush()
