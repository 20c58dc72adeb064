"""The effects of each operation on consumers and providers, for all routes that read or write them.

An operation with a response has the effects that its response states.  The effects of an open operation are possible
ones: checks allow them at any time after it began, or never.  Sources: docs/api, sections api-claims,
api-consumer-generations and api-provider-generations; docs/api/v1/claims.rst; docs/api/baremetal.

A bare metal allocation is tracked only if the path names it by uuid.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jepsen import calls_baremetal, calls_v1
from jepsen.calls_common import NEWEST, generation_conflict, named_providers, refusal_reason
from jepsen.effect_types import (
    ABSENT,
    ANY,
    PRESENT,
    ConsumerEmptying,
    ConsumerRead,
    ConsumerRefusal,
    ConsumerWrite,
    Effect,
    Holding,
    ProviderClaim,
    ProviderDeletion,
    ProviderRead,
    ProviderRefusal,
    ProviderWrite,
    amounts,
)
from jepsen.history import Operation

_NIL = "00000000-0000-0000-0000-000000000000"
_UUID = r"([0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12})"


def effects(operation: Operation) -> list[Effect]:
    """Return the effects of an operation, unordered; for an open operation, its possible effects.

    A refused operation has the effects of its refusal; a simulated one (``dry_run``) has none.
    """
    path, _, query = operation.path.partition("?")
    if "dry_run" in query or (operation.is_open and operation.method == "GET"):
        return []
    for method, pattern, effects_of in _ROUTES:
        match = pattern.fullmatch(path) if method == operation.method else None
        if match is not None:
            return list(effects_of(operation, *match.groups()))
    return []


# --- consumers -------------------------------------------------------------------------------------------------------


def _put_allocations(operation: Operation, path: str) -> Iterator[Effect]:
    yield from _claims(operation, {str(uuid.UUID(path)): operation.body})


def _post_allocations(operation: Operation) -> Iterator[Effect]:
    yield from _claims(operation, operation.body)


def _claims(operation: Operation, documents: Mapping[str, Any]) -> Iterator[Effect]:
    """Yield the effects of one request that writes allocations.

    Args:
        documents: Bodies by consumer.
    """
    if not (operation.succeeded or operation.is_open):
        yield from _refused_claims(operation, documents)
        return
    for consumer, document in documents.items():
        yield _consumer_write(operation, consumer, document)
        if not document["allocations"]:
            yield ConsumerEmptying(consumer)
    # The request raises each provider's generation once, however many of its consumers use the provider.
    users = {provider: consumer for consumer, document in documents.items() for provider in named_providers(document)}
    yield from (ProviderClaim(provider, consumer) for provider, consumer in users.items())


def _consumer_write(operation: Operation, consumer: str, document: Mapping[str, Any]) -> ConsumerWrite:
    minor = NEWEST if operation.minor is None else operation.minor
    expected = ANY
    if minor >= 28:
        generation = document["consumer_generation"]
        expected = ABSENT if generation is None else generation
    if not document["allocations"]:
        return ConsumerWrite(consumer, expected, None)
    holding = Holding(
        amounts(named_providers(document)),
        document["project_id"] if minor >= 8 else _NIL,
        document["user_id"] if minor >= 8 else _NIL,
        document["consumer_type"] if minor >= 38 else None,
    )
    return ConsumerWrite(consumer, expected, holding)


def _refused_claims(operation: Operation, documents: Mapping[str, Any]) -> Iterator[Effect]:
    """Yield the effects of a refused request.

    If the request writes several consumers, the response does not name the one whose generation differs.
    """
    yield from _unknown_provider(operation)
    conflict = generation_conflict(operation.detail)
    if conflict is None:
        reason = refusal_reason(operation.code, operation.detail)
        # A reshape is also refused for a provider's generation, which says nothing about the consumers.
        reason = "other" if reason == "generation" else reason
        yield from (ConsumerRefusal(consumer, reason) for consumer in documents)
        return
    actual, requested = conflict
    matching = [
        consumer for consumer, document in documents.items() if document.get("consumer_generation") == requested
    ]
    for consumer in documents:
        if matching == [consumer]:
            yield ConsumerRefusal(consumer, "generation", requested, actual)
        else:
            yield ConsumerRefusal(consumer, "other")


def _unknown_provider(operation: Operation) -> Iterator[Effect]:
    match = re.search(r"Allocation for resource provider '([^']+)' that does not exist", operation.detail)
    if match:
        yield ProviderRefusal(match[1], "missing")


def _delete_allocations(operation: Operation, consumer: str) -> Iterator[Effect]:
    if operation.succeeded or operation.is_open:
        yield ConsumerWrite(consumer, PRESENT, None)
    else:
        yield ConsumerRefusal(consumer, "missing" if operation.status == 404 else "other")


def _get_allocations(operation: Operation, consumer: str) -> Iterator[Effect]:
    if not operation.succeeded:
        return
    reply = operation.reply
    allocations = reply["allocations"]
    if not allocations:
        yield ConsumerRead(consumer, None)
        return
    holding = Holding(
        amounts({provider: allocation["resources"] for provider, allocation in allocations.items()}),
        reply.get("project_id"),
        reply.get("user_id"),
        reply.get("consumer_type"),
        reply.get("consumer_generation"),
    )
    yield ConsumerRead(consumer, holding)
    yield from (ProviderRead(provider, allocation["generation"]) for provider, allocation in allocations.items())


# --- providers -------------------------------------------------------------------------------------------------------


def _post_provider(operation: Operation) -> Iterator[Effect]:
    if operation.succeeded or operation.is_open:
        created = operation.body.get("uuid") or (operation.reply or {}).get("uuid")
        if created:
            yield ProviderWrite(created, ABSENT, 0 if operation.succeeded else None)
    else:
        yield from _unknown_parent(operation)


def _put_provider(operation: Operation, provider: str) -> Iterator[Effect]:
    if operation.succeeded:
        yield ProviderRead(provider, operation.reply["generation"])
    elif not operation.is_open:
        yield _provider_refusal(operation, provider)
        yield from _unknown_parent(operation)


def _unknown_parent(operation: Operation) -> Iterator[Effect]:
    if "parent provider UUID does not exist" in operation.detail:
        yield ProviderRefusal(operation.body["parent_provider_uuid"], "missing")


def _delete_provider(operation: Operation, provider: str) -> Iterator[Effect]:
    if operation.succeeded or operation.is_open:
        yield ProviderDeletion(provider)
    else:
        yield _provider_refusal(operation, provider)


def _get_provider(operation: Operation, provider: str) -> Iterator[Effect]:
    if operation.succeeded:
        yield ProviderRead(provider, operation.reply["generation"])
    elif operation.status == 404:
        yield ProviderRead(provider, None)


def _get_providers(operation: Operation) -> Iterator[Effect]:
    if operation.succeeded:
        for provider in operation.reply["resource_providers"]:
            yield ProviderRead(provider["uuid"], provider["generation"])


def _get_contents(operation: Operation, provider: str) -> Iterator[Effect]:
    """Yield the generation shown by a read of a provider's inventories, usages, aggregates, allocations or traits."""
    if operation.status == 404:
        yield ProviderRead(provider, None)
    elif operation.succeeded and "resource_provider_generation" in operation.reply:
        yield ProviderRead(provider, operation.reply["resource_provider_generation"])


def _write_of_contents(*raises: int) -> Callable[..., Iterator[Effect]]:
    """Return the effects function of a route that changes the contents of a provider.

    Args:
        raises: Possible increases of the provider's generation.
    """

    def effects_of(operation: Operation, provider: str) -> Iterator[Effect]:
        body = operation.body if operation.method == "PUT" else None
        # The body of PUT aggregates is an array until 1.18; the generation in a POST of an inventory is ignored.
        guard = body.get("resource_provider_generation") if isinstance(body, dict) else None
        unguarded = isinstance(body, list)
        if operation.succeeded or operation.is_open:
            generation = (operation.reply or {}).get("resource_provider_generation") if operation.succeeded else None
            expected = PRESENT if guard is None else guard
            yield ProviderWrite(provider, expected, generation, (0,) if unguarded else raises)
        else:
            yield _provider_refusal(operation, provider, guard)

    return effects_of


def _put_inventory(operation: Operation, provider: str) -> Iterator[Effect]:
    """Yield the effects of a write of one inventory, which also returns 404 for an unknown class."""
    if operation.status == 404 and "No resource provider" not in operation.detail:
        yield ProviderRefusal(provider, "other")
    else:
        yield from _write_of_contents(1)(operation, provider)


def _provider_refusal(operation: Operation, provider: str, generation: int | None = None) -> ProviderRefusal:
    if operation.status == 404:
        return ProviderRefusal(provider, "missing")
    reason = refusal_reason(operation.code, operation.detail)
    return ProviderRefusal(provider, reason, generation if reason == "generation" else None)


def _post_reshaper(operation: Operation) -> Iterator[Effect]:
    inventories: Mapping[str, Any] = operation.body["inventories"]
    documents: Mapping[str, Any] = operation.body["allocations"]
    if not (operation.succeeded or operation.is_open):
        yield from _refused_claims(operation, documents)
        yield from _refused_inventories(operation, inventories)
        return
    empties_consumers = any(not document["allocations"] for document in documents.values())
    claimed_providers = {provider for document in documents.values() for provider in named_providers(document)}
    for effect in _claims(operation, documents):
        if not (isinstance(effect, ProviderClaim) and effect.provider in inventories):
            yield effect
    for provider, body in inventories.items():
        # One step for the final inventory, one for the union of old and new, one for the claims (docs:
        # api-reshaper-steps).
        steps = 1 + bool(body["inventories"]) + (provider in claimed_providers)
        # Removed allocations raise the generations of their providers once more, but the providers of an emptied
        # consumer are unknown here.
        raises = (steps, steps + 1) if empties_consumers and provider not in claimed_providers else (steps,)
        yield ProviderWrite(provider, body["resource_provider_generation"], None, raises)


def _refused_inventories(operation: Operation, inventories: Mapping[str, Any]) -> Iterator[Effect]:
    match = re.search(r"generation conflict for provider (\S+): actual: (\d+), given: (\d+)", operation.detail)
    for provider in inventories:
        if match and match[1] == provider:
            yield ProviderRefusal(provider, "generation", int(match[3]), int(match[2]))
        else:
            yield ProviderRefusal(provider, "other")


_INVENTORIES = rf"/resource_providers/{_UUID}/inventories"
_ROUTES: list[tuple[str, re.Pattern[str], Callable[..., Iterator[Effect]]]] = [
    (method, re.compile(pattern), meaning)
    for method, pattern, meaning in [
        ("PUT", rf"/allocations/{_UUID}", _put_allocations),
        ("DELETE", rf"/allocations/{_UUID}", _delete_allocations),
        ("GET", rf"/allocations/{_UUID}", _get_allocations),
        ("POST", r"/allocations", _post_allocations),
        ("POST", r"/reshaper", _post_reshaper),
        ("POST", r"/resource_providers", _post_provider),
        ("GET", r"/resource_providers", _get_providers),
        ("PUT", rf"/resource_providers/{_UUID}", _put_provider),
        ("DELETE", rf"/resource_providers/{_UUID}", _delete_provider),
        ("GET", rf"/resource_providers/{_UUID}", _get_provider),
        ("PUT", _INVENTORIES, _write_of_contents(1)),
        ("POST", _INVENTORIES, _write_of_contents(1)),
        ("DELETE", _INVENTORIES, _write_of_contents(1)),
        ("PUT", rf"{_INVENTORIES}/[A-Z0-9_]+", _put_inventory),
        ("DELETE", rf"{_INVENTORIES}/[A-Z0-9_]+", _put_inventory),
        ("PUT", rf"/resource_providers/{_UUID}/aggregates", _write_of_contents(1)),
        ("PUT", rf"/resource_providers/{_UUID}/traits", _write_of_contents(0, 1)),
        ("DELETE", rf"/resource_providers/{_UUID}/traits", _write_of_contents(0, 1)),
        ("GET", rf"/resource_providers/{_UUID}/(?:inventories|usages|aggregates|allocations|traits)", _get_contents),
        *calls_v1.ROUTES,
        *calls_baremetal.ROUTES,
    ]
]
