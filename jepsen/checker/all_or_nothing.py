"""Calls of POST /v1/claims with ``all_or_nothing`` whose replies are lost took effect for all consumers, or for none.

For one of its consumers a call took effect for certain if no order of the other calls explains the replies about that
consumer.  By the end of the first reply that shows so, each other consumer has its place by the call, too, or it held
one by an equal request before.  If no order of the calls about such a consumer has room for that, there was a moment at
which one of them had its place and another one had not.  Each consumer is judged by itself, with all freedom as to the
others, so what is found is wrong; not all that is wrong is found.

A call that is repeated is the same call: it is not known which of them took effect.
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
from jepsen.checker.linearizable import Outcome, Timed, Verdict
from jepsen.effect_types import UNKNOWN, ConsumerWrite
from jepsen.history import Event, History, Operation
from jepsen.violation import Violation


@dataclass(frozen=True, slots=True)
class _Answered:
    """A consumer has got its place by this write, or it had one by an equal request."""

    call: ConsumerWrite | AnyTime

    @property
    def write(self) -> ConsumerWrite:
        call = self.call.call if isinstance(self.call, AnyTime) else self.call
        assert isinstance(call, ConsumerWrite)
        return call


@dataclass(frozen=True, slots=True)
class _First:
    """A call, from whose effect on those that follow may have theirs, as from that of ``_Answered`` on."""

    call: Any


@dataclass(frozen=True, slots=True)
class _Following:
    """A call that has its effect only later than those."""

    call: Any


class _Model:
    """A consumer, and whether what others follow has happened."""

    def __init__(self, consumer: Register) -> None:
        self._consumer = consumer

    def step(self, state: tuple[bool, State], operation: Timed, *_joined: Timed) -> Iterable[tuple[bool, State]]:
        happened, held = state
        match operation.call:
            case _Answered(call) as answered:
                written = self._consumer.step(held, replace(operation, call=call))
                return [(True, after) for after in [*written, *([held] if _may_hold(held, answered.write) else [])]]
            case _First(call):
                return [(True, after) for after in self._consumer.step(held, replace(operation, call=call))]
            case _Following(call):
                after_it = self._consumer.step(held, replace(operation, call=call)) if happened else ()
                return [(True, after) for after in after_it]
        return [(happened, after) for after in self._consumer.step(held, operation)]


def _may_hold(state: State, write: ConsumerWrite) -> bool:
    """Whether the consumer may have its place by an equal request; before a loss it may have held anything."""
    if not isinstance(state, Present):
        return state is not None
    assert write.after is not None
    return state.holding.request in (None, UNKNOWN, write.after.request) or write.after.request == UNKNOWN


def all_or_nothing(history: History) -> Iterator[Violation]:
    """Yield the calls without a reply that certainly had an effect for one consumer, and certainly none for another."""
    calls: dict[str, list[Operation]] = defaultdict(list)
    others = set()
    for operation in history.operations:
        if (operation.method, operation.path) == ("POST", "/v1/claims") and operation.body.get("all_or_nothing"):
            if operation.is_open:
                calls[json.dumps(operation.body, sort_keys=True)].append(operation)
            else:
                others.add(operation.number)
    consumers = by_consumer(history.operations, history.events) if calls else {}
    for equal in calls.values():
        requested = [each["consumer"] for each in equal[0].body["requests"] if not each.get("dry_run")]
        numbers = {operation.number for operation in equal}
        violation = _torn({each: consumers[each] for each in requested}, numbers, others, history.events)
        if violation is not None:
            yield violation


def _torn(
    consumers: Mapping[str, Sequence[Timed]], numbers: Collection[int], others: Collection[int], events: Sequence[Event]
) -> Violation | None:
    """Return what is wrong with equal calls of these numbers.

    Args:
        others: Numbers of the calls for all or nothing that were answered.
    """
    shown = []
    for consumer, timed in consumers.items():
        without = _verdict(timed, [each for each in timed if each.number not in numbers], events)
        if without.outcome is Outcome.VIOLATED and without.impossible is not None and _is_right(timed, events):
            assert without.impossible.ended is not None
            shown.append((without.impossible.ended, without.impossible.number, consumer))
    if not shown:
        return None
    until, reply, first = min(shown)
    # A call for all or nothing finds out what is held before it takes a place for any of its consumers.
    following = {reply} & {*others}
    if following:
        later = _marked(_marked(consumers[first], numbers, _Following), following, _First)
        following = following if _verdict(consumers[first], later, events).outcome is Outcome.VIOLATED else set()
    for consumer, timed in consumers.items():
        if consumer != first and _is_right(timed, events):
            placed = [*_marked(timed, following, _Following), _answered(timed, numbers, until)]
            if _verdict(timed, placed, events).outcome is Outcome.VIOLATED:
                return Violation(
                    "all or nothing", f"{first} has its place, and {consumer} has not", sorted({*numbers, reply})
                )
    return None


def _marked(timed: Sequence[Timed], numbers: Collection[int], mark: Callable[[Any], Any]) -> Sequence[Timed]:
    return [replace(each, call=mark(each.call)) if each.number in numbers else each for each in timed]


def _answered(timed: Sequence[Timed], numbers: Collection[int], until: int) -> Timed:
    """Return that the consumer's request was carried out by one of these calls, until a time."""
    # The write begins first, and the end of its lease later.
    first = min((each for each in timed if each.number in numbers), key=lambda each: each.began)
    assert isinstance(first.call, ConsumerWrite | AnyTime)
    return replace(first, ended=until, call=_Answered(first.call))


def _is_right(timed: Sequence[Timed], events: Sequence[Event]) -> bool:
    return _verdict(timed, timed, events).outcome is Outcome.LINEARIZABLE


def _verdict(known: Sequence[Timed], judged: Sequence[Timed], events: Sequence[Event]) -> Verdict:
    """Judge some of the calls that are known about a consumer, or others in place of them."""
    model = _Model(Register(events, known))
    return linearizable.check([*judged, *losses(events, known)], model, [(False, None)])
