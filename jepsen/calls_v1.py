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
    ConsumerRead,
    ConsumerRefusal,
    ConsumerWrite,
    Effect,
    Expected,
    Holding,
    LeaseExtension,
    ProviderClaim,
    ProviderRead,
    amounts,
)
from jepsen.history import Operation

_SECOND = 1_000_000_000
_REASONS = {
    "placement.v1.no_room": "capacity",
    "placement.v1.held_otherwise": "held",
    "placement.concurrent_update": "collision",
}


def _post_claims(operation: Operation) -> Iterator[Effect]:
    requests = operation.body["requests"]
    if operation.is_open:
        for request in requests:
            if not request.get("dry_run"):
                yield from _effects_of_open_claim(operation, request)
        return
    results = operation.reply.get("results") if isinstance(operation.reply, dict) else None
    for request, result in zip(requests, results or [], strict=False):
        yield from _effects_of_result(operation, request, result)


def _precondition(request: Mapping[str, Any]) -> Expected | int:
    generation = request.get("consumer_generation")
    return ABSENT if request.get("keep", True) or generation is None else int(generation)


def _effects_of_open_claim(operation: Operation, request: Mapping[str, Any]) -> Iterator[Effect]:
    expected, length = _precondition(request), operation.body.get("expires_in")
    has_no_expiry = length is None and (expected is ABSENT or "expires_in" in operation.body)
    expiry = NEVER if has_no_expiry else None if length is None else UNKNOWN
    owner = (request["project_id"], request["user_id"], request["consumer_type"])
    holding = Holding(None, *owner, expiry=expiry, request=_content(request))
    consumer = request["consumer"]
    yield ConsumerWrite(consumer, expected, holding, earliest_expiry=_earliest_expiry(operation, length))
    yield ProviderClaim(EVERY, consumer, certain=False)


def _effects_of_result(operation: Operation, request: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Effect]:
    consumer, outcome = request["consumer"], result["outcome"]
    match outcome:
        case "claimed" | "moved":
            holding = replace(_holding_in({**request, **result}), request=_content(request))
            earliest_expiry = _earliest_expiry(operation, operation.body.get("expires_in"))
            keeps_expiry = outcome == "moved" and "expires_in" not in operation.body
            # The response then shows the expiry from before the move.
            written_holding = replace(holding, expiry=None) if keeps_expiry else holding
            yield ConsumerWrite(consumer, _precondition(request), written_holding, earliest_expiry=earliest_expiry)
            if keeps_expiry:
                yield ConsumerRead(consumer, holding, respects_expiry=True)
            for provider, allocation in result["allocations"].items():
                yield ProviderClaim(provider, consumer, allocation["generation"])
        case "held":
            # The response omits the owner, which another client may have changed; the placing request is unchanged.
            holding = replace(_holding_in({**request, **result}), project=None, user=None, type=None)
            yield ConsumerRead(consumer, replace(holding, request=_content(request)), respects_expiry=True)
            for provider, allocation in result["allocations"].items():
                yield ProviderRead(provider, allocation["generation"])
        case "refused":
            yield _refusal(request, result["error"])


def _content(request: Mapping[str, Any]) -> str:
    return content(request) or UNKNOWN


def _refusal(request: Mapping[str, Any], error: Mapping[str, Any]) -> ConsumerRefusal:
    consumer, request_content = request["consumer"], _content(request)
    conflict = generation_conflict(error["detail"])
    if conflict is None:
        expected = request.get("consumer_generation")
        return ConsumerRefusal(consumer, _REASONS.get(error["code"], "other"), expected, request=request_content)
    actual, expected = conflict
    return ConsumerRefusal(consumer, "generation", expected, actual, request_content)


def _holding_in(document: Mapping[str, Any]) -> Holding:
    return Holding(
        amounts({provider: allocation["resources"] for provider, allocation in document["allocations"].items()}),
        document["project_id"],
        document["user_id"],
        document["consumer_type"],
        document["consumer_generation"],
        document["expires_at"] or NEVER,
    )


def _earliest_expiry(operation: Operation, length: int | None) -> int | None:
    """Return the earliest time at which a lease may expire, in nanoseconds of the run.

    The database's clock is read at some time during the request, and some databases truncate it to seconds.

    Args:
        length: Seconds; None: without expiry.
    """
    return None if length is None else operation.began + (length - 1) * _SECOND


def _get_claim(operation: Operation, consumer: str) -> Iterator[Effect]:
    if operation.succeeded:
        yield ConsumerRead(consumer, _holding_in(operation.reply), respects_expiry=True)
        for provider, allocation in operation.reply["allocations"].items():
            yield ProviderRead(provider, allocation["generation"])
    elif operation.status == 404:
        yield ConsumerRead(consumer, None, respects_expiry=True)


def _extend(operation: Operation, consumer: str) -> Iterator[Effect]:
    earliest_expiry = _earliest_expiry(operation, operation.body["expires_in"])
    if operation.succeeded:
        yield LeaseExtension(consumer, _holding_in(operation.reply), earliest_expiry)
        for provider, allocation in operation.reply["allocations"].items():
            yield ProviderRead(provider, allocation["generation"])
    elif operation.is_open:
        expiry = NEVER if operation.body["expires_in"] is None else UNKNOWN
        yield LeaseExtension(consumer, Holding(expiry=expiry), earliest_expiry)
    elif operation.status == 404:
        yield ConsumerRead(consumer, None, respects_expiry=True)
    else:
        yield ConsumerRefusal(consumer, "other")


def _release(operation: Operation) -> Iterator[Effect]:
    consumers = urllib.parse.parse_qs(operation.path.partition("?")[2]).get("consumer")
    if operation.is_open:
        yield from (ConsumerWrite(consumer, PRESENT, None) for consumer in consumers or [EVERY])
    elif operation.succeeded:
        yield from (ConsumerWrite(consumer, PRESENT, None) for consumer in operation.reply["released"])
        yield from (ConsumerRead(consumer, None, respects_expiry=True) for consumer in operation.reply["missing"])


ROUTES: list[tuple[str, str, Callable[..., Iterator[Effect]]]] = [
    ("POST", r"/v1/claims", _post_claims),
    ("GET", r"/v1/claims/([0-9a-fA-F-]+)", _get_claim),
    ("POST", r"/v1/claims/([0-9a-fA-F-]+)/extend", _extend),
    ("DELETE", r"/v1/claims", _release),
]
