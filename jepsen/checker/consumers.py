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
from jepsen.checker.linearizable import Timed
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
    ConsumerExtended,
    ConsumerRead,
    ConsumerRefused,
    ConsumerWrite,
    Holding,
)
from jepsen.history import Event, History, Operation, overlap
from jepsen.violation import Violation

#: Reasons of a refusal that depend on the consumer; "capacity" does so in a response of POST /v1/claims.
_INFORMATIVE = ("generation", "missing", "held")


@dataclass(frozen=True, slots=True)
class LeaseExpiry:
    """The expiry of a lease; an open operation, because the service may notice it at any later time."""

    ends: str


@dataclass(frozen=True, slots=True)
class AnyTime:
    """An operation during an event that moves a clock, when leases may expire and become active again.

    A clock that goes back reactivates a lease; and if each process has its own clock, a lease expires only for some.
    """

    call: ConsumerRead | ConsumerWrite | ConsumerExtended | ConsumerRefused


@dataclass(frozen=True, slots=True)
class Present:
    """The consumer exists.

    Attributes:
        is_expired: Whether its lease has expired: the v1 API and writes treat the consumer as absent, and other reads
            may show it, until the service releases its resources.
    """

    holding: Holding
    is_expired: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The consumer is in some state from before the end of the event with this number, which lost commits."""

    event: int


#: None: the consumer holds nothing.
State = Present | Lost | None


def consumers(history: History) -> list[Violation]:
    """Return a violation for each consumer for which no order of the operations explains all responses."""
    violations = []
    for consumer, operations in by_consumer(history.operations, history.events).items():
        model = Register(history.events, operations)
        timed = [*operations, *losses(history.events, operations)]
        violations += judge("consumers", f"consumer {consumer}", timed, model, [None])
    return violations


def by_consumer(operations: Iterable[Operation], events: Iterable[Event] = ()) -> Mapping[str, list[Timed]]:
    """Return the effects on each consumer, with the expiries of its leases.

    Args:
        events: Events of the run; those that move a clock let leases expire early, perhaps temporarily.
    """
    clocks = [event for event in events if "clock" in event.nemesis]
    calls: dict[str, list[Timed]] = defaultdict(list)
    of_all = []
    for operation in operations:
        for effect in effects(operation):
            match effect:
                case ConsumerRead() | ConsumerWrite() | ConsumerExtended() | ConsumerRefused():
                    if isinstance(effect, ConsumerRefused) and not _is_informative(effect):
                        continue
                    changes = isinstance(effect, ConsumerWrite | ConsumerExtended)
                    call = AnyTime(effect) if any(_overlaps(operation, event) for event in clocks) else effect
                    timed = Timed(operation.number, operation.began, operation.ended, call, changes)
                    of_all += [timed] if effect.consumer == EVERY else []
                    calls[effect.consumer] += [timed, *_expiries(operation, effect, clocks)]
    calls.pop(EVERY, None)
    return {consumer: [*_during_expiry_changes(each), *of_all] for consumer, each in calls.items()}


def _during_expiry_changes(operations: Sequence[Timed]) -> Iterator[Timed]:
    """Allow reads during a change of the expiry to show the lease as expired.

    The change is compared with the clock once it holds its lock.  Until it commits, readers see the old expiry, which
    may pass meanwhile (docs: v1-claims-extend).
    """
    new_ends = [each for each in operations if _changes_expiry(each.call)]
    ends = [each for each in operations if isinstance(each.call, LeaseExpiry)]
    for each in operations:
        late = isinstance(each.call, ConsumerRead) and each.call.respects_expiry and each.call.shown is None
        if late and any(overlap(each, new_end) for new_end in new_ends) and any(overlap(each, end) for end in ends):
            yield replace(each, call=AnyTime(each.call))
        else:
            yield each


def _changes_expiry(call: object) -> bool:
    match call:
        case ConsumerExtended() | ConsumerWrite(expected=int(), after=Holding(ends=str())):
            return True
    return False


def _overlaps(operation: Operation, event: Event) -> bool:
    begins_in_time = event.healed is None or operation.began <= event.healed
    return begins_in_time and (operation.ended is None or operation.ended >= event.began)


def _is_informative(refusal: ConsumerRefused) -> bool:
    return refusal.why in _INFORMATIVE or (refusal.why == "capacity" and refusal.request is not None)


def _expiries(operation: Operation, effect: object, clocks: Iterable[Event]) -> Iterator[Timed]:
    """Yield the expiry of the lease that an operation begins or may begin."""
    match effect:
        case ConsumerWrite(after=Holding(ends=str(ends)), may_end=int(began)):
            pass
        case ConsumerExtended(shown=Holding(ends=str(ends)), may_end=int(began)):
            pass
        case _:
            return
    moved = [event.began for event in clocks if event.healed is None or event.healed >= operation.began]
    yield Timed(operation.number, max(min([began, *moved]), operation.began), None, LeaseExpiry(ends))


class Register:
    """The model of a consumer.

    Args:
        events: Events of the history, for losses.
        operations: All operations on the consumer, whose writes are the possible states after a loss.
    """

    def __init__(self, events: Sequence[Event] = (), operations: Sequence[Timed] = ()) -> None:
        self._events = events
        self._operations = operations
        self._before: dict[int, Sequence[State]] = {}

    def step(self, state: State, operation: Timed, *_joined: Timed) -> Iterable[State]:
        """Return the possible states of the consumer after the operation; empty if its response is impossible."""
        match operation.call:
            case Loss(event):
                return [Lost(event)]
            case call if isinstance(state, Lost):
                earlier = self._states_before(state.event)
                if isinstance(call, ConsumerRead) and call.shown is not None:
                    earlier = [before for before in earlier if isinstance(before, Present)]
                return {after for before in earlier for after in self.step(before, operation)}
            case AnyTime(call):
                inner = replace(operation, call=call)
                return {
                    later
                    for now in _at_any_time(state)
                    for after in self.step(now, inner)
                    for later in _at_any_time(after)
                }
            case ConsumerWrite() as write:
                return _written(state, write)
            case ConsumerExtended(shown=shown):
                return _extended(state, shown)
            case ConsumerRead() as read:
                return _read(state, read)
            case ConsumerRefused() as refusal:
                return _refused(state, refusal)
            case LeaseExpiry(ends):
                return (
                    [replace(state, is_expired=True)] if state is not None and _may_expire(state.holding, ends) else []
                )
        raise TypeError(operation.call)

    def _states_before(self, event: int) -> Sequence[State]:
        """Return the states that a loss in this event may restore."""
        if event not in self._before:
            # The expiry of a lease that is still active begins later.
            leased = any(isinstance(each.call, LeaseExpiry) for each in self._operations)
            writes = self._writes_before(self._events[event])
            holdings = {_as_written(write, leased=leased) for write in writes if write and write.after is not None}
            present = [
                Present(holding, is_expired) for holding in holdings for is_expired in (False, True)[: 1 + leased]
            ]
            may_be_absent = leased or any(write is None or write.after is None for write in writes)
            self._before[event] = [*([None] if may_be_absent else ()), *present]
        return self._before[event]

    def _writes_before(self, event: Event) -> Sequence[ConsumerWrite | None]:
        """Return the writes that may be the last one to survive a loss; None among them: perhaps none survives."""
        writes: list[registers.Write[ConsumerWrite | None]] = []
        for each in self._operations:
            call = each.call.call if isinstance(each.call, AnyTime) else each.call
            if isinstance(call, ConsumerWrite):
                writes.append(registers.Write(each.began, each.ended if call.certain else None, call))
        healed = math.inf if event.healed is None else event.healed
        if event.keeps_earlier:
            possible = registers.Register(None, writes, self._events).possible(event.began, healed)
            return [write.value for write in possible]
        return [None, *(write.value for write in writes if write.began < healed)]


def _at_any_time(state: State) -> Sequence[State]:
    """Return the state with an active and with an expired lease, if it may have one."""
    if isinstance(state, Present) and state.holding.ends != NEVER:
        return [replace(state, is_expired=False), replace(state, is_expired=True)]
    return [state]


def _as_written(write: ConsumerWrite, *, leased: bool) -> Holding:
    """Return the holding that the write alone implies."""
    assert write.after is not None
    ends = UNKNOWN if leased else NEVER
    generation = write.after.generation
    if generation is None and write.expected is not ANY:
        generation = 1 if write.expected is ABSENT else _next(write.expected)
    return replace(write.after, generation=generation, ends=ends)


def _may_expire(holding: Holding, ends: str) -> bool:
    """Whether the consumer's lease may have this expiry."""
    return holding.ends in (ends, UNKNOWN) or (ends == UNKNOWN and holding.ends != NEVER)


def _next(generation: object) -> int | None:
    return generation + 1 if isinstance(generation, int) else None


def _is_active(state: Present | None) -> bool:
    return state is not None and not state.is_expired


def _written(state: Present | None, write: ConsumerWrite) -> Iterable[State]:
    if not write.certain:
        yield state
    before = state.holding if state is not None and _is_active(state) else None
    match write.expected:
        case int(generation) if before is None or before.generation not in (None, generation):
            return
        case expected if (expected is ABSENT and before is not None) or (expected is PRESENT and state is None):
            return
    if write.after is None:
        yield None
        return
    after = write.after
    type_ = NO_TYPE if after.resources is not None else None
    base = before or Holding(type=type_, generation=0, ends=NEVER, request=NO_REQUEST)
    known = write.expected if isinstance(write.expected, int) else base.generation
    generation = _next(known)
    if None not in (generation, after.generation) and generation != after.generation:
        return
    yield Present(
        Holding(
            after.resources,
            after.project or base.project,
            after.user or base.user,
            after.type or base.type,
            generation if after.generation is None else after.generation,
            after.ends or base.ends,
            after.request or base.request,
        )
    )


def _extended(state: Present | None, shown: Holding) -> Iterable[State]:
    if state is not None and _is_active(state):
        known = _agreed(replace(state.holding, ends=UNKNOWN), shown)
        return [] if known is None else [Present(known)]
    return []


def _read(state: Present | None, read: ConsumerRead) -> Iterable[State]:
    if read.shown is None:
        if _is_active(state):
            return []
        return [state] if read.respects_expiry else [None]
    if state is None or (read.respects_expiry and state.is_expired):
        return []
    known = _agreed(state.holding, read.shown)
    if known is None:
        return []
    return [state if known == state.holding else replace(state, holding=known)]


def _refused(state: Present | None, refusal: ConsumerRefused) -> Iterable[State]:
    request = refusal.request
    if state is not None and _is_active(state) and request not in (None, UNKNOWN) and state.holding.request == request:
        # An equal request would have succeeded, with the holding of the consumer.
        return []
    match refusal.why:
        case "held":
            return [state] if _is_active(state) else []
        case "missing":
            return [] if _is_active(state) else [None]
        case "capacity" if refusal.given is None:
            return [] if _is_active(state) else [state]
        case "capacity":
            return _has_generation(state, refusal.given)
    if refusal.given == refusal.actual:
        return []
    if refusal.actual is None:
        return [] if _is_active(state) else [state]
    return _has_generation(state, refusal.actual)


def _has_generation(state: Present | None, generation: int | None) -> Iterable[State]:
    if state is None or state.is_expired:
        return []
    known = _agreed(state.holding, Holding(generation=generation))
    return [] if known is None else [Present(known)]


def _agreed(known: Holding, shown: Holding) -> Holding | None:
    """Return the known holding, completed from a response; None if the response contradicts it."""
    fields = {}
    for name in Holding.__slots__:
        before, now = getattr(known, name), getattr(shown, name)
        if now is None or before == now:
            fields[name] = before
        elif before is None or (name in ("ends", "request") and UNKNOWN in (before, now)):
            fields[name] = before if now == UNKNOWN else now
        else:
            return None
    return Holding(**fields)
