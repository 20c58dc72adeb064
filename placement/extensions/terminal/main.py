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
from urllib.parse import urlencode

from placement import package
from placement.cmd.text_table import plain
from placement.extensions.terminal import (
    address,
    capacity,
    claiming,
    claims,
    consumers,
    doctor,
    events,
    explain,
    filters,
    overview,
    query,
    releasing,
)
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.client import Client, Pairs, ServiceError
from placement.extensions.terminal.style import Style

PROG = "placement-ask"
#: Exit codes; the last are those of a program that SIGINT and SIGPIPE end.
DONE, REFUSED, USAGE, SERVICE, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141

Document = Mapping[str, Any]
_BAD_REQUEST = 400
#: What a document that is not of the form of this service makes of the functions that show it.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
#: Statuses between these say that nothing was done.
_REFUSALS, _FAILURES = 300, 500


def main(argv: Sequence[str] | None = None) -> int:
    """Ask the service, print the answer; return the exit code."""
    # No KeyboardInterrupt: Python ignores one that is raised in a callback, and the program would go on.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names may have characters that the encoding of the terminal lacks
    try:
        service = address.find(arguments, os.environ)
        client = Client(service)
        ask: Callable[[Client, argparse.Namespace], int] = arguments.ask
        return ask(client, arguments)
    except UsageError as error:
        return _failed(str(error), USAGE)
    except ServiceError as error:
        return _failed(str(error), USAGE if error.status == _BAD_REQUEST else SERVICE)
    except _MALFORMED as error:
        reason = f"{type(error).__name__} {error}"
        return _failed(f"{service.url} does not answer as this service does ({reason}).", SERVICE)
    except OSError as error:
        # At exit Python would try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of the output, such as head, has ended
            return UNREAD
        return _failed(f"The answer cannot be written: {error.strerror}.", SERVICE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROG,
        description="Ask a Placement service why, how many, what and who; claim and release.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=package.version())
    commands = parser.add_subparsers(title="commands", required=True, metavar="<command>")

    def add(name: str, ask: Callable[[Client, argparse.Namespace], int], does: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=does, description=does, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print the document of the service")
        command.set_defaults(ask=ask)
        address.add_arguments(command)
        return command

    query.add_arguments(add("explain", _explain, "Why a query finds candidates, or none; exit code 1 for none."))
    counting = add("capacity", _capacity, "How many times a query could be placed; exit code 1 for none.")
    query.add_arguments(counting)
    capacity.add_options(counting)
    filters.add_overview(add("overview", _overview, "All providers, with what they have and what is used."))
    filters.add_consumers(add("consumers", _consumers, "Who holds what."))
    events.add_events(add("events", _events, "What was changed, when and by whom; --follow for what comes."))
    story = add("history", _history, "What has happened to one provider, node or consumer.")
    events.add_history(story)
    events.add_follow(story)
    examining = add("doctor", _doctor, "What is wrong with the service and its data; exit code 1 if anything is.")
    examining.add_argument(
        "--check", action="append", default=[], metavar="<name>", help="make this check only; may be repeated"
    )
    claiming.add_claim(add("claim", _claim, "Find a place and take it; exit code 1 if a request is refused."))
    claiming.add_extend(add("extend", _extend, "When a claim ends."))
    releasing.add_release(add("release", _release, "Give back all that consumers hold."))
    return parser


def _explain(client: Client, arguments: argparse.Namespace) -> int:
    document = client.get("/explain", _query(arguments))
    _print(document, explain.lines, arguments)
    return DONE if explain.fits(document) else REFUSED


def _capacity(client: Client, arguments: argparse.Namespace) -> int:
    document = client.get("/capacity", _query(arguments) + capacity.parameters(arguments))
    _print(document, capacity.lines, arguments)
    return DONE if capacity.fits(document) else REFUSED


def _overview(client: Client, arguments: argparse.Namespace) -> int:
    found = filters.overview(client.pages, arguments)
    _print_list("providers", found, overview.lines, arguments)
    return DONE


def _consumers(client: Client, arguments: argparse.Namespace) -> int:
    found = filters.consumers(client.pages, arguments)
    _print_list("consumers", found, consumers.lines, arguments)
    return DONE


def _events(client: Client, arguments: argparse.Namespace) -> int:
    _print_events(events.events(client, arguments, lambda sentence: _failed(sentence, DONE)), arguments)
    return DONE


def _history(client: Client, arguments: argparse.Namespace) -> int:
    if arguments.follow and arguments.newest:
        raise UsageError("--follow and --newest do not go together.")
    if arguments.follow:
        found = events.history_and_more(client, arguments, lambda sentence: _failed(sentence, DONE))
    else:
        found = events.history(client.stories, arguments)
    _print_events(found, arguments)
    return DONE


def _print_events(found: Iterator[Document], arguments: argparse.Namespace) -> None:
    """Print a line for each event as soon as it is there."""
    style = Style.of(sys.stdout, os.environ)
    for line in events.json_lines(found) if arguments.json else events.lines(found, style):
        print(line, flush=True)


def _doctor(client: Client, arguments: argparse.Namespace) -> int:
    document = client.get("/doctor", urlencode([("check", name) for name in arguments.check]))
    _print(document, doctor.lines, arguments)
    return DONE if doctor.is_well(document) else REFUSED


def _claim(client: Client, arguments: argparse.Namespace) -> int:
    owner = {"project_id": os.environ.get("OS_PROJECT_ID"), "user_id": os.environ.get("OS_USER_ID")}
    body = claiming.claim(arguments, {name: value for name, value in owner.items() if value}, client.claim_of)
    query, has = ("dry_run=true", "dry_run") if arguments.dry_run else ("", "results")
    try:
        document = client.send("POST", "/claims", query, body, has=has)
    except ServiceError as error:
        if arguments.dry_run or _REFUSALS <= error.status < _FAILURES:
            raise
        raise ServiceError(f"{error}  {claiming.repetition(arguments, body)}", error.status) from error
    _print(document, claims.lines, arguments)
    return DONE if claims.granted(document) else REFUSED


def _extend(client: Client, arguments: argparse.Namespace) -> int:
    body = claiming.extend(arguments)
    document = client.send("POST", f"/claims/{arguments.consumer}/extend", body=body, has="consumer")
    _print(document, claims.claim_lines, arguments)
    return DONE


def _release(client: Client, arguments: argparse.Namespace) -> int:
    has = "dry_run" if arguments.dry_run else "released"

    def delete(query: Pairs) -> Document:
        return client.send("DELETE", "/claims", urlencode(query), has=has)

    document = releasing.release(delete, client.pages, arguments, Style.of(sys.stderr, os.environ))
    if document is None:
        return _failed("Nothing was released.", REFUSED)
    _print(document, claims.released_lines, arguments)
    return DONE


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
