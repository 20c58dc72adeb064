"""Each provider's generation is a register with compare-and-set, which claims raise by one, alone or together.

Claims that are written together raise it once, so each of them overlaps with each other one (docs: api-claims).  The
generation of a provider of a bare metal node is not judged: the service itself writes its inventory.
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
_MOST = sys.maxsize


@dataclass(frozen=True, slots=True)
class Used:
    """A claim named the provider, or may have; as ``ProviderUsed``, but the same for all claims that show the same."""

    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Existing:
    """The provider exists, and its generation is one of a range."""

    least: int
    most: int


#: None: there is no such provider.
State = Existing | None


def generations(history: History) -> list[Violation]:
    """Return the providers of which no order of the calls explains all generations shown."""
    violations = []
    for provider, operations in by_provider(history.operations).items():
        created = any(isinstance(each.call, ProviderWrite) and each.call.expected is ABSENT for each in operations)
        initial: list[State] = [None] if created else [None, Existing(0, _MOST)]
        timed = [*operations, *losses(history.events, operations)]
        deleted = any(isinstance(each.call, ProviderGone) for each in operations)
        model = Generation(_most_shown(operations), deleted=deleted)
        violations += judge("generations", f"provider {provider}", timed, model, initial)
    return violations


def by_provider(operations: Sequence[Operation]) -> Mapping[str, list[Timed]]:
    """Return what the calls do to the generation of each provider, and show of it, without those of nodes."""
    decoded = [(operation, effects(operation)) for operation in operations]
    held = _held_by(effect for _, call_effects in decoded for effect in call_effects)
    known = _classes(operations)
    calls: dict[str, list[Timed]] = defaultdict(list)
    of_all: list[tuple[Timed, Collection[str]]] = []
    nodes = {
        effect.provider for _, call_effects in decoded for effect in call_effects if isinstance(effect, NodeTouched)
    }
    for operation, call_effects in decoded:
        for effect in call_effects:
            match effect:
                case ProviderWrite(provider) | ProviderGone(provider):
                    calls[provider].append(_timed(operation, effect))
                case ProviderUsed(provider, consumer, shown) if provider == EVERY:
                    of_all.append((_timed(operation, Used(shown), joins=True), _asked(operation, consumer)))
                case ProviderUsed(provider, _, shown):
                    calls[provider].append(_timed(operation, Used(shown), joins=True))
                case ProviderRead(provider) | ProviderRefused(provider, "generation" | "missing"):
                    calls[provider].append(_timed(operation, effect, changes=False))
        for provider in _left(call_effects, held):
            calls[provider].append(_timed(operation, Used(), optional=True, joins=True))
    of_every = calls.pop(EVERY, [])
    return {
        provider: each + of_every + [timed for timed, classes in of_all if _may_be_used(known.get(provider), classes)]
        for provider, each in calls.items()
        if provider not in nodes
    }


def _classes(operations: Sequence[Operation]) -> Mapping[str, set[str]]:
    """Return the classes of which each provider ever had inventory, by its uuid, if it was created by these calls."""
    created = (effect for operation in operations for effect in effects(operation) if isinstance(effect, ProviderWrite))
    classes: dict[str, set[str]] = {effect.provider: set() for effect in created if effect.expected is ABSENT}
    for provider, name in inventories(History({}, [*operations], [])):
        if provider in classes:
            classes[provider].add(name)
    return classes


def _asked(operation: Operation, consumer: str) -> Collection[str]:
    """Return the classes that a call asks for of any provider; none if its query is not that simple."""
    requests = operation.body["requests"]
    return amounts_of_query(next(each["query"] for each in requests if each["consumer"] == consumer)) or ()


def _may_be_used(known: set[str] | None, classes: Collection[str]) -> bool:
    return known is None or not classes or not known.isdisjoint(classes)


def _timed(operation: Operation, call: object, **more: bool) -> Timed:
    return Timed(operation.number, operation.began, operation.ended, call, **more)


def _held_by(call_effects: Iterable[Effect]) -> Mapping[str, set[str]]:
    """Return the providers of which each consumer ever held something, and EVERY if the place is not known."""
    held: dict[str, set[str]] = defaultdict(set)
    for effect in call_effects:
        match effect:
            case ConsumerWrite(consumer, _, after) if after is not None:
                held[consumer].update(after.providers or [EVERY])
            case ConsumerRead(consumer, shown) if shown is not None:
                held[consumer].update(shown.providers)
    return held


def _left(call_effects: Sequence[Effect], held: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the providers that the call may have used only by emptying consumers that held something of them."""
    emptied = [effect.consumer for effect in call_effects if isinstance(effect, ProvidersLeft)]
    named = {effect.provider for effect in call_effects if isinstance(effect, ProviderUsed | ProviderWrite)}
    yield from set().union(*(held.get(consumer, ()) for consumer in emptied)) - named


def _most_shown(operations: Iterable[Timed]) -> int:
    names = ("shown", "expected", "generation", "given", "actual")
    numbers = (getattr(each.call, name, None) for each in operations for name in names)
    return max((number for number in numbers if isinstance(number, int)), default=0)


class Generation:
    """The model of the generation of one provider.

    Args:
        most_shown: The highest generation that any call shows or states: a claim that need not have happened is of use
            up to the next one, which is none of those, and of none beyond it.
        deleted: Whether a call deletes it: then it may have had a higher generation in an earlier life, to which a loss
            may go back.
    """

    def __init__(self, most_shown: int = _MOST, *, deleted: bool = False) -> None:
        self._most_shown = most_shown
        self._deleted = deleted

    def step(self, state: State, operation: Timed, *joined: Timed) -> Iterable[State]:
        """Return the states that the provider may have after the call; none if it cannot have answered so.

        Args:
            joined: Other claims of the same transaction.
        """
        match operation.call:
            case Loss():
                return [None, Existing(0, _MOST if state is None or self._deleted else state.most)]
            case call if state is None:
                return _absent(call)
            case ProviderGone():
                return [None]
            case ProviderWrite() as write:
                return _written(state, write)
            case Used() if (operation.ended is None or operation.optional) and state.least > self._most_shown:
                return []
            case Used():
                return _used(state, [operation, *joined])
            case ProviderRead(generation=int(shown)):
                return _shown(state, shown)
            case ProviderRefused(why="generation") as refusal:
                return _refused(state, refusal)
        return []


def _absent(call: object) -> Sequence[State]:
    """Return what comes of a call about a provider that does not exist."""
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
            after = Existing(before.least + raised, before.most + raised)
            yield from [after] if write.shown is None else _shown(after, write.shown)


def _refused(state: Existing, refusal: ProviderRefused) -> Sequence[State]:
    """Return what comes of a refusal because the generation is not the one that was given."""
    if refusal.actual is not None:
        return _shown(state, refusal.actual) if refusal.actual != refusal.given else []
    return [state] if (state.least, state.most) != (refusal.given, refusal.given) else []


def _used(state: Existing, claims: Iterable[Timed]) -> Sequence[State]:
    """Return what comes of one transaction with all of these claims."""
    after = [Existing(state.least + 1, state.most + 1)]
    for claim in claims:
        assert isinstance(claim.call, Used)
        if claim.call.shown is not None:
            after = [known for each in after for known in _shown(each, claim.call.shown)]
    return after


def _shown(state: Existing, generation: int) -> Sequence[Existing]:
    """Return the provider once it is known to have this generation; empty if it cannot."""
    if not state.least <= generation <= state.most:
        return []
    return [Existing(generation, generation)]
