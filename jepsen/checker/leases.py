"""Check of leases: they expire once, on time by the database's clock, and cannot be extended afterwards.

The check ``refusals`` verifies that expired resources are free at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jepsen.calls import effects
from jepsen.checker.holdings import HeldAmounts, holdings
from jepsen.checker.registers import Register
from jepsen.effect_types import ConsumerRead, ConsumerWrite, Effect, LeaseExtension
from jepsen.history import History, Operation, overlap
from jepsen.violation import Violation


def leases(history: History) -> list[Violation]:
    """Return violations by responses that contradict the expiry of leases."""
    consumers = {
        effect.consumer
        for operation in history.operations
        for effect in effects(operation)
        if isinstance(effect, ConsumerWrite | LeaseExtension) and effect.earliest_expiry is not None
    }
    if not consumers:
        return []
    swept, expired = holdings(history, expires_at_once=False), holdings(history, expires_at_once=True)
    return [
        violation
        for operation in history.operations
        if operation.ended is not None
        for effect in effects(operation)
        if getattr(effect, "consumer", None) in consumers
        for violation in _violations(history, operation, effect, swept, expired)
    ]


def _violations(
    history: History,
    operation: Operation,
    effect: Effect,
    swept: dict[str, Register[HeldAmounts]],
    expired: dict[str, Register[HeldAmounts]],
) -> Iterator[Violation]:
    assert operation.ended is not None
    match effect:
        case ConsumerRead(consumer, None, respects_expiry):
            nothing = any(
                write.value.is_nothing for write in swept[consumer].possible(operation.began, operation.ended)
            )
            only_reads = operation.method == "GET" and respects_expiry
            if not nothing and not (only_reads and _may_be_expired(history, operation, consumer)):
                sentence = (
                    f"{operation.method} {operation.path}: {consumer} holds nothing, but no lease can have expired"
                )
                yield Violation("no lease expires early", sentence, (operation.number,))
        case ConsumerRead(consumer, _, respects_expiry=True):
            if all(write.value.is_nothing for write in expired[consumer].possible(operation.began, operation.ended)):
                sentence = f"{operation.method} {operation.path}: {consumer} is shown, but its lease has expired"
                yield Violation("leases expire on time", sentence, (operation.number,))
        case LeaseExtension(consumer):
            possible = expired[consumer].possible(operation.began, operation.ended)
            if all(write.value.is_nothing for write in possible):
                sentence = f"the lease of {consumer} is extended, but it has expired"
                yield Violation("no extension after expiry", sentence, (operation.number,))


def _may_be_expired(history: History, operation: Operation, consumer: str) -> bool:
    """Whether a reader may see the lease as expired because a concurrent extension is not committed yet.

    Until the extension is committed, a GET sees the old expiry, which may pass meanwhile (docs: v1-claims-extend).
    Other requests wait for the commit.
    """
    assert operation.ended is not None

    def is_extension(other: Operation) -> bool:
        return any(isinstance(effect, LeaseExtension) and effect.consumer == consumer for effect in effects(other))

    operations = [
        replace(other, ended=None, status=0, reply=None) if overlap(other, operation) and is_extension(other) else other
        for other in history.operations
    ]
    register = holdings(replace(history, operations=operations), expires_at_once=False)[consumer]
    return any(write.value.is_nothing for write in register.possible(operation.began, operation.ended))
