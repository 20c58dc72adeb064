"""Leases: they end once, at their time by the database's clock, and an extension and the end exclude each other.

That what has expired is room at once is the rule of ``refusals``, which counts it as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jepsen.calls import effects
from jepsen.checker.holdings import Held, holdings
from jepsen.checker.registers import Register
from jepsen.effect_types import ConsumerExtended, ConsumerRead, ConsumerWrite, Effect
from jepsen.history import History, Operation, overlap
from jepsen.violation import Violation


def leases(history: History) -> list[Violation]:
    """Return the replies about consumers with leases that contradict the times of these."""
    leased = {
        effect.consumer
        for operation in history.operations
        for effect in effects(operation)
        if isinstance(effect, ConsumerWrite | ConsumerExtended) and effect.may_end is not None
    }
    if not leased:
        return []
    swept, over = holdings(history, ends_at_once=False), holdings(history, ends_at_once=True)
    return [
        violation
        for operation in history.operations
        if operation.ended is not None
        for effect in effects(operation)
        if getattr(effect, "consumer", None) in leased
        for violation in _judged(history, operation, effect, swept, over)
    ]


def _judged(
    history: History,
    operation: Operation,
    effect: Effect,
    swept: dict[str, Register[Held]],
    over: dict[str, Register[Held]],
) -> Iterator[Violation]:
    assert operation.ended is not None
    match effect:
        case ConsumerRead(consumer, None, minds_ends):
            nothing = any(
                write.value.is_nothing for write in swept[consumer].possible(operation.began, operation.ended)
            )
            only_reads = operation.method == "GET" and minds_ends
            if not nothing and not (only_reads and _may_be_over(history, operation, consumer)):
                sentence = (
                    f"{operation.method} {operation.path}: {consumer} holds nothing, before any lease of it may be over"
                )
                yield Violation("no lease ends before its time", sentence, (operation.number,))
        case ConsumerRead(consumer, _, minds_ends=True):
            if all(write.value.is_nothing for write in over[consumer].possible(operation.began, operation.ended)):
                sentence = f"{operation.method} {operation.path}: {consumer} is shown, and its lease is over"
                yield Violation("a lease is over at its time", sentence, (operation.number,))
        case ConsumerExtended(consumer):
            possible = over[consumer].possible(operation.began, operation.ended)
            if all(write.value.is_nothing for write in possible):
                sentence = f"{consumer} is given another end, and its lease is over"
                yield Violation("an extension and the end exclude each other", sentence, (operation.number,))


def _may_be_over(history: History, operation: Operation, consumer: str) -> bool:
    """Whether the lease may be over for a reader, if the extensions beside its call are not committed yet.

    Until an extension is committed, a GET sees the end before it, which may come meanwhile (docs: v1-claims-extend).
    Other calls wait for it.
    """
    assert operation.ended is not None

    def is_extension(other: Operation) -> bool:
        return any(isinstance(effect, ConsumerExtended) and effect.consumer == consumer for effect in effects(other))

    unanswered = [
        replace(other, ended=None, status=0, reply=None) if overlap(other, operation) and is_extension(other) else other
        for other in history.operations
    ]
    held = holdings(replace(history, operations=unanswered), ends_at_once=False)[consumer]
    return any(write.value.is_nothing for write in held.possible(operation.began, operation.ended))
