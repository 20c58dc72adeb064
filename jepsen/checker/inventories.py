"""Possible inventories of each provider and class at each time, by the writes of a history."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepsen.checker.registers import Register, Write
from jepsen.history import History, Operation

#: A provider and a resource class.
Pair = tuple[str, str]
_PATH = re.compile(r"/resource_providers/([^/]+)(?:/(inventories)(?:/([^/]+))?)?")


@dataclass(frozen=True, slots=True)
class Inventory:
    """An inventory record."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Inventory:
        """Return the inventory in a request body."""
        return cls(**{name: record[name] for name in cls.__slots__ if name in record})

    @property
    def min_capacity(self) -> float:
        """Capacity in a database that rounds the ratio down."""
        return (self.total - self.reserved) * min(self._ratios)

    @property
    def max_capacity(self) -> float:
        """Capacity in a database that rounds the ratio up."""
        return (self.total - self.reserved) * max(self._ratios)

    @property
    def _ratios(self) -> tuple[float, float]:
        """The ratio, and its single-precision value, which MySQL stores."""
        return self.allocation_ratio, float(np.float32(self.allocation_ratio))

    def allows(self, amount: int) -> bool:
        """Whether one consumer may claim this amount, given enough capacity."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0


def inventories(history: History) -> dict[Pair, Register[Inventory | None]]:
    """Return the register of each inventory that the history writes; None: no such inventory."""
    record_writes = [
        (operation, provider, records)
        for operation in history.operations
        if operation.succeeded or operation.is_open
        for provider, records in _written_records(operation)
    ]
    classes: dict[str, set[str]] = defaultdict(set)
    for _, provider, (records, _) in record_writes:
        classes[provider] |= records.keys()
    writes: dict[Pair, list[Write[Inventory | None]]] = defaultdict(list)
    for operation, provider, (records, replaces_all) in record_writes:
        for name in classes[provider] if replaces_all else records:
            record = records.get(name)
            inventory = None if record is None else Inventory.of(record)
            writes[provider, name].append(Write(operation.began, operation.ended, inventory, operation.number))
    return {pair: Register(None, pair_writes, history.events) for pair, pair_writes in writes.items()}


#: Records by class after a write, None for a deleted one; and whether all other classes are deleted.
_Records = tuple[Mapping[str, Any], bool]


def _written_records(operation: Operation) -> Iterator[tuple[str, _Records]]:
    if operation.path == "/reshaper":
        for provider, body in operation.body["inventories"].items():
            yield provider, (body["inventories"], True)
    elif path_match := _PATH.fullmatch(operation.path.partition("?")[0]):
        provider, below, name = path_match.groups()
        match operation.method, below, name:
            case "PUT", "inventories", None:
                yield provider, (operation.body["inventories"], True)
            case "POST", "inventories", None:
                yield provider, ({operation.body["resource_class"]: operation.body}, False)
            case "PUT", "inventories", str():
                yield provider, ({name: operation.body}, False)
            case "DELETE", "inventories", str():
                yield provider, ({name: None}, False)
            case "DELETE", _, None:
                yield provider, ({}, True)
