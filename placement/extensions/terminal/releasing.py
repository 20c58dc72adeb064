"""placement-ask release: consumers by name, or by what they are, after a question (docs: ask)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from placement.extensions.terminal import consumers, filters
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.claiming import consumer_uuid
from placement.extensions.terminal.claims import body_of
from placement.extensions.terminal.client import Pairs
from placement.extensions.terminal.style import Style

Document = Mapping[str, Any]

#: Consumers in one request: its line stays below 8,000 bytes, the most that some web servers take.
_MOST = 150


class Declined(Exception):
    """The answer to the question is no; the text says that nothing was done."""


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``release``."""
    parser.add_argument("named", type=consumer_uuid, nargs="*", metavar="<consumer>", help="the uuid of a consumer")
    filters.add_consumers(parser)
    parser.add_argument("--yes", action="store_true", help="ask no question")
    parser.add_argument("--dry-run", action="store_true", help="show what would be released, and write nothing")


def release(
    delete: Callable[[Pairs], Document], pages: filters.Pages, arguments: argparse.Namespace, style: Style
) -> dict[str, Any]:
    """Release the consumers that the arguments name, or, after a question, those that they choose.

    After the question those are released that it has shown, and no others.

    Args:
        delete: Sends DELETE /v1/claims with these parameters; raises what it raises.
        pages: Asks the service for consumers; raises what it raises.
        arguments: Those of ``add_release``.
        style: That of stderr, where the question is.

    Returns:
        ``released``, ``missing`` and ``complete`` of all replies, and whether it was a ``dry_run``.

    Raises:
        Declined: The answer is no.
        UsageError: Nothing says which consumers, or there is no terminal for the question.
    """
    named, conditions = arguments.named, filters.conditions(arguments)
    if bool(named) == bool(conditions):
        raise UsageError("Name the consumers, or choose them by options such as --project and --older-than.")
    if conditions and not (arguments.yes or arguments.dry_run):
        if not sys.stdin.isatty():
            raise UsageError("There is no terminal for the question whether to release: use --yes, or --dry-run.")
        found = filters.consumers(pages, arguments)
        if found and not _agreed(found, style):
            raise Declined("Nothing was released.")
        named, conditions = [consumer["uuid"] for consumer in found], []
    queries = [conditions] if conditions else [_by_name(named[at : at + _MOST]) for at in range(0, len(named), _MOST)]
    document: dict[str, Any] = {"released": [], "missing": [], "complete": True, "dry_run": arguments.dry_run}
    for query in queries:
        for reply in _replies(delete, query, arguments):
            document["released"] += reply["released"]
            document["missing"] += reply["missing"]
            document["complete"] = reply["complete"]
    return document


def _by_name(uuids: Iterable[str]) -> Pairs:
    return [("consumer", uuid) for uuid in uuids]


def _replies(delete: Callable[[Pairs], Document], query: Pairs, arguments: argparse.Namespace) -> Iterator[Document]:
    """Yield the replies to a request that is repeated until it is complete; with a limit, or dry, it is sent once.

    It is not repeated if it has released nothing new: the consumers are changed faster than they can be released.
    """
    once = arguments.dry_run or arguments.limit is not None
    limit = [] if arguments.limit is None else [("limit", str(arguments.limit))]
    dry_run = [("dry_run", "true")] if arguments.dry_run else []
    seen: set[str] = set()
    while True:
        reply = body_of(delete([*query, *limit, *dry_run]))
        yield reply
        if once or reply["complete"] or seen.issuperset(reply["released"]):
            return
        seen.update(reply["released"])
        done = frozenset(_by_name(reply["released"]))
        query = [pair for pair in query if pair not in done]


def _agreed(found: Sequence[Document], style: Style) -> bool:
    """Show consumers with what they hold, and return whether the answer to the question is yes."""
    sys.stderr.writelines(f"{line}\n" for line in consumers.lines({"consumers": found}, style))
    count = len(found)
    sys.stderr.write(f"Release {'this consumer' if count == 1 else f'these {count} consumers'}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
