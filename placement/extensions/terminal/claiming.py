"""The options and request bodies of ``placement-ask claim`` and ``extend`` (docs: ask)."""

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
#: The strategies of placement.extensions.v1.pick, repeated because that package imports numpy; a test compares them.
STRATEGIES = ("spread", "pack", "random")
#: Seconds per unit of a duration.
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(rf"([0-9]{{1,9}})([{''.join(_UNITS)}])")
#: Fields of the owner, in a request and in the document of a claim.
_OWNER_FIELDS = ("consumer_type", "project_id", "user_id")
#: Project and user of a dry run without an owner, which writes nothing.
_DRY_RUN_OWNER = "nobody"
#: The default consumer type.
_DEFAULT_TYPE = "JOB"
#: The file name for standard input.
_STDIN = "-"


def add_claim(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``claim``."""
    query.add_arguments(parser)
    options = parser.add_argument_group("the consumer")
    consumer = options.add_mutually_exclusive_group()
    consumer.add_argument(
        "--consumer", type=consumer_uuid, metavar="<uuid>", help="default: a new uuid, which is printed"
    )
    consumer.add_argument(
        "--move",
        type=consumer_uuid,
        metavar="<uuid>",
        help="move this consumer: claim a new place and release the present one",
    )
    consumer.add_argument(
        "--file", metavar="<file>", help="entries for POST /v1/claims, or a whole body, as JSON; - for stdin"
    )
    options.add_argument("--project", metavar="<project>", help="the project that owns the consumer")
    options.add_argument("--user", metavar="<user>", help="the user that owns the consumer")
    options.add_argument("--type", metavar="<type>", help=f"the consumer type (default: {_DEFAULT_TYPE})")
    _add_claim_options(parser.add_argument_group("the claim"))


def _add_claim_options(options: argparse._ArgumentGroup) -> None:
    options.add_argument("--count", type=filters.positive, metavar="<n>", help="copies per entry, in different trees")
    strategy = options.add_mutually_exclusive_group()
    strategy.add_argument(
        "--strategy", choices=STRATEGIES, help="the preferred trees (default: spread, the least used)"
    )
    strategy.add_argument(
        "--spread-over",
        metavar="<domain>",
        help="spread evenly over: root, aggregate, or a prefix of trait names such as CUSTOM_RACK_",
    )
    options.add_argument(
        "--expires-in", type=_duration, metavar="<time>", help="time from now until the claim expires, such as 90m"
    )
    options.add_argument("--all-or-nothing", action="store_true", help="refuse all entries if one is refused")
    options.add_argument(
        "--apart-from",
        action="append",
        type=consumer_uuid,
        metavar="<uuid>",
        help="not in a tree of this consumer; repeatable",
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
    expiry = parser.add_mutually_exclusive_group(required=True)
    expiry.add_argument(
        "expires_in",
        nargs="?",
        type=_duration,
        metavar="<time>",
        help="time from now until the claim expires, such as 90m",
    )
    expiry.add_argument("--forever", action="store_true", help="remove the expiry")


def claim(arguments: argparse.Namespace, owner: Document, claim_of: Callable[[str], Document]) -> dict[str, Any]:
    """Return the body of POST /v1/claims.

    Args:
        arguments: The arguments of ``add_claim``.
        owner: ``project_id`` and ``user_id`` of the caller, if known.
        claim_of: A function that returns the document of a claim; its exceptions are raised.

    Raises:
        UsageError: A setting is missing, or the file is invalid.
    """
    body: dict[str, Any] = {"requests": [{"consumer": arguments.consumer or str(uuid.uuid4())}]}
    if arguments.file is not None:
        body = _read(arguments.file)
    elif arguments.move is not None:
        owner = claim_of(arguments.move)
        generation = owner["consumer_generation"]
        body = {"requests": [{"consumer": arguments.move, "keep": False, "consumer_generation": generation}]}
    placeholder_owner = dict.fromkeys(("project_id", "user_id"), _DRY_RUN_OWNER) if arguments.dry_run else {}
    defaults = {
        "consumer_type": _DEFAULT_TYPE,
        **placeholder_owner,
        **{name: owner[name] for name in _OWNER_FIELDS if name in owner},
        **_request_defaults(arguments),
    }
    body["requests"] = [{**defaults, **request} for request in body["requests"]]
    for request in body["requests"]:
        _check(request)
    return {**body, **_body_fields(arguments)}


def retry_advice(arguments: argparse.Namespace, body: Document) -> str:
    """Return a sentence that advises how to retry a claim that received no response."""
    unknown = "The claim may or may not have been made"
    if arguments.file is not None:
        return f"{unknown}: repeat the command, which makes only the missing claims."
    if arguments.move is not None:
        return f"{unknown}: use the command consumers to see the consumer's allocations."
    return f"{unknown}: repeat the command with --consumer {body['requests'][0]['consumer']}, which claims once."


def extend(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the body of POST /v1/claims/{consumer}/extend for the arguments of ``add_extend``."""
    return {"expires_in": arguments.expires_in}


def _request_defaults(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that the options set in each request that does not state them."""
    fields = {
        "consumer_type": arguments.type,
        "project_id": arguments.project,
        "user_id": arguments.user,
        "query": query.query_string(arguments.query, arguments.terms) or None,
        "count": arguments.count,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _body_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that the options set in the body, for all requests."""
    fields = {
        "strategy": {"spread_over": arguments.spread_over} if arguments.spread_over else arguments.strategy,
        "all_or_nothing": arguments.all_or_nothing or None,
        "expires_in": arguments.expires_in,
        "apart_from": arguments.apart_from,
        "together_with": arguments.together_with,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _check(request: Document) -> None:
    """Raise UsageError if a request lacks a query or an owner."""
    if "query" not in request:
        raise UsageError('The query is missing: give one, such as "resources=VCPU:4", or use --resource.')
    if "project_id" not in request or "user_id" not in request:
        raise UsageError("The owner of the consumer is missing: use --project and --user.")


def _read(name: str) -> dict[str, Any]:
    """Return the body in a file; a bare list of requests is wrapped."""
    try:
        text = sys.stdin.read() if name == _STDIN else Path(name).read_text(encoding="utf-8")
        content = json.loads(text)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # including text that is not UTF-8
        raise UsageError(f"{name} is not JSON: {error}.") from error
    body = {"requests": content} if isinstance(content, list) else content
    requests = body.get("requests") if isinstance(body, dict) else None
    if not isinstance(requests, list) or not all(isinstance(request, dict) for request in requests):
        raise UsageError(
            f'{name} contains no entries: it must be a list of objects, or an object with such a list in "requests".'
        )
    return dict(body)


def consumer_uuid(text: str) -> str:
    """Parse a uuid, for argparse."""
    try:
        uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None
    return text


def _duration(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: use a number with s, m, h, d or w, such as 90m")
    return int(match[1]) * _UNITS[match[2]]
