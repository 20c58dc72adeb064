"""Check of consumers as linearizable registers of owner, type, holding, generation, lease and request.

The request is the POST /v1/claims request that placed the consumer: only the response to an equal request shows the
holding.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jepsen.calls import effects
from jepsen.checker import registers
from jepsen.checker.epochs import Loss, losses
from jepsen.checker.linearizable import TimedCall
from jepsen.checker.verdicts import judge
from jepsen.effect_types import (
    ABSENT,
    ANY,
    EVERY,
    NEVER,
    NO_REQUEST,
    NO_TYPE,
    PRESENT,
    UNKNOWN,
    ConsumerRead,
    ConsumerRefusal,
    ConsumerWrite,
    Holding,
    LeaseExtension,
)
from jepsen.history import Event, History, Operation, overlap
from jepsen.violation import Violation

#: Reasons of a refusal that depend on the consumer; "capacity" does so in a response of POST /v1/claims.
_INFORMATIVE = ("generation", "missing", "held")


@dataclass(frozen=True, slots=True)
class LeaseExpiry:
    """The expiry of a lease; an open operation, because the service may notice it at any later time."""

    expiry: str


@dataclass(frozen=True, slots=True)
class AnyTime:
    """An operation during an event that moves a clock, when leases may expire and become active again.

    A clock that goes back reactivates a lease; and if each process has its own clock, a lease expires only for some.
    """

    call: ConsumerRead | ConsumerWrite | LeaseExtension | ConsumerRefusal


@dataclass(frozen=True, slots=True)
class Present:
    """An existing consumer.

    Attributes:
        is_expired: Whether its lease has expired: the v1 API and writes treat the consumer as absent, and other reads
            may show it, until the service releases its resources.
    """

    holding: Holding
    is_expired: bool = False


@dataclass(frozen=True, slots=True)
class AfterLoss:
    """The unknown state of a consumer after the event with this number, which restored some earlier state."""

    event: int


#: None: the consumer holds nothing.
State = Present | AfterLoss | None


def consumers(history: History) -> list[Violation]:
    """Return a violation for each consumer for which no order of the operations explains all responses."""
    violations = []
    for consumer, operations in by_consumer(history.operations, history.events).items():
        model = Register(history.events, operations)
        timed = [*operations, *losses(history.events, operations)]
        violations += judge("consumers", f"consumer {consumer}", timed, model, [None])
    return violations


def by_consumer(operations: Iterable[Operation], events: Iterable[Event] = ()) -> Mapping[str, list[TimedCall]]:
    """Return the effects on each consumer, with the expiries of its leases.

    Args:
        events: Events of the run; those that move a clock let leases expire early, perhaps temporarily.
    """
    clocks = [event for event in events if "clock" in event.nemesis]
    calls: dict[str, list[TimedCall]] = defaultdict(list)
    calls_on_every_consumer = []
    for operation in operations:
        for effect in effects(operation):
            match effect:
                case ConsumerRead() | ConsumerWrite() | LeaseExtension() | ConsumerRefusal():
                    if isinstance(effect, ConsumerRefusal) and not _is_informative(effect):
                        continue
                    changes = isinstance(effect, ConsumerWrite | LeaseExtension)
                    call = AnyTime(effect) if any(_overlaps(operation, event) for event in clocks) else effect
                    timed = TimedCall(operation.number, operation.began, operation.ended, call, changes)
                    calls_on_every_consumer += [timed] if effect.consumer == EVERY else []
                    calls[effect.consumer] += [timed, *_expiries(operation, effect, clocks)]
    calls.pop(EVERY, None)
    return {
        consumer: [*_allow_expired_reads(timed_calls), *calls_on_every_consumer]
        for consumer, timed_calls in calls.items()
    }


def _allow_expired_reads(operations: Sequence[TimedCall]) -> Iterator[TimedCall]:
    """Allow reads during a change of the expiry to show the lease as expired.

    The change is compared with the clock once it holds its lock.  Until it commits, readers see the old expiry, which
    may pass meanwhile (docs: v1-claims-extend).
    """
    changes = [operation for operation in operations if _changes_expiry(operation.call)]
    expiries = [operation for operation in operations if isinstance(operation.call, LeaseExpiry)]
    for operation in operations:
        shows_expired = (
            isinstance(operation.call, ConsumerRead)
            and operation.call.respects_expiry
            and operation.call.holding is None
        )
        if (
            shows_expired
            and any(overlap(operation, change) for change in changes)
            and any(overlap(operation, expiry) for expiry in expiries)
        ):
            yield replace(operation, call=AnyTime(operation.call))
        else:
            yield operation


def _changes_expiry(call: object) -> bool:
    match call:
        case LeaseExtension() | ConsumerWrite(expected=int(), holding=Holding(expiry=str())):
            return True
    return False


def _overlaps(operation: Operation, event: Event) -> bool:
    begins_in_time = event.healed is None or operation.began <= event.healed
    return begins_in_time and (operation.ended is None or operation.ended >= event.began)


def _is_informative(refusal: ConsumerRefusal) -> bool:
    return refusal.reason in _INFORMATIVE or (refusal.reason == "capacity" and refusal.request is not None)


def _expiries(operation: Operation, effect: object, clocks: Iterable[Event]) -> Iterator[TimedCall]:
    """Yield the expiry of the lease that an operation begins or may begin."""
    match effect:
        case ConsumerWrite(holding=Holding(expiry=str(expiry)), earliest_expiry=int(began)):
            pass
        case LeaseExtension(holding=Holding(expiry=str(expiry)), earliest_expiry=int(began)):
            pass
        case _:
            return
    jumps = [event.began for event in clocks if event.healed is None or event.healed >= operation.began]
    yield TimedCall(operation.number, max(min([began, *jumps]), operation.began), None, LeaseExpiry(expiry))


class Register:
    """The model of a consumer.

    Args:
        events: Events of the history, for losses.
        operations: All operations on the consumer, whose writes are the possible states after a loss.
    """

    def __init__(self, events: Sequence[Event] = (), operations: Sequence[TimedCall] = ()) -> None:
        self._events = events
        self._operations = operations
        self._before: dict[int, Sequence[State]] = {}

    def step(self, state: State, operation: TimedCall, *_joined: TimedCall) -> Iterable[State]:
        """Return the possible states of the consumer after the operation; empty if its response is impossible."""
        match operation.call:
            case Loss(event):
                return [AfterLoss(event)]
            case call if isinstance(state, AfterLoss):
                earlier_states = self._states_before(state.event)
                if isinstance(call, ConsumerRead) and call.holding is not None:
                    earlier_states = [
                        earlier_state for earlier_state in earlier_states if isinstance(earlier_state, Present)
                    ]
                return {
                    later_state
                    for earlier_state in earlier_states
                    for later_state in self.step(earlier_state, operation)
                }
            case AnyTime(call):
                inner = replace(operation, call=call)
                return {
                    later
                    for now in _at_any_time(state)
                    for later_state in self.step(now, inner)
                    for later in _at_any_time(later_state)
                }
            case ConsumerWrite() as write:
                return _states_after_write(state, write)
            case LeaseExtension(holding=holding):
                return _states_after_extension(state, holding)
            case ConsumerRead() as read:
                return _states_after_read(state, read)
            case ConsumerRefusal() as refusal:
                return _states_after_refusal(state, refusal)
            case LeaseExpiry(expiry):
                return (
                    [replace(state, is_expired=True)]
                    if state is not None and _may_expire(state.holding, expiry)
                    else []
                )
        raise TypeError(operation.call)

    def _states_before(self, event: int) -> Sequence[State]:
        """Return the states that a loss in this event may restore."""
        if event not in self._before:
            # The expiry of a lease that is still active begins later.
            has_leases = any(isinstance(operation.call, LeaseExpiry) for operation in self._operations)
            writes = self._writes_before(self._events[event])
            holdings = {
                _holding_of(write, may_expire=has_leases) for write in writes if write and write.holding is not None
            }
            present = [
                Present(holding, is_expired) for holding in holdings for is_expired in (False, True)[: 1 + has_leases]
            ]
            may_be_absent = has_leases or any(write is None or write.holding is None for write in writes)
            self._before[event] = [*([None] if may_be_absent else ()), *present]
        return self._before[event]

    def _writes_before(self, event: Event) -> Sequence[ConsumerWrite | None]:
        """Return the writes that may be the last one to survive a loss; None among them: perhaps none survives."""
        writes: list[registers.Write[ConsumerWrite | None]] = []
        for operation in self._operations:
            call = operation.call.call if isinstance(operation.call, AnyTime) else operation.call
            if isinstance(call, ConsumerWrite):
                writes.append(registers.Write(operation.began, operation.ended if call.certain else None, call))
        healed = math.inf if event.healed is None else event.healed
        if event.keeps_earlier:
            possible = registers.Register(None, writes, self._events).possible(event.began, healed)
            return [write.value for write in possible]
        return [None, *(write.value for write in writes if write.began < healed)]


def _at_any_time(state: State) -> Sequence[State]:
    """Return the state with an active and with an expired lease, if it may have one."""
    if isinstance(state, Present) and state.holding.expiry != NEVER:
        return [replace(state, is_expired=False), replace(state, is_expired=True)]
    return [state]


def _holding_of(write: ConsumerWrite, *, may_expire: bool) -> Holding:
    """Return the holding that the write alone implies."""
    assert write.holding is not None
    expiry = UNKNOWN if may_expire else NEVER
    generation = write.holding.generation
    if generation is None and write.expected is not ANY:
        generation = 1 if write.expected is ABSENT else _next_generation(write.expected)
    return replace(write.holding, generation=generation, expiry=expiry)


def _may_expire(holding: Holding, expiry: str) -> bool:
    """Whether the consumer's lease may have this expiry."""
    return holding.expiry in (expiry, UNKNOWN) or (expiry == UNKNOWN and holding.expiry != NEVER)


def _next_generation(generation: object) -> int | None:
    return generation + 1 if isinstance(generation, int) else None


def _is_active(state: Present | None) -> bool:
    return state is not None and not state.is_expired


def _states_after_write(state: Present | None, write: ConsumerWrite) -> Iterable[State]:
    if not write.certain:
        yield state
    previous = state.holding if state is not None and _is_active(state) else None
    match write.expected:
        case int(generation) if previous is None or previous.generation not in (None, generation):
            return
        case expected if (expected is ABSENT and previous is not None) or (expected is PRESENT and state is None):
            return
    if write.holding is None:
        yield None
        return
    holding = write.holding
    type_ = NO_TYPE if holding.resources is not None else None
    base = previous or Holding(type=type_, generation=0, expiry=NEVER, request=NO_REQUEST)
    earlier_generation = write.expected if isinstance(write.expected, int) else base.generation
    generation = _next_generation(earlier_generation)
    if None not in (generation, holding.generation) and generation != holding.generation:
        return
    yield Present(
        Holding(
            holding.resources,
            holding.project or base.project,
            holding.user or base.user,
            holding.type or base.type,
            generation if holding.generation is None else holding.generation,
            holding.expiry or base.expiry,
            holding.request or base.request,
        )
    )


def _states_after_extension(state: Present | None, extended_holding: Holding) -> Iterable[State]:
    if state is not None and _is_active(state):
        holding = _combine(replace(state.holding, expiry=UNKNOWN), extended_holding)
        return [] if holding is None else [Present(holding)]
    return []


def _states_after_read(state: Present | None, read: ConsumerRead) -> Iterable[State]:
    if read.holding is None:
        if _is_active(state):
            return []
        return [state] if read.respects_expiry else [None]
    if state is None or (read.respects_expiry and state.is_expired):
        return []
    holding = _combine(state.holding, read.holding)
    if holding is None:
        return []
    return [state if holding == state.holding else replace(state, holding=holding)]


def _states_after_refusal(state: Present | None, refusal: ConsumerRefusal) -> Iterable[State]:
    request = refusal.request
    if state is not None and _is_active(state) and request not in (None, UNKNOWN) and state.holding.request == request:
        # An equal request would have succeeded, with the holding of the consumer.
        return []
    match refusal.reason:
        case "held":
            return [state] if _is_active(state) else []
        case "missing":
            return [] if _is_active(state) else [None]
        case "capacity" if refusal.expected is None:
            return [] if _is_active(state) else [state]
        case "capacity":
            return _states_with_generation(state, refusal.expected)
    if refusal.expected == refusal.actual:
        return []
    if refusal.actual is None:
        return [] if _is_active(state) else [state]
    return _states_with_generation(state, refusal.actual)


def _states_with_generation(state: Present | None, generation: int | None) -> Iterable[State]:
    if state is None or state.is_expired:
        return []
    holding = _combine(state.holding, Holding(generation=generation))
    return [] if holding is None else [Present(holding)]


def _combine(holding: Holding, other: Holding) -> Holding | None:
    """Return the known holding, completed from a response; None if the response contradicts it."""
    fields = {}
    for name in Holding.__slots__:
        value, other_value = getattr(holding, name), getattr(other, name)
        if other_value is None or value == other_value:
            fields[name] = value
        elif value is None or (name in ("expiry", "request") and UNKNOWN in (value, other_value)):
            fields[name] = value if other_value == UNKNOWN else other_value
        else:
            return None
    return Holding(**fields)
