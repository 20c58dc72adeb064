"""Check of provider contents: inventories, traits, aggregates and names match an acknowledged or open write.

A read shows the result of the last write before it.  A write is known to precede another write or a read if it had
ended when the other began, or if its response shows a lower generation of the provider (for a read: one that is not
higher). An open guarded write would raise the generation that it states by one.  So a read may show any write that no
acknowledged write supersedes.  The reads after the run are included: they show that the database contains all
acknowledged writes, and some of the open ones.

Not checked:

- The upper bound of a read.  It reads the generation first, so it may show an older generation with newer contents (ADR
  5).
- Generations of a provider that may have been created several times, because they begin at 0 each time; its reads and
  writes are ordered by time only.  So are writes whose responses show no generation: reshapes, DELETE, aggregates
  before 1.19, names.
- Reads during an event that loses the last commits.  Earlier writes may survive it or not; the bank checks that all
  objects go back to the same commit.
- Providers that the history does not create, and providers of bare metal nodes, whose inventory the service writes.
- That the classes in one response belong to one state: each class is judged by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from jepsen.calls import effects
from jepsen.checker.inventories import Inventory
from jepsen.checker.registers import kept_since
from jepsen.effect_types import NodeOperation
from jepsen.history import Event, History, Operation
from jepsen.violation import Violation


class _Default(Enum):
    """The effect of a write on keys that it does not name, if that is not a value."""

    #: The provider was deleted.
    GONE = "gone"
    #: The keys keep their values.
    UNCHANGED = "unchanged"


_INVENTORIES, _TRAITS, _AGGREGATES, _NAME = _KINDS = ("inventories", "traits", "aggregates", "name")
#: Key of the kinds with a single value; the key of an inventory is its class.
_ALL = ""
#: Maximum number of writes that a violation names: of the possible ones, and of those with the shown value.
_MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of one kind that an operation writes or shows.

    Attributes:
        default: Value of all keys not in ``values``; None: no such inventory.
        generation: Generation of the provider after the write, or shown with the contents; None: unknown.
    """

    provider: str
    kind: str
    values: Mapping[str, Hashable]
    default: Hashable
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    began: int
    ended: int | None
    generation: int | None
    value: Hashable
    operation: int


def contents(history: History) -> list[Violation]:
    """Return violations by reads of contents that no acknowledged or open write explains."""
    creations = Counter(
        _created_provider(operation) for operation in history.operations if operation.succeeded or operation.is_open
    )
    nodes = {
        effect.provider
        for operation in history.operations
        for effect in effects(operation)
        if isinstance(effect, NodeOperation)
    }
    providers = creations.keys() - nodes - {None}
    single_lives = {provider for provider in providers if creations[provider] == 1}
    reads = [
        (operation, content)
        for operation in history.operations
        for content in _shown_contents(operation)
        if content.provider in providers
    ]
    registers = _registers(history, providers, single_lives, reads)
    return [
        violation
        for operation, content in reads
        if operation.ended is not None and operation.began >= kept_since(history.events, operation.ended)
        for violation in _unexplained_values(operation, content, registers, single_lives, history)
    ]


_Registers = Mapping[tuple[str, str], Mapping[str, Sequence[_Write]]]


def _registers(
    history: History, providers: set[Any], single_lives: set[Any], reads: Sequence[tuple[Operation, _Contents]]
) -> _Registers:
    """Return the writes of each key, by provider and kind."""
    written_contents = [
        (operation, content)
        for operation in history.operations
        if operation.succeeded or operation.is_open
        for content in _written_contents(operation)
        if content.provider in providers
    ]
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for _, content in (*written_contents, *reads):
        keys[content.provider, content.kind] |= content.values.keys()
    registers: dict[tuple[str, str], dict[str, list[_Write]]] = {
        subject: {key: [] for key in names} for subject, names in keys.items()
    }
    for operation, content in written_contents:
        generation = content.generation if content.provider in single_lives else None
        for key, writes in registers[content.provider, content.kind].items():
            value = content.values.get(key, content.default)
            if value is not _Default.UNCHANGED:
                writes.append(_Write(operation.began, operation.ended, generation, value, operation.number))
    return registers


def _unexplained_values(
    operation: Operation, content: _Contents, registers: _Registers, single_lives: set[Any], history: History
) -> Iterator[Violation]:
    """Yield violations by the values of a read that no possible write has written."""
    generation = content.generation if content.provider in single_lives else None
    for key, writes in registers[content.provider, content.kind].items():
        value = content.values.get(key, content.default)
        possible = _possible_writes(writes, operation, generation, history)
        if value not in {write.value for write in possible}:
            generation_text = "" if content.generation is None else f" with generation {content.generation}"
            expected = " or ".join(sorted({_text(write.value) for write in possible}))
            name = " ".join(filter(None, (content.kind, key))) + generation_text
            sentence = f"provider {content.provider}: {name} is {_text(value)}, expected {expected}"
            writes_of_value = [write for write in writes if write.value == value]
            numbers = {write.operation for write in (*possible[-_MAX_NAMED:], *writes_of_value[-_MAX_NAMED:])}
            yield Violation("contents as written", sentence, sorted({*numbers, operation.number}))


def _possible_writes(
    writes: Sequence[_Write], operation: Operation, generation: int | None, history: History
) -> Sequence[_Write]:
    """Return the writes that may be the last one before a read, in the order in which they began.

    Args:
        generation: Generation that the read shows; None: unknown.
    """
    assert operation.ended is not None
    began, ended = _without_loss(operation, history.events)
    candidates = [write for write in writes if write.began <= operation.ended]
    preceding = [
        write
        for write in candidates
        if write.ended is not None and began <= write.began and write.ended < ended
        if _is_before(write, operation.began, generation)
    ]
    highest = max((write.generation for write in preceding if write.generation is not None), default=0)
    latest = max((write.began for write in preceding), default=-math.inf)
    return [
        write
        for write in candidates
        if not (write.generation is not None and write.generation < highest)
        and not (write.ended is not None and write.ended < latest)
    ]


def _without_loss(operation: Operation, events: Sequence[Event]) -> tuple[float, float]:
    """Return the period around a read in which no commits are lost; beyond it, generations repeat."""
    assert operation.ended is not None
    later = (event.began for event in events if event.loses_tail and event.began > operation.ended)
    return kept_since(events, operation.ended), min(later, default=math.inf)


def _is_before(write: _Write, began: int, generation: int | None) -> bool:
    assert write.ended is not None
    are_known = write.generation is not None and generation is not None
    return write.ended < began or (are_known and write.generation <= generation)  # type: ignore[operator]


def _text(value: Hashable) -> str:
    match value:
        case None:
            return "none"
        case _Default():
            return value.value
        case frozenset():
            return f"[{', '.join(sorted(map(str, value)))}]"
    return str(value)


# --- operations ------------------------------------------------------------------------------------------------------


def _created_provider(operation: Operation) -> str | None:
    """Return the provider that the operation creates."""
    if (operation.method, operation.path) == ("POST", "/resource_providers"):
        uuid: str | None = operation.body.get("uuid") or (operation.reply or {}).get("uuid")
        return uuid
    return None


def _written_contents(operation: Operation) -> Iterator[_Contents]:
    """Yield the contents written by an acknowledged or open operation."""
    path, _, query = operation.path.partition("?")
    if "dry_run" in query:
        return
    match operation.method, path.strip("/").split("/"):
        case "POST", ["reshaper"]:
            for provider, body in operation.body["inventories"].items():
                yield _Contents(provider, _INVENTORIES, _inventories(body), None)
        case "POST", ["resource_providers"] if (uuid := _created_provider(operation)) is not None:
            yield _Contents(uuid, _NAME, {_ALL: operation.body["name"]}, None)
            yield _Contents(uuid, _INVENTORIES, {}, None, 0)
            yield _Contents(uuid, _TRAITS, {_ALL: frozenset()}, None, 0)
            yield _Contents(uuid, _AGGREGATES, {_ALL: frozenset()}, None, 0)
        case "PUT", ["resource_providers", uuid]:
            yield _Contents(uuid, _NAME, {_ALL: operation.body["name"]}, None)
        case "DELETE", ["resource_providers", uuid]:
            yield from (_Contents(uuid, kind, {}, _Default.GONE) for kind in _KINDS)
        case "PUT" | "POST" | "DELETE", ["resource_providers", uuid, kind, *more]:
            values, default = _changed_values(operation, kind, more)
            yield _Contents(uuid, kind, values, default, _generation_after(operation))


def _changed_values(operation: Operation, kind: str, more: Sequence[str]) -> tuple[Mapping[str, Hashable], Hashable]:
    """Return the values of the keys named by a write of contents, and the value of all others."""
    match kind, operation.method, more:
        case "inventories", "PUT", []:
            return _inventories(operation.body), None
        case "inventories", "DELETE", []:
            return {}, None
        case "inventories", "POST", []:
            return {operation.body["resource_class"]: _inventory(operation.body)}, _Default.UNCHANGED
        case "inventories", "PUT", [name]:
            return {name: _inventory(operation.body)}, _Default.UNCHANGED
        case "inventories", "DELETE", [name]:
            return {name: None}, _Default.UNCHANGED
        case _, "DELETE", []:
            return {_ALL: frozenset()}, None
    # The body of PUT aggregates is an array until 1.18.
    return {_ALL: frozenset(operation.body if isinstance(operation.body, list) else operation.body[kind])}, None


def _generation_after(operation: Operation) -> int | None:
    if operation.succeeded:
        generation: int | None = (
            operation.reply.get("resource_provider_generation") if isinstance(operation.reply, dict) else None
        )
        return generation
    # A generation in a POST of an inventory is ignored.
    guard = (
        operation.body.get("resource_provider_generation")
        if operation.method == "PUT" and isinstance(operation.body, dict)
        else None
    )
    return None if guard is None else guard + 1


def _shown_contents(operation: Operation) -> Iterator[_Contents]:
    """Yield the contents that the response to a read shows."""
    if operation.method != "GET" or operation.status != 200:
        return
    reply = operation.reply
    match operation.path.partition("?")[0].strip("/").split("/"):
        case ["resource_providers"]:
            for entry in reply["resource_providers"]:
                yield _Contents(entry["uuid"], _NAME, {_ALL: entry["name"]}, None)
        case ["resource_providers", uuid]:
            yield _Contents(uuid, _NAME, {_ALL: reply["name"]}, None)
        case ["resource_providers", uuid, "inventories"]:
            yield _Contents(uuid, _INVENTORIES, _inventories(reply), None, reply["resource_provider_generation"])
        case ["resource_providers", uuid, ("traits" | "aggregates") as kind]:
            # Aggregates are shown without a generation until 1.18.
            yield _Contents(uuid, kind, {_ALL: frozenset(reply[kind])}, None, reply.get("resource_provider_generation"))


def _inventories(document: Mapping[str, Any]) -> dict[str, Hashable]:
    return {name: _inventory(record) for name, record in document["inventories"].items()}


def _inventory(record: Mapping[str, Any]) -> Inventory:
    """Return an inventory with its allocation ratio in single precision, as MySQL stores it."""
    inventory = Inventory.of(record)
    return dataclasses.replace(inventory, allocation_ratio=float(np.float32(inventory.allocation_ratio)))
