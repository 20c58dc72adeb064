"""The commands of ``placement-ask``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn
from urllib.parse import urlencode

from placement import package
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
    usage_history,
    watching,
)
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.answer import DONE, PROG, REFUSED, Answer, Document, say
from placement.extensions.terminal.client import Client, Pairs, ServiceError
from placement.extensions.terminal.style import Style

#: Shells with a completion script.
SHELLS = ("bash", "zsh", "fish")
Ask = Callable[[Client, argparse.Namespace], Answer]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; it sets ``ask`` to the function of the selected command."""
    root = argparse.ArgumentParser(
        prog=PROG,
        description="Query a Placement service; claim and release resources.",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=package.version())
    root.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        metavar="<shell>",
        help=f"print the completion script for a shell: {', '.join(SHELLS)}",
    )
    commands = root.add_subparsers(title="commands", required=True, metavar="<command>")

    def add(name: str, ask: Ask, description: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="print the JSON document of the service")
        command.set_defaults(ask=ask)
        address.add_arguments(command)
        return command

    _add_read_only(add)
    claiming.add_claim(add("claim", _claim, "Find a place and claim it; exit code 1 if a request is refused."))
    claiming.add_extend(add("extend", _extend, "Set or remove the expiry of a claim."))
    releasing.add_release(add("release", _release, "Release consumers."))
    return root


class _PrintCompletion(argparse.Action):
    """An option that prints the completion script of a shell and exits."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, _option: str | None = None) -> NoReturn:
        from placement.extensions.terminal import completion  # shtab is slow to import

        sys.stdout.write(completion.script(parser, shell))
        parser.exit()


def _add_read_only(add: Callable[[str, Ask, str], argparse.ArgumentParser]) -> None:
    def add_watched(name: str, ask: Ask, description: str) -> argparse.ArgumentParser:
        command = add(name, ask, description)
        watching.add_option(command)
        return command

    explaining = add_watched(
        "explain", _explain, "Explain why a query has candidates, or why not; exit code 1 if it has none."
    )
    query.add_arguments(explaining)
    counting = add_watched(
        "capacity", _capacity, "Count how many times a query could be placed; exit code 1 if it fits nowhere."
    )
    query.add_arguments(counting)
    capacity.add_options(counting)
    filters.add_overview(add_watched("overview", _overview, "Show all providers with their inventories and usage."))
    filters.add_consumers(add_watched("consumers", _consumers, "Show consumers and their allocations."))
    usage_history.add_options(add_watched("usage", _usage, "Show the usage of each resource class over time."))
    events.add_events(add("events", _events, "Show who changed what and when; --follow for future events."))
    history = add("history", _history, "Show the events of one provider, node or consumer.")
    events.add_history(history)
    events.add_follow(history)
    doctor.add_options(
        add_watched("doctor", _doctor, "Find problems in the service and its data; exit code 1 if there are any.")
    )


# --- read-only commands ----------------------------------------------------------------------------------------------


def _explain(client: Client, arguments: argparse.Namespace) -> Answer:
    document = client.get("/explain", _query(arguments))
    return Answer.from_document(document, explain.lines, DONE if explain.fits(document) else REFUSED)


def _capacity(client: Client, arguments: argparse.Namespace) -> Answer:
    document = client.get("/capacity", _query(arguments) + capacity.parameters(arguments))
    return Answer.from_document(document, capacity.lines, DONE if capacity.fits(document) else REFUSED)


def _overview(client: Client, arguments: argparse.Namespace) -> Answer:
    return Answer.from_document({"providers": filters.overview(client.pages, arguments)}, overview.lines)


def _consumers(client: Client, arguments: argparse.Namespace) -> Answer:
    return Answer.from_document({"consumers": filters.consumers(client.pages, arguments)}, consumers.lines)


def _usage(client: Client, arguments: argparse.Namespace) -> Answer:
    document = client.get("/usage", urlencode(usage_history.parameters(arguments)))
    return Answer.from_document(document, partial(usage_history.lines, by=arguments.by))


def _events(client: Client, arguments: argparse.Namespace) -> Answer:
    return events.answer(events.events(client, arguments, say))


def _history(client: Client, arguments: argparse.Namespace) -> Answer:
    if arguments.follow and arguments.newest:
        raise UsageError("--follow and --newest cannot be combined.")
    if arguments.follow:
        return events.answer(events.follow_history(client, arguments, say))
    return events.answer(events.history(client.history_pages, arguments))


def _doctor(client: Client, arguments: argparse.Namespace) -> Answer:
    document = client.get("/doctor", urlencode([("check", name) for name in arguments.check]))
    return Answer.from_document(document, doctor.lines, DONE if doctor.is_well(document) else REFUSED)


def _query(arguments: argparse.Namespace) -> str:
    text = query.query_string(arguments.query, arguments.terms)
    if not text:
        raise UsageError('The query is missing: give one, such as "resources=VCPU:4", or use --resource.')
    return text


# --- claims ----------------------------------------------------------------------------------------------------------


def _claim(client: Client, arguments: argparse.Namespace) -> Answer:
    owner = {"project_id": os.environ.get("OS_PROJECT_ID"), "user_id": os.environ.get("OS_USER_ID")}
    before: list[Document] = []

    def claim_of(consumer: str) -> Document:
        before.append(client.claim_of(consumer))
        return before[-1]

    body = claiming.claim(arguments, {name: value for name, value in owner.items() if value}, claim_of)
    query, field = ("dry_run=true", "dry_run") if arguments.dry_run else ("", "results")
    try:
        document = client.send("POST", "/claims", query, body, field=field)
    except ServiceError as error:
        if arguments.dry_run or error.is_refusal:
            raise
        raise ServiceError(f"{error}  {claiming.retry_advice(arguments, body)}", error.status) from error
    return Answer.from_document(
        document, partial(claims.lines, before=before), DONE if claims.granted(document) else REFUSED
    )


def _extend(client: Client, arguments: argparse.Namespace) -> Answer:
    body = claiming.extend(arguments)
    document = client.send("POST", f"/claims/{arguments.consumer}/extend", body=body, field="consumer")
    return Answer.from_document(document, claims.claim_lines)


def _release(client: Client, arguments: argparse.Namespace) -> Answer:
    field = "dry_run" if arguments.dry_run else "released"

    def delete(query: Pairs) -> Document:
        return client.send("DELETE", "/claims", urlencode(query), field=field)

    document = releasing.release(delete, client.pages, arguments, Style.for_stream(sys.stderr, os.environ))
    return Answer.from_document(document, claims.released_lines)
