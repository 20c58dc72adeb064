"""Each consumer is a linearizable register: its owner, its type, what it holds, its generation, its lease, its request.

The request is the one of POST /v1/claims that placed it: an equal one, and no other, is answered with what it holds.
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

#: Reasons of a refusal that say something about the consumer; "capacity" does so in a reply of POST /v1/claims.
_TELLING = ("generation", "missing", "held")


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """The time of the lease with this end is over: an open call, since the service may notice at any later time."""

    ends: str


@dataclass(frozen=True, slots=True)
class AnyTime:
    """A call beside an event that moves a clock: whether the time of a lease is over is not known, and may change.

    A clock that goes back lets a lease run again, and where each process has a clock of its own the lease is over for
    some of them only.
    """

    call: ConsumerRead | ConsumerWrite | ConsumerExtended | ConsumerRefused


@dataclass(frozen=True, slots=True)
class Present:
    """The consumer exists.

    Attributes:
        is_over: Whether the time of its lease is over, so that the API below /v1 and writes take it as absent, and
            other reads may show it, until the service gives back what it holds.
    """

    holding: Holding
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The consumer is as it was at some moment before the end of the event with this number."""

    event: int


#: None: it holds nothing.
State = Present | Lost | None


def consumers(history: History) -> list[Violation]:
    """Return the consumers of which no order of the calls explains all replies."""
    violations = []
    for consumer, operations in by_consumer(history.operations, history.events).items():
        model = Register(history.events, operations)
        timed = [*operations, *losses(history.events, operations)]
        violations += judge("consumers", f"consumer {consumer}", timed, model, [None])
    return violations


def by_consumer(operations: Iterable[Operation], events: Iterable[Event] = ()) -> Mapping[str, list[Timed]]:
    """Return what the calls do to each consumer, and show of it, with the ends of leases.

    Args:
        events: Those that move a clock let leases end earlier, and perhaps for a while only.
    """
    clocks = [event for event in events if "clock" in event.nemesis]
    calls: dict[str, list[Timed]] = defaultdict(list)
    of_all = []
    for operation in operations:
        for effect in effects(operation):
            match effect:
                case ConsumerRead() | ConsumerWrite() | ConsumerExtended() | ConsumerRefused():
                    if isinstance(effect, ConsumerRefused) and not _is_telling(effect):
                        continue
                    changes = isinstance(effect, ConsumerWrite | ConsumerExtended)
                    call = AnyTime(effect) if any(_is_beside(operation, event) for event in clocks) else effect
                    timed = Timed(operation.number, operation.began, operation.ended, call, changes)
                    of_all += [timed] if effect.consumer == EVERY else []
                    calls[effect.consumer] += [timed, *_ends(operation, effect, clocks)]
    calls.pop(EVERY, None)
    return {consumer: [*_beside_new_ends(each), *of_all] for consumer, each in calls.items()}


def _beside_new_ends(operations: Sequence[Timed]) -> Iterator[Timed]:
    """Let a read beside a call that gives the lease another end take it for ended.

    Such a call is in time by the clock when it has its lock; until it is committed, readers see the end before it,
    which may come meanwhile (docs: v1-claims-extend).
    """
    new_ends = [each for each in operations if _gives_another_end(each.call)]
    ends = [each for each in operations if isinstance(each.call, LeaseEnd)]
    for each in operations:
        late = isinstance(each.call, ConsumerRead) and each.call.minds_ends and each.call.shown is None
        if late and any(overlap(each, new_end) for new_end in new_ends) and any(overlap(each, end) for end in ends):
            yield replace(each, call=AnyTime(each.call))
        else:
            yield each


def _gives_another_end(call: object) -> bool:
    match call:
        case ConsumerExtended() | ConsumerWrite(expected=int(), after=Holding(ends=str())):
            return True
    return False


def _is_beside(operation: Operation, event: Event) -> bool:
    begins_in_time = event.healed is None or operation.began <= event.healed
    return begins_in_time and (operation.ended is None or operation.ended >= event.began)


def _is_telling(refusal: ConsumerRefused) -> bool:
    return refusal.why in _TELLING or (refusal.why == "capacity" and refusal.request is not None)


def _ends(operation: Operation, effect: object, clocks: Iterable[Event]) -> Iterator[Timed]:
    """The end of the lease that a call begins, or may."""
    match effect:
        case ConsumerWrite(after=Holding(ends=str(ends)), may_end=int(began)):
            pass
        case ConsumerExtended(shown=Holding(ends=str(ends)), may_end=int(began)):
            pass
        case _:
            return
    moved = [event.began for event in clocks if event.healed is None or event.healed >= operation.began]
    yield Timed(operation.number, max(min([began, *moved]), operation.began), None, LeaseEnd(ends))


class Register:
    """The model of one consumer.

    Args:
        events: Those of the history, for losses.
        operations: All calls about the consumer, whose writes are what it may be after a loss.
    """

    def __init__(self, events: Sequence[Event] = (), operations: Sequence[Timed] = ()) -> None:
        self._events = events
        self._operations = operations
        self._before: dict[int, Sequence[State]] = {}

    def step(self, state: State, operation: Timed, *_joined: Timed) -> Iterable[State]:
        """Return the states that the consumer may have after the call; none if it cannot have answered so."""
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
            case LeaseEnd(ends):
                return [replace(state, is_over=True)] if state is not None and _is_due(state.holding, ends) else []
        raise TypeError(operation.call)

    def _states_before(self, event: int) -> Sequence[State]:
        """Return what the consumer may have been at any moment before the end of an event, as far as that is lost."""
        if event not in self._before:
            # The end of a lease that still runs begins later.
            leased = any(isinstance(each.call, LeaseEnd) for each in self._operations)
            writes = self._writes_before(self._events[event])
            holdings = {_as_written(write, leased=leased) for write in writes if write and write.after is not None}
            present = [Present(holding, is_over) for holding in holdings for is_over in (False, True)[: 1 + leased]]
            may_be_absent = leased or any(write is None or write.after is None for write in writes)
            self._before[event] = [*([None] if may_be_absent else ()), *present]
        return self._before[event]

    def _writes_before(self, event: Event) -> Sequence[ConsumerWrite | None]:
        """Return the writes that a loss may leave as the last; None: it may leave none."""
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
    """Return the state with its lease over, and not over, if there may be one."""
    if isinstance(state, Present) and state.holding.ends != NEVER:
        return [replace(state, is_over=False), replace(state, is_over=True)]
    return [state]


def _as_written(write: ConsumerWrite, *, leased: bool) -> Holding:
    """Return what the write alone says about the consumer after it."""
    assert write.after is not None
    ends = UNKNOWN if leased else NEVER
    generation = write.after.generation
    if generation is None and write.expected is not ANY:
        generation = 1 if write.expected is ABSENT else _next(write.expected)
    return replace(write.after, generation=generation, ends=ends)


def _is_due(holding: Holding, ends: str) -> bool:
    """Whether the lease of the consumer may be the one with this end."""
    return holding.ends in (ends, UNKNOWN) or (ends == UNKNOWN and holding.ends != NEVER)


def _next(generation: object) -> int | None:
    return generation + 1 if isinstance(generation, int) else None


def _is_there(state: Present | None) -> bool:
    return state is not None and not state.is_over


def _written(state: Present | None, write: ConsumerWrite) -> Iterable[State]:
    if not write.certain:
        yield state
    before = state.holding if state is not None and _is_there(state) else None
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
    if state is not None and _is_there(state):
        known = _agreed(replace(state.holding, ends=UNKNOWN), shown)
        return [] if known is None else [Present(known)]
    return []


def _read(state: Present | None, read: ConsumerRead) -> Iterable[State]:
    if read.shown is None:
        if _is_there(state):
            return []
        return [state] if read.minds_ends else [None]
    if state is None or (read.minds_ends and state.is_over):
        return []
    known = _agreed(state.holding, read.shown)
    if known is None:
        return []
    return [state if known == state.holding else replace(state, holding=known)]


def _refused(state: Present | None, refusal: ConsumerRefused) -> Iterable[State]:
    request = refusal.request
    if state is not None and _is_there(state) and request not in (None, UNKNOWN) and state.holding.request == request:
        # An equal request is answered with what the consumer holds.
        return []
    match refusal.why:
        case "held":
            return [state] if _is_there(state) else []
        case "missing":
            return [] if _is_there(state) else [None]
        case "capacity" if refusal.given is None:
            return [] if _is_there(state) else [state]
        case "capacity":
            return _has_generation(state, refusal.given)
    if refusal.given == refusal.actual:
        return []
    if refusal.actual is None:
        return [] if _is_there(state) else [state]
    return _has_generation(state, refusal.actual)


def _has_generation(state: Present | None, generation: int | None) -> Iterable[State]:
    if state is None or state.is_over:
        return []
    known = _agreed(state.holding, Holding(generation=generation))
    return [] if known is None else [Present(known)]


def _agreed(known: Holding, shown: Holding) -> Holding | None:
    """Return what is known of a consumer once a reply shows this; None if the reply contradicts it."""
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
