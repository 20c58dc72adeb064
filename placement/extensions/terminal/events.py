"""placement-ask events, placement-ask history: which events, page by page, and those to come (docs: ask)."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote, urlencode

from placement.extensions.terminal import event_lines, filters
from placement.extensions.terminal.answer import Answer, Document
from placement.extensions.terminal.client import Client, ServiceError

_CONDITIONS = ("provider", "only", "consumer", "project", "kind", "since")
#: Events that one page can have, and seconds that a request can wait.
_LONGEST_PAGE, _LONGEST_WAIT = 1000, 60
#: Seconds that a service has for its answer beside those that the request waits.
_MARGIN = 10
#: Seconds until a service is asked again that was away, or had no place for a request that waits.
_PAUSE = 1.0


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``events``."""
    options = parser.add_argument_group("which events")
    options.add_argument("--after", metavar="<position>", help="those after a position, or now for those to come")
    options.add_argument("--provider", metavar="<provider>", help="those of a provider and all below, and of its node")
    filters.add_only(options)
    options.add_argument("--consumer", metavar="<uuid>", help="those of a consumer")
    options.add_argument("--project", metavar="<project>", help="those of the consumers of a project")
    options.add_argument("--kind", metavar="<kind>", help="those of providers, consumers, nodes, ...: provider")
    options.add_argument("--since", metavar="<when>", help="those from after a date, or an age such as 2h")
    options.add_argument("--limit", type=filters.positive, metavar="<n>", help="this many at most (default: all)")
    add_follow(parser)


def add_follow(parser: argparse.ArgumentParser) -> None:
    """Add ``--follow``."""
    parser.add_argument("--follow", action="store_true", help="go on with those to come, until Ctrl-C")


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``history``."""
    parser.add_argument("object", metavar="<object>", help="a provider or a node, by name or uuid, or a consumer")
    filters.add_only(parser)
    parser.add_argument("--newest", action="store_true", help="the newest event first")
    parser.add_argument("--limit", type=filters.positive, metavar="<n>", help="this many at most (default: all)")


def events(client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]) -> Iterator[Document]:
    """Yield the events that a parsed ``events`` asks for, in their order, each once.

    With ``--follow`` it goes on, also after the service was away, and begins with what is to come if nothing says
    where.

    Args:
        notice: Called with a sentence when the service cannot be reached, once for each time.

    Raises:
        ServiceError: As ``Client.get``; with ``--follow`` only for the first request, and if the service refuses.
    """
    return itertools.islice(_events(client, arguments, notice), arguments.limit)


def _events(client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]) -> Iterator[Document]:
    given = [(name, getattr(arguments, name)) for name in _CONDITIONS if getattr(arguments, name) is not None]
    position = arguments.after
    if arguments.follow and position is None and arguments.since is None:
        position = "now"
    wait = int(max(0, min(_LONGEST_WAIT, arguments.timeout - _MARGIN))) if arguments.follow else 0
    page = min(arguments.limit or _LONGEST_PAGE, _LONGEST_PAGE)
    first = is_away = False
    while True:
        after = [] if position is None else [("after", position)]
        query = urlencode([*given, ("limit", page), *after, ("wait", wait)], errors="surrogateescape")
        asked = time.monotonic()
        try:
            document = client.get("/events", query)
        except ServiceError as error:
            if not (arguments.follow and first and error.is_away):
                raise
            if not is_away:
                notice(f"{error}  It is asked again.")
            is_away = True
            time.sleep(_PAUSE)
            continue
        yield from document["events"]
        reached, position = position, document["position"]
        first, is_away = True, False
        if document["events"] and reached == position:
            raise ValueError("the position after events is the one before them")
        if not document["events"] and reached in (position, "now"):
            if not arguments.follow:
                return
            time.sleep(max(0.0, _PAUSE - (time.monotonic() - asked)))


def history(pages: filters.Pages, arguments: argparse.Namespace) -> Iterator[Document]:
    """Yield the events that a parsed ``history`` asks for.

    Args:
        pages: Asks the service; raises what it raises.
        arguments: Those of ``add_history``.
    """
    found = (event for document in _stories(pages, arguments) for event in document["events"])
    return itertools.islice(found, arguments.limit)


def history_and_more(
    client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]
) -> Iterator[Document]:
    """Yield the events that a parsed ``history`` asks for, and then those to come; raises as ``events``."""
    return itertools.islice(_history_and_more(client, arguments, notice), arguments.limit)


def _history_and_more(
    client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]
) -> Iterator[Document]:
    # Asked for first, so that nothing is missed if there is no event yet to go on from.
    position = client.get("/events", urlencode([("after", "now"), ("limit", 1)]))["position"]
    conditions = dict.fromkeys(_CONDITIONS)
    for document in _stories(client.stories, arguments):
        uuid = document["uuid"]
        for event in document["events"]:
            position = event["position"]
            conditions["consumer" if event["kind"] == "consumer" else "provider"] = uuid
            yield event
    if conditions["consumer"] and conditions["provider"]:  # for the service an event is about one of both
        conditions = dict.fromkeys(_CONDITIONS)
    is_named = any(conditions.values())
    if conditions["provider"]:
        conditions["only"] = arguments.only
    following = {**vars(arguments), **conditions, "after": position, "limit": None}
    found = _events(client, argparse.Namespace(**following), notice)
    yield from (event for event in found if is_named or event["uuid"] == uuid)


def _stories(pages: filters.Pages, arguments: argparse.Namespace) -> Iterator[Document]:
    page = min(arguments.limit or _LONGEST_PAGE, _LONGEST_PAGE)
    only = [] if arguments.only is None else [("only", arguments.only)]
    query = [("order", "newest" if arguments.newest else "oldest"), ("limit", str(page)), *only]
    return pages(f"/history/{quote(arguments.object, safe='', errors='surrogateescape')}", query)


def answer(found: Iterator[Document]) -> Answer:
    """Return the answer that some events are: a line for each, as soon as it is there."""
    return Answer(map(json.dumps, found), partial(event_lines.lines, found))
