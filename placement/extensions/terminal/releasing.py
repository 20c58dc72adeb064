"""``placement-ask release``: release of named consumers or, after confirmation, of selected consumers (docs: ask)."""

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

#: Consumers per request: some web servers limit the request line to 8,000 bytes.
_BATCH_SIZE = 150


class Declined(Exception):
    """The user did not confirm, so nothing was released."""


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``release``."""
    parser.add_argument("named", type=consumer_uuid, nargs="*", metavar="<consumer>", help="the uuid of a consumer")
    filters.add_consumers(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show what would be released, and write nothing")


def release(
    delete: Callable[[Pairs], Document], pages: filters.Pages, arguments: argparse.Namespace, style: Style
) -> dict[str, Any]:
    """Release the named consumers or, after confirmation, the consumers that meet the conditions.

    After confirmation, exactly the consumers shown are released.

    Args:
        delete: A function that sends DELETE /v1/claims with query parameters; its exceptions are raised.
        pages: A function that reads pages from the service; its exceptions are raised.
        arguments: The arguments of ``add_release``.
        style: The style of stderr, to which the question is written.

    Returns:
        The combined ``released``, ``missing`` and ``complete`` of all responses, and ``dry_run``.

    Raises:
        Declined: The user did not confirm.
        UsageError: No consumers are selected, or the question needs a terminal.
    """
    uuids, conditions = arguments.named, filters.conditions(arguments)
    if bool(uuids) == bool(conditions):
        raise UsageError("Select consumers either by uuid or by options such as --project and --older-than.")
    if conditions and not (arguments.yes or arguments.dry_run):
        if not sys.stdin.isatty():
            raise UsageError("There is no terminal to ask for confirmation: use --yes or --dry-run.")
        matches = filters.consumers(pages, arguments)
        if matches and not _confirm(matches, style):
            raise Declined("Nothing was released.")
        uuids, conditions = [consumer["uuid"] for consumer in matches], []
    starts = range(0, len(uuids), _BATCH_SIZE)
    queries = [conditions] if conditions else [_consumer_pairs(uuids[start : start + _BATCH_SIZE]) for start in starts]
    document: dict[str, Any] = {"released": [], "missing": [], "complete": True, "dry_run": arguments.dry_run}
    for query in queries:
        for reply in _replies(delete, query, arguments):
            document["released"] += reply["released"]
            document["missing"] += reply["missing"]
            document["complete"] = reply["complete"]
    return document


def _consumer_pairs(uuids: Iterable[str]) -> Pairs:
    return [("consumer", uuid) for uuid in uuids]


def _replies(delete: Callable[[Pairs], Document], query: Pairs, arguments: argparse.Namespace) -> Iterator[Document]:
    """Repeat a request until it is complete, and yield the responses; with a limit or as a dry run, send it once.

    Stop if a response names no newly released consumer: the consumers change faster than they can be released.
    """
    once = arguments.dry_run or arguments.limit is not None
    limit = [] if arguments.limit is None else [("limit", str(arguments.limit))]
    dry_run = [("dry_run", "true")] if arguments.dry_run else []
    released: set[str] = set()
    while True:
        reply = body_of(delete([*query, *limit, *dry_run]))
        yield reply
        if once or reply["complete"] or released.issuperset(reply["released"]):
            return
        released.update(reply["released"])
        released_pairs = frozenset(_consumer_pairs(reply["released"]))
        query = [pair for pair in query if pair not in released_pairs]


def _confirm(matches: Sequence[Document], style: Style) -> bool:
    """Show the consumers with their allocations, ask for confirmation, and return whether the user confirms."""
    sys.stderr.writelines(f"{line}\n" for line in consumers.lines({"consumers": matches}, style))
    count = len(matches)
    sys.stderr.write(f"Release {'this consumer' if count == 1 else f'these {count} consumers'}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
