"""The records of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNDEFINED = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_IN_USE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"

STANDARD_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")  # some of the standard classes, with ids in this order
FIRST_CUSTOM_ID = 10000
UNKNOWN_OWNER = "00000000-0000-0000-0000-000000000000"
#: As a generation: the client sends none.  As a parent: the client does not change it.
UNSAID = "unsaid"

Allocations = dict[str, dict[str, int]]  # provider -> class -> amount


class Refused(Exception):
    """The write is refused with this status and code, and with one of the phrases."""

    def __init__(self, status: int, *phrases: str, code: str = UNDEFINED) -> None:
        super().__init__(status, code, phrases)
        self.status, self.code, self.phrases = status, code, phrases


@dataclass
class Inventory:
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> float:
        return (self.total - self.reserved) * self.allocation_ratio


Inventories = Mapping[str, Inventory]


@dataclass
class Provider:
    name: str
    parent: str | None = None
    generation: int = 0
    inventories: dict[str, Inventory] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


@dataclass
class Claim:
    """All allocations of a consumer; empty ends it."""

    consumer: str
    allocations: Allocations
    project: str = UNKNOWN_OWNER
    user: str = UNKNOWN_OWNER
    type: str | None = None
    generation: int | str | None = UNSAID


@dataclass
class Record:
    """The record of /v1/claims about a consumer, beside its allocations."""

    #: The request; None if the consumer only got an expiry.
    request: object = None
    mappings: object = None
    #: The consumer's generation while the mappings are valid.
    generation: int = -1
    has_expiry: bool = False


@dataclass
class Consumer:
    allocations: Allocations
    project: str
    user: str
    type: str
    generation: int
    record: Record | None = None
