"""placement-ask: the command line."""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from placement import package
from placement.ask import address, capacity, consumers, explain, filters, overview, query
from placement.ask.address import UsageError
from placement.ask.client import Client, ServiceError
from placement.ask.style import Style
from placement.ask.tables import plain

PROG = "placement-ask"
#: Exit codes; the last are those of a program that SIGINT and SIGPIPE end.
FITS, NOTHING_FITS, USAGE, SERVICE, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

Document = Mapping[str, Any]
_BAD_REQUEST = 400


def main(argv: Sequence[str] | None = None) -> int:
    """Ask the service, print the answer; return the exit code."""
    # No KeyboardInterrupt: Python ignores one that is raised in a callback, and the program would go on.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names may have characters that the encoding of the terminal lacks
    try:
        client = Client(address.find(arguments, os.environ))
        ask: Callable[[Client, argparse.Namespace], int] = arguments.ask
        return ask(client, arguments)
    except UsageError as error:
        return _failed(str(error), USAGE)
    except ServiceError as error:
        return _failed(str(error), USAGE if error.status == _BAD_REQUEST else SERVICE)
    except OSError as error:
        # At exit Python would try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of the output, such as head, has ended
            return UNREAD
        return _failed(f"The answer cannot be written: {error.strerror}.", SERVICE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG, description="Ask a Placement service why, how many, what and who.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=package.version())
    commands = parser.add_subparsers(title="questions", required=True, metavar="<question>")

    def add(name: str, ask: Callable[[Client, argparse.Namespace], int], does: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=does, description=does, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print the document of the service")
        command.set_defaults(ask=ask)
        address.add_arguments(command)
        return command

    query.add_arguments(add("explain", _explain, "Why a query finds candidates, or none; exit code 1 for none."))
    counting = add("capacity", _capacity, "How many times a query could be placed; exit code 1 for none.")
    query.add_arguments(counting)
    counting.add_argument("--until", type=filters.positive, metavar="<n>", help="stop counting there")
    filters.add_overview(add("overview", _overview, "All providers, with what they have and what is used."))
    filters.add_consumers(add("consumers", _consumers, "Who holds what."))
    return parser


def _explain(client: Client, arguments: argparse.Namespace) -> int:
    document = client.get("/explain", _query(arguments))
    _print(document, explain.lines, arguments)
    return FITS if explain.fits(document) else NOTHING_FITS


def _capacity(client: Client, arguments: argparse.Namespace) -> int:
    until = "" if arguments.until is None else f"&until={arguments.until}"
    document = client.get("/capacity", _query(arguments) + until)
    _print(document, capacity.lines, arguments)
    return FITS if capacity.fits(document) else NOTHING_FITS


def _overview(client: Client, arguments: argparse.Namespace) -> int:
    found = filters.overview(client.pages, arguments)
    _print_list("providers", found, overview.lines, arguments)
    return FITS


def _consumers(client: Client, arguments: argparse.Namespace) -> int:
    found = filters.consumers(client.pages, arguments)
    _print_list("consumers", found, consumers.lines, arguments)
    return FITS


def _query(arguments: argparse.Namespace) -> str:
    text = query.query_string(arguments.query, arguments.terms)
    if not text:
        raise UsageError('There is no query: give one, such as "resources=VCPU:4", or use --resource.')
    return text


def _print(
    document: Document, lines: Callable[[Document, Style], Iterator[str]], arguments: argparse.Namespace
) -> None:
    _print_lines(_as_json(document) if arguments.json else lines(document, Style.of(sys.stdout, os.environ)))


def _print_list(
    name: str,
    found: Sequence[Document],
    lines: Callable[[Sequence[Document], Style], Iterator[str]],
    arguments: argparse.Namespace,
) -> None:
    _print_lines(_as_json({name: found}) if arguments.json else lines(found, Style.of(sys.stdout, os.environ)))


def _as_json(document: Document) -> Iterator[str]:
    yield json.dumps(document, indent=2)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()


def _failed(sentence: str, code: int) -> int:
    print(f"{PROG}: {plain(' '.join(sentence.split()))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
