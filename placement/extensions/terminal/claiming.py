"""The options of claim, extend and release, and what they send (docs: ask)."""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from placement.extensions.terminal import filters, query
from placement.extensions.terminal.address import UsageError

Document = Mapping[str, Any]
#: Those of placement.extensions.v1.pick, which would import numpy; a test compares them.
STRATEGIES = ("spread", "pack", "random")
#: Seconds of each unit of a duration.
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(rf"([0-9]{{1,9}})([{''.join(_UNITS)}])")
#: The members of a request that say who owns the consumer, as it is shown, too.
_OWNER = ("consumer_type", "project_id", "user_id")
#: The owner of the consumer in a dry run where the client states none; a dry run writes nothing.
_NOBODY = "nobody"
#: The type of a consumer, where nothing says it.
_TYPE = "JOB"
#: The file name that stands for the standard input.
_STDIN = "-"


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``claim``."""
    query.add_arguments(parser)
    options = parser.add_argument_group("who claims")
    named = options.add_mutually_exclusive_group()
    named.add_argument("--consumer", type=consumer_uuid, metavar="<uuid>", help="default: a new one, which is printed")
    named.add_argument(
        "--move",
        type=consumer_uuid,
        metavar="<uuid>",
        help="a consumer that gets a new place, and gives back the one it has",
    )
    named.add_argument(
        "--file", metavar="<file>", help="requests of POST /v1/claims, or the body of one, as JSON; - for stdin"
    )
    options.add_argument("--project", metavar="<project>", help="the project that owns the consumer")
    options.add_argument("--user", metavar="<user>", help="the user that owns it")
    options.add_argument("--type", metavar="<type>", help=f"the consumer type (default: {_TYPE})")
    _add_terms(parser.add_argument_group("how"))


def _add_terms(options: argparse._ArgumentGroup) -> None:
    options.add_argument("--count", type=filters.positive, metavar="<n>", help="so many times, each in another tree")
    strategy = options.add_mutually_exclusive_group()
    strategy.add_argument("--strategy", choices=STRATEGIES, help="which trees first (default: spread, the least used)")
    strategy.add_argument(
        "--spread-over",
        metavar="<domain>",
        help="alike over: root, aggregate, or the beginning of the names of traits, such as CUSTOM_RACK_",
    )
    options.add_argument("--expires-in", type=_duration, metavar="<time>", help="the claim ends after it, such as 90m")
    options.add_argument("--all-or-nothing", action="store_true", help="refuse all requests if one is refused")
    options.add_argument(
        "--apart-from",
        action="append",
        type=consumer_uuid,
        metavar="<uuid>",
        help="in no tree of this consumer; repeatable",
    )
    options.add_argument(
        "--together-with",
        action="append",
        type=consumer_uuid,
        metavar="<uuid>",
        help="in a tree of this consumer; repeatable",
    )
    options.add_argument("--dry-run", action="store_true", help="show what would be claimed, and write nothing")


def add_extend(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``extend``."""
    parser.add_argument("consumer", type=consumer_uuid, metavar="<consumer>", help="the uuid of a consumer")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("expires_in", nargs="?", type=_duration, metavar="<time>", help="from now on, such as 90m or 2d")
    end.add_argument("--forever", action="store_true", help="without an end")


def claim(arguments: argparse.Namespace, owner: Document, claim_of: Callable[[str], Document]) -> dict[str, Any]:
    """Return the body of POST /v1/claims.

    Args:
        arguments: Those of ``add_claim``.
        owner: ``project_id`` and ``user_id`` of who asks; without what is not known.
        claim_of: Returns the document of a claim; raises what it raises.

    Raises:
        UsageError: Something is missing, or the file is of another form.
    """
    body: dict[str, Any] = {"requests": [{"consumer": arguments.consumer or str(uuid.uuid4())}]}
    if arguments.file is not None:
        body = _read(arguments.file)
    elif arguments.move is not None:
        owner = claim_of(arguments.move)
        generation = owner["consumer_generation"]
        body = {"requests": [{"consumer": arguments.move, "keep": False, "consumer_generation": generation}]}
    unowned = dict.fromkeys(("project_id", "user_id"), _NOBODY) if arguments.dry_run else {}
    said = {
        "consumer_type": _TYPE,
        **unowned,
        **{name: owner[name] for name in _OWNER if name in owner},
        **_of_each(arguments),
    }
    body["requests"] = [{**said, **request} for request in body["requests"]]
    for request in body["requests"]:
        _check(request)
    return {**body, **_of_all(arguments)}


def repetition(arguments: argparse.Namespace, body: Document) -> str:
    """Return what to do after a request without an answer, of the options and the body that it was made of."""
    unknown = "Whether it was done is not known"
    if arguments.file is not None:
        return f"{unknown}: the same command does what is not done yet."
    if arguments.move is not None:
        return f"{unknown}: the command consumers tells what the consumer holds."
    return f"{unknown}: the same command with --consumer {body['requests'][0]['consumer']} does it if it is not."


def extend(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the body of POST /v1/claims/{consumer}/extend, of the arguments of ``add_extend``."""
    return {"expires_in": arguments.expires_in}


def _of_each(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say for each request that does not say it."""
    given = {
        "consumer_type": arguments.type,
        "project_id": arguments.project,
        "user_id": arguments.user,
        "query": query.query_string(arguments.query, arguments.terms) or None,
        "count": arguments.count,
    }
    return {name: value for name, value in given.items() if value is not None}


def _of_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say for all requests of the call."""
    given = {
        "strategy": {"spread_over": arguments.spread_over} if arguments.spread_over else arguments.strategy,
        "all_or_nothing": arguments.all_or_nothing or None,
        "expires_in": arguments.expires_in,
        "apart_from": arguments.apart_from,
        "together_with": arguments.together_with,
    }
    return {name: value for name, value in given.items() if value is not None}


def _check(request: Document) -> None:
    """Raise UsageError if a request lacks what options give."""
    if "query" not in request:
        raise UsageError('There is no query: give one, such as "resources=VCPU:4", or use --resource.')
    if "project_id" not in request or "user_id" not in request:
        raise UsageError("Nothing says who owns the consumer: use --project and --user.")


def _read(name: str) -> dict[str, Any]:
    """Return the body that a file has; that of requests alone has these."""
    try:
        text = sys.stdin.read() if name == _STDIN else Path(name).read_text(encoding="utf-8")
        content = json.loads(text)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # also of a text that is not UTF-8
        raise UsageError(f"{name} is no JSON: {error}.") from error
    body = {"requests": content} if isinstance(content, list) else content
    requests = body.get("requests") if isinstance(body, dict) else None
    if not isinstance(requests, list) or not all(isinstance(request, dict) for request in requests):
        raise UsageError(
            f'{name} has no requests: neither a list of objects nor an object with such a list "requests".'
        )
    return dict(body)


def consumer_uuid(text: str) -> str:
    """Parse a uuid, for argparse."""
    try:
        uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no uuid") from None
    return text


def _duration(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: a number with s, m, h, d or w, such as 90m")
    return int(found[1]) * _UNITS[found[2]]
