"""Possible holdings of consumers at each time, by the operations of a history.

Leases expire by themselves.  From the earliest possible expiry on, the consumer may hold nothing; from the latest one
on it holds nothing for certain, if the database's clock is known and nothing else may have written the consumer
since (docs: v1-claims-extend).  The clock is known from the responses: each ``expires_at`` minus its ``expires_in`` is
a reading of the database's clock during the request, so together the readings bound its offset from the clock of the
run.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

import os_resource_classes

from jepsen.calls import effects
from jepsen.checker.inventories import Pair
from jepsen.checker.records import records
from jepsen.checker.registers import Register, Write
from jepsen.effect_types import ABSENT, EVERY, ConsumerWrite, Holding, LeaseExtension, amounts
from jepsen.history import Event, History, Operation

SECOND = 10**9


@dataclass(frozen=True, slots=True)
class HeldAmounts:
    """The amounts that a consumer holds.

    Attributes:
        amounts: By provider and class.
        anywhere: Amounts by class that may be on any provider, if the service chose it and the response was lost.
    """

    amounts: Mapping[Pair, int] = field(default_factory=dict)
    anywhere: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_nothing(self) -> bool:
        return not self.amounts and not self.anywhere

    def max_amount(self, pair: Pair) -> float:
        """Return the largest possible amount of one class on one provider."""
        return self.amounts.get(pair, 0) + amount_of(pair[1], self.anywhere)


NOTHING = HeldAmounts()
#: Placeholders for every class, and for an amount larger than any other.
EVERY_CLASS, UNLIMITED = "*", 1e12


@dataclass(frozen=True, slots=True)
class _WriteOperation:
    """A write of a consumer or of its lease."""

    operation: Operation
    effect: ConsumerWrite | LeaseExtension

    @property
    def ended(self) -> int | None:
        """End of the operation; None if it has no response, or may have had no effect despite its response."""
        certain = not isinstance(self.effect, ConsumerWrite) or self.effect.certain
        return self.operation.ended if certain else None


def holdings(history: History, *, expires_at_once: bool) -> dict[str, Register[HeldAmounts]]:
    """Return the register of each consumer that the history writes.

    Args:
        expires_at_once: Whether a consumer holds nothing from the expiry of its lease on, as in the v1 API and for the
            capacity check; otherwise it may hold its resources until a sweep.
    """
    writes_by_consumer: dict[str, list[_WriteOperation]] = defaultdict(list)
    node_records = records(history)
    for operation in history.operations:
        for effect in effects(operation):
            if isinstance(effect, ConsumerWrite):
                effect = _with_node(effect, operation, node_records)
            if isinstance(effect, ConsumerWrite | LeaseExtension):
                writes_by_consumer[effect.consumer].append(_WriteOperation(operation, effect))
    # A release by conditions without a response.
    of_every = [Write[HeldAmounts](write.operation.began, None, NOTHING) for write in writes_by_consumer.pop(EVERY, ())]
    clock_jumps = [event for event in history.events if "clock" in event.nemesis]
    clock, has_losses = None if clock_jumps else _Clock.of(history), any(event.loses_tail for event in history.events)
    expiries = _Expiries(clock, clock_jumps, expires_at_once, not has_losses)
    return {
        consumer: Register(NOTHING, [*_values(writes), *expiries.of(writes), *of_every], history.events)
        for consumer, writes in writes_by_consumer.items()
    }


def _with_node(
    effect: ConsumerWrite, operation: Operation, node_records: Mapping[str, Mapping[str, Any]]
) -> ConsumerWrite | None:
    """Return the effect of a request for a node, completed from the record shown later; None if it got no node."""
    record = node_records.get(effect.consumer)
    if record is None or not operation.path.startswith("/baremetal"):
        return effect
    if (node := record.get("node_uuid")) is None:
        return None
    if effect.holding is not None:
        unit = os_resource_classes.normalize_name(record["resource_class"])
        effect = replace(effect, holding=replace(effect.holding, resources=amounts({node: {unit: 1}})))
    return replace(effect, certain=operation.succeeded)


def _values(writes: Sequence[_WriteOperation]) -> Iterator[Write[HeldAmounts]]:
    for write in writes:
        if isinstance(write.effect, ConsumerWrite):
            amounts_held = _held_amounts(write.operation, write.effect)
            yield Write(write.operation.began, write.ended, amounts_held, write.operation.number)


def _held_amounts(operation: Operation, write: ConsumerWrite) -> HeldAmounts:
    holding: Holding | None = write.holding
    if holding is None:
        return NOTHING
    if holding.resources is None:
        return HeldAmounts(anywhere=_requested_amounts(operation, write.consumer))
    return HeldAmounts(
        {(provider, name): amount for provider, by_class in holding.resources for name, amount in by_class}
    )


def _requested_amounts(operation: Operation, consumer: str) -> Mapping[str, float]:
    """Return the largest amounts that the service may have claimed on a provider of its choice."""
    if operation.path.startswith("/baremetal"):
        name = (operation.reply or operation.body).get("resource_class")
        return {os_resource_classes.normalize_name(name): 1} if name else {EVERY_CLASS: UNLIMITED}
    [request] = [request for request in operation.body["requests"] if request["consumer"] == consumer]
    query_amounts, count = amounts_of_query(request["query"]), request.get("count", 1)
    return (
        {EVERY_CLASS: UNLIMITED}
        if not query_amounts
        else {name: amount * count for name, amount in query_amounts.items()}
    )


def amount_of(resource_class: str, amounts: Mapping[str, float]) -> float:
    """Return the amount of a class."""
    return amounts.get(resource_class, amounts.get(EVERY_CLASS, 0))


def amounts_of_query(query: Any) -> dict[str, float] | None:
    """Return the amounts by class that a query without groups requests; None for other queries."""
    if isinstance(query, str):
        parameters = parse_qsl(query)
        if not {name for name, _ in parameters} <= {"resources", "in_tree"}:
            return None
        pairs = (piece.split(":") for name, value in parameters if name == "resources" for piece in value.split(","))
        return {name: int(amount) for name, amount in pairs}
    groups = query.get("groups", {})
    if query.keys() != {"groups"} or groups.keys() != {""} or not groups[""].keys() <= {"resources", "in_tree"}:
        return None
    return dict(groups[""]["resources"])


# --- leases ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clock:
    """The offset of the database's clock from the clock of the run, as a range in nanoseconds."""

    min_offset: float
    max_offset: float

    @classmethod
    def of(cls, history: History) -> _Clock | None:
        """Return the range that all responses imply; None if no response shows the clock, or if they contradict."""
        min_offset, max_offset = -math.inf, math.inf
        for operation in history.operations:
            for reading in _clock_readings(operation):
                assert operation.ended is not None
                # SQLite's clock has a resolution of milliseconds.
                min_offset, max_offset = (
                    max(min_offset, reading - operation.ended),
                    min(max_offset, reading - operation.began + SECOND // 1000),
                )
        return cls(min_offset, max_offset) if -math.inf < min_offset <= max_offset else None


def _clock_readings(operation: Operation) -> Iterator[int]:
    """Yield readings of the database's clock during an operation."""
    length = operation.body.get("expires_in") if isinstance(operation.body, dict) else None
    if length is None or not operation.succeeded:
        return
    results = operation.reply.get("results") or [{**operation.reply, "outcome": "claimed"}]
    for result in results:
        if result["outcome"] in ("claimed", "moved") and result["expires_at"] is not None:
            yield nanoseconds(result["expires_at"]) - length * SECOND


def nanoseconds(timestamp: str) -> int:
    """Return a timestamp of the v1 API as nanoseconds since 1970."""
    since = datetime.datetime.fromisoformat(timestamp) - datetime.datetime.fromtimestamp(0, datetime.UTC)
    return int(since / datetime.timedelta(microseconds=1)) * 1000


@dataclass(frozen=True, slots=True)
class _Expiries:
    """The possible expiries of leases.

    Attributes:
        clock: Clock of the database, if known.
        clock_jumps: Events that move a clock, from which on a lease may have expired.
        at_once: Whether a consumer holds nothing from the expiry on.
        keeps_all: Whether acknowledged writes are never lost.
    """

    clock: _Clock | None
    clock_jumps: Sequence[Event]
    at_once: bool
    keeps_all: bool

    def of(self, writes: Sequence[_WriteOperation]) -> Iterator[Write[HeldAmounts]]:
        """Yield the expiries of a consumer's leases: open from the earliest possible time, or ended by the latest."""
        for write in writes:
            if write.effect.earliest_expiry is None:
                continue
            began = write.operation.began
            early = [event.began for event in self.clock_jumps if event.healed is None or event.healed >= began]
            first, last = self._times(write, max(began, min([write.effect.earliest_expiry, *early])))
            # A lost lease never expired.
            if self.at_once and self.keeps_all and last is not None and not _writes_between(write, last, writes):
                yield Write(first, last, NOTHING, write.operation.number)
            elif not (self.keeps_all and _is_extended(write, writes)):
                followed = _expired_by(write, first, writes) if self.keeps_all and not self.at_once else None
                yield Write(first, followed, NOTHING, write.operation.number)

    def _times(self, write: _WriteOperation, earliest: int) -> tuple[int, int | None]:
        """Return the earliest and the latest expiry of the lease in the run; the latest is None if unknown."""
        holding = write.effect.holding
        if self.clock is None or holding is None or write.ended is None or not (holding.expiry or "")[:1].isdigit():
            return earliest, None
        expiry = nanoseconds(str(holding.expiry))
        # SQLite's clock has a resolution of milliseconds.
        latest = math.ceil(expiry - self.clock.min_offset) + SECOND // 1000
        return max(earliest, math.floor(expiry - self.clock.max_offset)), latest


def _is_extended(lease: _WriteOperation, writes: Sequence[_WriteOperation]) -> bool:
    """Whether an extension was acknowledged before the lease expired, so that this expiry never came."""
    return any(
        isinstance(other.effect, LeaseExtension)
        and lease.ended is not None
        and other.ended is not None
        and other.operation.began > lease.ended
        and not any(isinstance(write.effect, ConsumerWrite) for write in _writes_between(lease, other.ended, writes))
        for other in writes
    )


def _expired_by(lease: _WriteOperation, first: int, writes: Sequence[_WriteOperation]) -> int | None:
    """Return the time by which the lease has expired, because a claim found that the consumer held nothing.

    The time is just before the claim began.  The lease may also have expired during the claim, but the expiry has no
    effect after the claim.
    """
    times = (
        other.operation.began
        for other in writes
        if isinstance(other.effect, ConsumerWrite)
        and other.effect.expected is ABSENT
        and lease.ended is not None
        and other.ended is not None
        and other.operation.began > max(lease.ended, first)
    )
    return min((time - 1 for time in times), default=None)


def _writes_between(lease: _WriteOperation, until: int, writes: Sequence[_WriteOperation]) -> list[_WriteOperation]:
    """Return other operations that may have written the consumer or its lease from the start of a lease to a time."""
    began = lease.operation.began
    return [
        other
        for other in writes
        if other is not lease
        and other.operation.began <= until
        and not (other.ended is not None and other.ended < began)
    ]
