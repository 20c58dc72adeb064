"""Check of provider generations as linearizable registers with compare-and-set and increments by claims.

Claims written in one transaction raise a generation once, and all overlap in time (docs: api-claims).  Generations of
bare metal nodes are not checked, because the service itself writes their inventories.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jepsen.calls import effects
from jepsen.checker.epochs import Loss, losses
from jepsen.checker.holdings import amounts_of_query
from jepsen.checker.inventories import inventories
from jepsen.checker.linearizable import Timed
from jepsen.checker.verdicts import judge
from jepsen.effect_types import (
    ABSENT,
    EVERY,
    ConsumerRead,
    ConsumerWrite,
    Effect,
    NodeTouched,
    ProviderGone,
    ProviderRead,
    ProviderRefused,
    ProvidersLeft,
    ProviderUsed,
    ProviderWrite,
)
from jepsen.history import History, Operation
from jepsen.violation import Violation

#: Larger than any generation.
_UNBOUNDED = sys.maxsize


@dataclass(frozen=True, slots=True)
class Used:
    """A claim that names the provider, or may do so: a ``ProviderUsed`` that is equal for equal responses."""

    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Existing:
    """The provider exists, and its generation is in a range."""

    low: int
    high: int


#: None: the provider does not exist.
State = Existing | None


def generations(history: History) -> list[Violation]:
    """Return a violation for each provider for which no order of the operations explains all generations shown."""
    violations = []
    for provider, operations in by_provider(history.operations).items():
        created = any(isinstance(each.call, ProviderWrite) and each.call.expected is ABSENT for each in operations)
        initial: list[State] = [None] if created else [None, Existing(0, _UNBOUNDED)]
        timed = [*operations, *losses(history.events, operations)]
        deleted = any(isinstance(each.call, ProviderGone) for each in operations)
        model = Generation(_highest_shown(operations), deleted=deleted)
        violations += judge("generations", f"provider {provider}", timed, model, initial)
    return violations


def by_provider(operations: Sequence[Operation]) -> Mapping[str, list[Timed]]:
    """Return the effects on the generation of each provider, except the providers of nodes."""
    decoded = [(operation, effects(operation)) for operation in operations]
    held = _held_by(effect for _, call_effects in decoded for effect in call_effects)
    known = _classes(operations)
    calls: dict[str, list[Timed]] = defaultdict(list)
    of_any: list[tuple[Timed, Collection[str]]] = []
    nodes = {
        effect.provider for _, call_effects in decoded for effect in call_effects if isinstance(effect, NodeTouched)
    }
    for operation, call_effects in decoded:
        for effect in call_effects:
            match effect:
                case ProviderWrite(provider) | ProviderGone(provider):
                    calls[provider].append(_timed(operation, effect))
                case ProviderUsed(provider, consumer, shown) if provider == EVERY:
                    of_any.append((_timed(operation, Used(shown), joins=True), _requested_classes(operation, consumer)))
                case ProviderUsed(provider, _, shown):
                    calls[provider].append(_timed(operation, Used(shown), joins=True))
                case ProviderRead(provider) | ProviderRefused(provider, "generation" | "missing"):
                    calls[provider].append(_timed(operation, effect, changes=False))
        for provider in _left(call_effects, held):
            calls[provider].append(_timed(operation, Used(), optional=True, joins=True))
    of_every = calls.pop(EVERY, [])
    return {
        provider: each + of_every + [timed for timed, classes in of_any if _may_be_used(known.get(provider), classes)]
        for provider, each in calls.items()
        if provider not in nodes
    }


def _classes(operations: Sequence[Operation]) -> Mapping[str, set[str]]:
    """Return the classes of all inventories that a provider ever had, by uuid, for providers created meanwhile."""
    created = (effect for operation in operations for effect in effects(operation) if isinstance(effect, ProviderWrite))
    classes: dict[str, set[str]] = {effect.provider: set() for effect in created if effect.expected is ABSENT}
    for provider, name in inventories(History({}, [*operations], [])):
        if provider in classes:
            classes[provider].add(name)
    return classes


def _requested_classes(operation: Operation, consumer: str) -> Collection[str]:
    """Return the classes that a claim requests; empty if its query is too complex."""
    requests = operation.body["requests"]
    return amounts_of_query(next(each["query"] for each in requests if each["consumer"] == consumer)) or ()


def _may_be_used(known: set[str] | None, classes: Collection[str]) -> bool:
    return known is None or not classes or not known.isdisjoint(classes)


def _timed(operation: Operation, call: object, **more: bool) -> Timed:
    return Timed(operation.number, operation.began, operation.ended, call, **more)


def _held_by(call_effects: Iterable[Effect]) -> Mapping[str, set[str]]:
    """Return the providers that each consumer ever used, and EVERY if a place is unknown."""
    held: dict[str, set[str]] = defaultdict(set)
    for effect in call_effects:
        match effect:
            case ConsumerWrite(consumer, _, after) if after is not None:
                held[consumer].update(after.providers or [EVERY])
            case ConsumerRead(consumer, shown) if shown is not None:
                held[consumer].update(shown.providers)
    return held


def _left(call_effects: Sequence[Effect], held: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the providers that the operation changes only if its emptied consumers used them."""
    emptied = [effect.consumer for effect in call_effects if isinstance(effect, ProvidersLeft)]
    named = {effect.provider for effect in call_effects if isinstance(effect, ProviderUsed | ProviderWrite)}
    yield from set().union(*(held.get(consumer, ()) for consumer in emptied)) - named


def _highest_shown(operations: Iterable[Timed]) -> int:
    names = ("shown", "expected", "generation", "given", "actual")
    numbers = (getattr(each.call, name, None) for each in operations for name in names)
    return max((number for number in numbers if isinstance(number, int)), default=0)


class Generation:
    """The model of a provider's generation.

    Args:
        highest_shown: Highest generation that any operation shows or states.  Optional claims are tried only up to the
            next one, since no operation distinguishes higher generations.
        deleted: Whether an operation deletes the provider, so that a loss may go back to an earlier life with a higher
            generation.
    """

    def __init__(self, highest_shown: int = _UNBOUNDED, *, deleted: bool = False) -> None:
        self._highest_shown = highest_shown
        self._deleted = deleted

    def step(self, state: State, operation: Timed, *joined: Timed) -> Iterable[State]:
        """Return the possible states of the provider after the operation; empty if its response is impossible.

        Args:
            joined: Other claims of the same transaction.
        """
        match operation.call:
            case Loss():
                return [None, Existing(0, _UNBOUNDED if state is None or self._deleted else state.high)]
            case call if state is None:
                return _absent(call)
            case ProviderGone():
                return [None]
            case ProviderWrite() as write:
                return _written(state, write)
            case Used() if (operation.ended is None or operation.optional) and state.low > self._highest_shown:
                return []
            case Used():
                return _used(state, [operation, *joined])
            case ProviderRead(generation=int(shown)):
                return _shown(state, shown)
            case ProviderRefused(why="generation") as refusal:
                return _refused(state, refusal)
        return []


def _absent(call: object) -> Sequence[State]:
    """Return the states after an operation on a provider that does not exist."""
    match call:
        case ProviderWrite(expected=expected, shown=shown) if expected is ABSENT and shown in (None, 0):
            return [Existing(0, 0)]
        case ProviderRead(generation=None) | ProviderRefused(why="missing"):
            return [None]
    return []


def _written(state: Existing, write: ProviderWrite) -> Iterator[State]:
    if write.expected is ABSENT:
        return
    for before in _shown(state, write.expected) if isinstance(write.expected, int) else [state]:
        for raised in write.raises:
            after = Existing(before.low + raised, before.high + raised)
            yield from [after] if write.shown is None else _shown(after, write.shown)


def _refused(state: Existing, refusal: ProviderRefused) -> Sequence[State]:
    """Return the states after a refusal for a generation conflict."""
    if refusal.actual is not None:
        return _shown(state, refusal.actual) if refusal.actual != refusal.given else []
    return [state] if (state.low, state.high) != (refusal.given, refusal.given) else []


def _used(state: Existing, claims: Iterable[Timed]) -> Sequence[State]:
    """Return the states after one transaction with all of these claims."""
    after = [Existing(state.low + 1, state.high + 1)]
    for claim in claims:
        assert isinstance(claim.call, Used)
        if claim.call.shown is not None:
            after = [known for each in after for known in _shown(each, claim.call.shown)]
    return after


def _shown(state: Existing, generation: int) -> Sequence[Existing]:
    """Return the provider with this generation; empty if that is impossible."""
    if not state.low <= generation <= state.high:
        return []
    return [Existing(generation, generation)]
