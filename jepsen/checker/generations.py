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
from jepsen.checker.linearizable import TimedCall
from jepsen.checker.verdicts import judge
from jepsen.effect_types import (
    ABSENT,
    EVERY,
    ConsumerEmptying,
    ConsumerRead,
    ConsumerWrite,
    Effect,
    NodeOperation,
    ProviderClaim,
    ProviderDeletion,
    ProviderRead,
    ProviderRefusal,
    ProviderWrite,
)
from jepsen.history import History, Operation
from jepsen.violation import Violation

#: Larger than any generation.
_UNBOUNDED = sys.maxsize


@dataclass(frozen=True, slots=True)
class EqualClaim:
    """A claim that names the provider, or may do so: a ``ProviderClaim`` that is equal for equal responses."""

    generation: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationRange:
    """An existing provider, whose generation is in this range."""

    low: int
    high: int


#: None: the provider does not exist.
State = GenerationRange | None


def generations(history: History) -> list[Violation]:
    """Return a violation for each provider for which no order of the operations explains all generations shown."""
    violations = []
    for provider, operations in by_provider(history.operations).items():
        created = any(
            isinstance(operation.call, ProviderWrite) and operation.call.expected is ABSENT for operation in operations
        )
        initial: list[State] = [None] if created else [None, GenerationRange(0, _UNBOUNDED)]
        timed = [*operations, *losses(history.events, operations)]
        deleted = any(isinstance(operation.call, ProviderDeletion) for operation in operations)
        model = Generation(_highest_shown(operations), deleted=deleted)
        violations += judge("generations", f"provider {provider}", timed, model, initial)
    return violations


def by_provider(operations: Sequence[Operation]) -> Mapping[str, list[TimedCall]]:
    """Return the effects on the generation of each provider, except the providers of nodes."""
    decoded = [(operation, effects(operation)) for operation in operations]
    used_by = _providers_used_by(effect for _, call_effects in decoded for effect in call_effects)
    classes_by_provider = _classes(operations)
    calls: dict[str, list[TimedCall]] = defaultdict(list)
    claims_anywhere: list[tuple[TimedCall, Collection[str]]] = []
    nodes = {
        effect.provider for _, call_effects in decoded for effect in call_effects if isinstance(effect, NodeOperation)
    }
    for operation, call_effects in decoded:
        for effect in call_effects:
            match effect:
                case ProviderWrite(provider) | ProviderDeletion(provider):
                    calls[provider].append(_timed_call(operation, effect))
                case ProviderClaim(provider, consumer, generation) if provider == EVERY:
                    claims_anywhere.append(
                        (
                            _timed_call(operation, EqualClaim(generation), joins=True),
                            _requested_classes(operation, consumer),
                        )
                    )
                case ProviderClaim(provider, _, generation):
                    calls[provider].append(_timed_call(operation, EqualClaim(generation), joins=True))
                case ProviderRead(provider) | ProviderRefusal(provider, "generation" | "missing"):
                    calls[provider].append(_timed_call(operation, effect, changes=False))
        for provider in _possibly_left_providers(call_effects, used_by):
            calls[provider].append(_timed_call(operation, EqualClaim(), optional=True, joins=True))
    calls_on_every_provider = calls.pop(EVERY, [])
    return {
        provider: provider_calls
        + calls_on_every_provider
        + [timed for timed, classes in claims_anywhere if _may_be_used(classes_by_provider.get(provider), classes)]
        for provider, provider_calls in calls.items()
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
    return amounts_of_query(next(request["query"] for request in requests if request["consumer"] == consumer)) or ()


def _may_be_used(provider_classes: set[str] | None, classes: Collection[str]) -> bool:
    return provider_classes is None or not classes or not provider_classes.isdisjoint(classes)


def _timed_call(operation: Operation, call: object, **more: bool) -> TimedCall:
    return TimedCall(operation.number, operation.began, operation.ended, call, **more)


def _providers_used_by(call_effects: Iterable[Effect]) -> Mapping[str, set[str]]:
    """Return the providers that each consumer ever used, and EVERY if a place is unknown."""
    used_by: dict[str, set[str]] = defaultdict(set)
    for effect in call_effects:
        match effect:
            case ConsumerWrite(consumer, _, holding) if holding is not None:
                used_by[consumer].update(holding.providers or [EVERY])
            case ConsumerRead(consumer, holding) if holding is not None:
                used_by[consumer].update(holding.providers)
    return used_by


def _possibly_left_providers(call_effects: Sequence[Effect], used_by: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the providers that the operation changes only if its emptied consumers used them."""
    emptied = [effect.consumer for effect in call_effects if isinstance(effect, ConsumerEmptying)]
    named = {effect.provider for effect in call_effects if isinstance(effect, ProviderClaim | ProviderWrite)}
    yield from set().union(*(used_by.get(consumer, ()) for consumer in emptied)) - named


def _highest_shown(operations: Iterable[TimedCall]) -> int:
    names = ("expected", "generation", "actual")
    numbers = (getattr(operation.call, name, None) for operation in operations for name in names)
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

    def step(self, state: State, operation: TimedCall, *joined: TimedCall) -> Iterable[State]:
        """Return the possible states of the provider after the operation; empty if its response is impossible.

        Args:
            joined: Other claims of the same transaction.
        """
        match operation.call:
            case Loss():
                return [None, GenerationRange(0, _UNBOUNDED if state is None or self._deleted else state.high)]
            case call if state is None:
                return _states_after_absent(call)
            case ProviderDeletion():
                return [None]
            case ProviderWrite() as write:
                return _states_after_write(state, write)
            case EqualClaim() if (operation.ended is None or operation.optional) and state.low > self._highest_shown:
                return []
            case EqualClaim():
                return _states_after_claims(state, [operation, *joined])
            case ProviderRead(generation=int(generation)):
                return _states_with(state, generation)
            case ProviderRefusal(reason="generation") as refusal:
                return _states_after_refusal(state, refusal)
        return []


def _states_after_absent(call: object) -> Sequence[State]:
    """Return the states after an operation on a provider that does not exist."""
    match call:
        case ProviderWrite(expected=expected, generation=generation) if expected is ABSENT and generation in (None, 0):
            return [GenerationRange(0, 0)]
        case ProviderRead(generation=None) | ProviderRefusal(reason="missing"):
            return [None]
    return []


def _states_after_write(state: GenerationRange, write: ProviderWrite) -> Iterator[State]:
    if write.expected is ABSENT:
        return
    for state_before in _states_with(state, write.expected) if isinstance(write.expected, int) else [state]:
        for increase in write.raises:
            state_after = GenerationRange(state_before.low + increase, state_before.high + increase)
            yield from [state_after] if write.generation is None else _states_with(state_after, write.generation)


def _states_after_refusal(state: GenerationRange, refusal: ProviderRefusal) -> Sequence[State]:
    """Return the states after a refusal for a generation conflict."""
    if refusal.actual is not None:
        return _states_with(state, refusal.actual) if refusal.actual != refusal.expected else []
    return [state] if (state.low, state.high) != (refusal.expected, refusal.expected) else []


def _states_after_claims(state: GenerationRange, claims: Iterable[TimedCall]) -> Sequence[State]:
    """Return the states after one transaction with all of these claims."""
    states = [GenerationRange(state.low + 1, state.high + 1)]
    for claim in claims:
        assert isinstance(claim.call, EqualClaim)
        if claim.call.generation is not None:
            states = [narrowed for later in states for narrowed in _states_with(later, claim.call.generation)]
    return states


def _states_with(state: GenerationRange, generation: int) -> Sequence[GenerationRange]:
    """Return the provider with this generation; empty if that is impossible."""
    if not state.low <= generation <= state.high:
        return []
    return [GenerationRange(generation, generation)]
