"""The effects of v1 operations on consumers and providers (docs/api/v1/claims.rst)."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from jepsen.calls_common import generation_conflict
from jepsen.claim_queries import content
from jepsen.effect_types import (
    ABSENT,
    EVERY,
    NEVER,
    PRESENT,
    UNKNOWN,
    ConsumerExtended,
    ConsumerRead,
    ConsumerRefused,
    ConsumerWrite,
    Effect,
    Expected,
    Holding,
    ProviderRead,
    ProviderUsed,
    amounts,
)
from jepsen.history import Operation

_SECOND = 1_000_000_000
_WHY = {
    "placement.v1.no_room": "capacity",
    "placement.v1.held_otherwise": "held",
    "placement.concurrent_update": "collision",
}


def _post_claims(operation: Operation) -> Iterator[Effect]:
    requests = operation.body["requests"]
    if operation.is_open:
        for request in requests:
            if not request.get("dry_run"):
                yield from _perhaps_claimed(operation, request)
        return
    results = operation.reply.get("results") if isinstance(operation.reply, dict) else None
    for request, result in zip(requests, results or [], strict=False):
        yield from _claimed(operation, request, result)


def _expected(request: Mapping[str, Any]) -> Expected | int:
    given = request.get("consumer_generation")
    return ABSENT if request.get("keep", True) or given is None else int(given)


def _perhaps_claimed(operation: Operation, request: Mapping[str, Any]) -> Iterator[Effect]:
    expected, length = _expected(request), operation.body.get("expires_in")
    has_no_end = length is None and (expected is ABSENT or "expires_in" in operation.body)
    ends = NEVER if has_no_end else None if length is None else UNKNOWN
    owner = (request["project_id"], request["user_id"], request["consumer_type"])
    held = Holding(None, *owner, ends=ends, request=_content(request))
    consumer = request["consumer"]
    yield ConsumerWrite(consumer, expected, held, may_end=_may_end(operation, length))
    yield ProviderUsed(EVERY, consumer, certain=False)


def _claimed(operation: Operation, request: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Effect]:
    consumer, outcome = request["consumer"], result["outcome"]
    match outcome:
        case "claimed" | "moved":
            held = replace(_shown({**request, **result}), request=_content(request))
            may_end = _may_end(operation, operation.body.get("expires_in"))
            keeps_end = outcome == "moved" and "expires_in" not in operation.body
            # The response then shows the expiry from before the move.
            after = replace(held, ends=None) if keeps_end else held
            yield ConsumerWrite(consumer, _expected(request), after, may_end=may_end)
            if keeps_end:
                yield ConsumerRead(consumer, held, respects_expiry=True)
            for provider, allocation in result["allocations"].items():
                yield ProviderUsed(provider, consumer, allocation["generation"])
        case "held":
            # The response omits the owner, which another client may have changed; the placing request is unchanged.
            shown = replace(_shown({**request, **result}), project=None, user=None, type=None)
            yield ConsumerRead(consumer, replace(shown, request=_content(request)), respects_expiry=True)
            for provider, allocation in result["allocations"].items():
                yield ProviderRead(provider, allocation["generation"])
        case "refused":
            yield _refused(request, result["error"])


def _content(request: Mapping[str, Any]) -> str:
    return content(request) or UNKNOWN


def _refused(request: Mapping[str, Any], error: Mapping[str, Any]) -> ConsumerRefused:
    consumer, request_content = request["consumer"], _content(request)
    conflict = generation_conflict(error["detail"])
    if conflict is None:
        given = request.get("consumer_generation")
        return ConsumerRefused(consumer, _WHY.get(error["code"], "other"), given, request=request_content)
    actual, given = conflict
    return ConsumerRefused(consumer, "generation", given, actual, request_content)


def _shown(document: Mapping[str, Any]) -> Holding:
    return Holding(
        amounts({provider: allocation["resources"] for provider, allocation in document["allocations"].items()}),
        document["project_id"],
        document["user_id"],
        document["consumer_type"],
        document["consumer_generation"],
        document["expires_at"] or NEVER,
    )


def _may_end(operation: Operation, length: int | None) -> int | None:
    """Return the earliest time at which a lease may expire, in nanoseconds of the run.

    The database's clock is read at some time during the request, and some databases truncate it to seconds.

    Args:
        length: Seconds; None: without expiry.
    """
    return None if length is None else operation.began + (length - 1) * _SECOND


def _get_claim(operation: Operation, consumer: str) -> Iterator[Effect]:
    if operation.succeeded:
        yield ConsumerRead(consumer, _shown(operation.reply), respects_expiry=True)
        for provider, allocation in operation.reply["allocations"].items():
            yield ProviderRead(provider, allocation["generation"])
    elif operation.status == 404:
        yield ConsumerRead(consumer, None, respects_expiry=True)


def _extend(operation: Operation, consumer: str) -> Iterator[Effect]:
    may_end = _may_end(operation, operation.body["expires_in"])
    if operation.succeeded:
        yield ConsumerExtended(consumer, _shown(operation.reply), may_end)
        for provider, allocation in operation.reply["allocations"].items():
            yield ProviderRead(provider, allocation["generation"])
    elif operation.is_open:
        ends = NEVER if operation.body["expires_in"] is None else UNKNOWN
        yield ConsumerExtended(consumer, Holding(ends=ends), may_end)
    elif operation.status == 404:
        yield ConsumerRead(consumer, None, respects_expiry=True)
    else:
        yield ConsumerRefused(consumer, "other")


def _release(operation: Operation) -> Iterator[Effect]:
    named = urllib.parse.parse_qs(operation.path.partition("?")[2]).get("consumer")
    if operation.is_open:
        yield from (ConsumerWrite(consumer, PRESENT, None) for consumer in named or [EVERY])
    elif operation.succeeded:
        yield from (ConsumerWrite(consumer, PRESENT, None) for consumer in operation.reply["released"])
        yield from (ConsumerRead(consumer, None, respects_expiry=True) for consumer in operation.reply["missing"])


ROUTES: list[tuple[str, str, Callable[..., Iterator[Effect]]]] = [
    ("POST", r"/v1/claims", _post_claims),
    ("GET", r"/v1/claims/([0-9a-fA-F-]+)", _get_claim),
    ("POST", r"/v1/claims/([0-9a-fA-F-]+)/extend", _extend),
    ("DELETE", r"/v1/claims", _release),
]
