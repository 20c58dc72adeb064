"""Check of lost POST /v1/claims requests with ``all_or_nothing``: each took effect for all its consumers, or for none.

A request certainly took effect for a consumer if no order of the other operations explains the responses about that
consumer.  By the end of the first such response, each other consumer also holds its place by this request, or held one
by an equal request before.  If no order of the operations on such a consumer allows that, then at some point in time
one consumer was placed and another was not.  Each consumer is judged by itself, with full freedom for the others, so
every violation is real, but not every error is found.

Repetitions of a request count as one request, because the one that took effect is unknown.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jepsen.checker import linearizable
from jepsen.checker.consumers import AnyTime, Present, Register, State, by_consumer
from jepsen.checker.epochs import losses
from jepsen.checker.linearizable import Outcome, TimedCall, Verdict
from jepsen.effect_types import UNKNOWN, ConsumerWrite
from jepsen.history import Event, History, Operation
from jepsen.violation import Violation


@dataclass(frozen=True, slots=True)
class _PlacingWrite:
    """A write that placed the consumer, or found it placed by an equal request."""

    call: ConsumerWrite | AnyTime

    @property
    def write(self) -> ConsumerWrite:
        call = self.call.call if isinstance(self.call, AnyTime) else self.call
        assert isinstance(call, ConsumerWrite)
        return call


@dataclass(frozen=True, slots=True)
class _Predecessor:
    """An operation whose effect, like that of ``_PlacingWrite``, permits the effects of ``_Successor``."""

    call: Any


@dataclass(frozen=True, slots=True)
class _Successor:
    """An operation that takes effect only after a ``_PlacingWrite`` or a ``_Predecessor``."""

    call: Any


class _Model:
    """The model of a consumer, and whether a ``_PlacingWrite`` or a ``_Predecessor`` has taken effect."""

    def __init__(self, consumer: Register) -> None:
        self._consumer = consumer

    def step(
        self, state: tuple[bool, State], operation: TimedCall, *_joined: TimedCall
    ) -> Iterable[tuple[bool, State]]:
        happened, inner = state
        match operation.call:
            case _PlacingWrite(call) as placing_write:
                states = self._consumer.step(inner, replace(operation, call=call))
                return [
                    (True, later)
                    for later in [
                        *states,
                        *([inner] if _may_hold(inner, placing_write.write) else []),
                    ]
                ]
            case _Predecessor(call):
                return [(True, later) for later in self._consumer.step(inner, replace(operation, call=call))]
            case _Successor(call):
                states = self._consumer.step(inner, replace(operation, call=call)) if happened else ()
                return [(True, later) for later in states]
        return [(happened, later) for later in self._consumer.step(inner, operation)]


def _may_hold(state: State, write: ConsumerWrite) -> bool:
    """Whether the consumer may hold its place by an equal request; after a loss its holding is unknown."""
    if not isinstance(state, Present):
        return state is not None
    assert write.holding is not None
    return state.holding.request in (None, UNKNOWN, write.holding.request) or write.holding.request == UNKNOWN


def all_or_nothing(history: History) -> Iterator[Violation]:
    """Yield a violation for each lost request that certainly took effect for one consumer and not for another."""
    calls: dict[str, list[Operation]] = defaultdict(list)
    answered = set()
    for operation in history.operations:
        if (operation.method, operation.path) == ("POST", "/v1/claims") and operation.body.get("all_or_nothing"):
            if operation.is_open:
                calls[json.dumps(operation.body, sort_keys=True)].append(operation)
            else:
                answered.add(operation.number)
    consumers = by_consumer(history.operations, history.events) if calls else {}
    for equal in calls.values():
        requested = [request["consumer"] for request in equal[0].body["requests"] if not request.get("dry_run")]
        numbers = {operation.number for operation in equal}
        violation = _violation_by(
            {consumer: consumers[consumer] for consumer in requested}, numbers, answered, history.events
        )
        if violation is not None:
            yield violation


def _violation_by(
    consumers: Mapping[str, Sequence[TimedCall]],
    numbers: Collection[int],
    answered: Collection[int],
    events: Sequence[Event],
) -> Violation | None:
    """Return the violation by equal requests with these numbers, if there is one.

    Args:
        answered: Numbers of the all-or-nothing requests that got a response.
    """
    placements = []
    for consumer, timed in consumers.items():
        verdict = _verdict(timed, [operation for operation in timed if operation.number not in numbers], events)
        if verdict.outcome is Outcome.VIOLATED and verdict.impossible is not None and _is_linearizable(timed, events):
            assert verdict.impossible.ended is not None
            placements.append((verdict.impossible.ended, verdict.impossible.number, consumer))
    if not placements:
        return None
    until, reply, first = min(placements)
    # An all-or-nothing request reads all holdings before it places any of its consumers.
    successors = {reply} & {*answered}
    if successors:
        reordered = _wrap_calls(_wrap_calls(consumers[first], numbers, _Successor), successors, _Predecessor)
        successors = successors if _verdict(consumers[first], reordered, events).outcome is Outcome.VIOLATED else set()
    for consumer, timed in consumers.items():
        if consumer != first and _is_linearizable(timed, events):
            placed = [*_wrap_calls(timed, successors, _Successor), _required_placement(timed, numbers, until)]
            if _verdict(timed, placed, events).outcome is Outcome.VIOLATED:
                return Violation(
                    "all or nothing", f"{first} is placed, but {consumer} is not", sorted({*numbers, reply})
                )
    return None


def _wrap_calls(
    timed: Sequence[TimedCall], numbers: Collection[int], mark: Callable[[Any], Any]
) -> Sequence[TimedCall]:
    return [
        replace(operation, call=mark(operation.call)) if operation.number in numbers else operation
        for operation in timed
    ]


def _required_placement(timed: Sequence[TimedCall], numbers: Collection[int], until: int) -> TimedCall:
    """Return an operation that is possible only if one of these requests placed the consumer by a point in time."""
    # The write begins first; the expiry of its lease begins later.
    first = min(
        (operation for operation in timed if operation.number in numbers), key=lambda operation: operation.began
    )
    assert isinstance(first.call, ConsumerWrite | AnyTime)
    return replace(first, ended=until, call=_PlacingWrite(first.call))


def _is_linearizable(timed: Sequence[TimedCall], events: Sequence[Event]) -> bool:
    return _verdict(timed, timed, events).outcome is Outcome.LINEARIZABLE


def _verdict(all_operations: Sequence[TimedCall], operations: Sequence[TimedCall], events: Sequence[Event]) -> Verdict:
    """Search for an order of some operations on a consumer; losses depend on all operations."""
    model = _Model(Register(events, all_operations))
    return linearizable.check([*operations, *losses(events, all_operations)], model, [(False, None)])
