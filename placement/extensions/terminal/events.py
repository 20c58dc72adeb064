"""``placement-ask events`` and ``history``: reading and following events (docs: ask)."""

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
#: Maximum number of events per page; maximum wait for events in one request, in seconds.
_MAX_PAGE, _MAX_WAIT = 1000, 60
#: Seconds allowed for the response in addition to the wait.
_MARGIN = 10
#: Seconds until the next request if the service was unavailable or could not let the request wait.
_PAUSE = 1.0


def add_events(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``events``."""
    options = parser.add_argument_group("which events")
    options.add_argument("--after", metavar="<position>", help="events after a position; now for future events only")
    options.add_argument("--provider", metavar="<provider>", help="events of a provider, its descendants and its node")
    filters.add_only(options)
    options.add_argument("--consumer", metavar="<uuid>", help="events of a consumer")
    options.add_argument("--project", metavar="<project>", help="events of the consumers of a project")
    options.add_argument("--kind", metavar="<kind>", help="events of one kind of object: provider, consumer, node, ...")
    options.add_argument("--since", metavar="<when>", help="events since a date, or an age such as 2h")
    options.add_argument("--limit", type=filters.positive, metavar="<n>", help="the maximum number (default: all)")
    add_follow(parser)


def add_follow(parser: argparse.ArgumentParser) -> None:
    """Add ``--follow``."""
    parser.add_argument("--follow", action="store_true", help="continue with future events, until Ctrl-C")


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``history``."""
    parser.add_argument("object", metavar="<object>", help="a provider or node, by name or uuid, or a consumer")
    filters.add_only(parser)
    parser.add_argument("--newest", action="store_true", help="the newest event first")
    parser.add_argument("--limit", type=filters.positive, metavar="<n>", help="the maximum number (default: all)")


def events(client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]) -> Iterator[Document]:
    """Yield the events that match the arguments of ``events``, in order and without duplicates.

    With ``--follow``, continue with future events, even after the service was unavailable; without a starting point,
    begin with future events.

    Args:
        notice: A callback with a sentence, when the service becomes unavailable.

    Raises:
        ServiceError: As in ``Client.get``; with ``--follow``, the first request failed, or the service refused one.
    """
    return itertools.islice(_events(client, arguments, notice), arguments.limit)


def _events(client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]) -> Iterator[Document]:
    conditions = [(name, getattr(arguments, name)) for name in _CONDITIONS if getattr(arguments, name) is not None]
    position = arguments.after
    if arguments.follow and position is None and arguments.since is None:
        position = "now"
    wait = int(max(0, min(_MAX_WAIT, arguments.timeout - _MARGIN))) if arguments.follow else 0
    page = min(arguments.limit or _MAX_PAGE, _MAX_PAGE)
    has_response = is_unavailable = False
    while True:
        after = [] if position is None else [("after", position)]
        query = urlencode([*conditions, ("limit", page), *after, ("wait", wait)], errors="surrogateescape")
        sent = time.monotonic()
        try:
            document = client.get("/events", query)
        except ServiceError as error:
            if not (arguments.follow and has_response and error.is_unavailable):
                raise
            if not is_unavailable:
                notice(f"{error}  Retrying.")
            is_unavailable = True
            time.sleep(_PAUSE)
            continue
        yield from document["events"]
        reached, position = position, document["position"]
        has_response, is_unavailable = True, False
        if document["events"] and reached == position:
            raise ValueError("the position did not change with the events")
        if not document["events"] and reached in (position, "now"):
            if not arguments.follow:
                return
            time.sleep(max(0.0, _PAUSE - (time.monotonic() - sent)))


def history(pages: filters.Pages, arguments: argparse.Namespace) -> Iterator[Document]:
    """Yield the events for the arguments of ``history``.

    Args:
        pages: A function that reads pages from the service; its exceptions are raised.
        arguments: The arguments of ``add_history``.
    """
    listed = (event for document in _history_pages(pages, arguments) for event in document["events"])
    return itertools.islice(listed, arguments.limit)


def follow_history(
    client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]
) -> Iterator[Document]:
    """Yield the events for the arguments of ``history``, and then future events; failures as for ``events``."""
    return itertools.islice(_follow_history(client, arguments, notice), arguments.limit)


def _follow_history(
    client: Client, arguments: argparse.Namespace, notice: Callable[[str], object]
) -> Iterator[Document]:
    # Requested first, so that following can start here if the history is empty.
    position = client.get("/events", urlencode([("after", "now"), ("limit", 1)]))["position"]
    conditions = dict.fromkeys(_CONDITIONS)
    for document in _history_pages(client.history_pages, arguments):
        uuid = document["uuid"]
        for event in document["events"]:
            position = event["position"]
            conditions["consumer" if event["kind"] == "consumer" else "provider"] = uuid
            yield event
    if conditions["consumer"] and conditions["provider"]:  # the service filters by only one of the two
        conditions = dict.fromkeys(_CONDITIONS)
    is_named = any(conditions.values())
    if conditions["provider"]:
        conditions["only"] = arguments.only
    following = {**vars(arguments), **conditions, "after": position, "limit": None}
    future = _events(client, argparse.Namespace(**following), notice)
    yield from (event for event in future if is_named or event["uuid"] == uuid)


def _history_pages(pages: filters.Pages, arguments: argparse.Namespace) -> Iterator[Document]:
    page = min(arguments.limit or _MAX_PAGE, _MAX_PAGE)
    only = [] if arguments.only is None else [("only", arguments.only)]
    query = [("order", "newest" if arguments.newest else "oldest"), ("limit", str(page)), *only]
    return pages(f"/history/{quote(arguments.object, safe='', errors='surrogateescape')}", query)


def answer(events: Iterator[Document]) -> Answer:
    """Return the output for events: a line for each, as soon as it arrives."""
    return Answer(map(json.dumps, events), partial(event_lines.lines, events))
