"""Claims without a response that a later read confirms, because it shows a holding that nothing else wrote."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from jepsen.calls import effects
from jepsen.effect_types import ConsumerRead, ConsumerWrite, Holding
from jepsen.history import History, Operation


def with_ends(history: History) -> History:
    """Return the history with such claims as successful ones, which end with the first read that confirms them."""
    written: dict[str, list[tuple[Operation, Holding]]] = defaultdict(list)
    shown: dict[tuple[str, object], int] = {}
    for operation in history.operations:
        for effect in effects(operation):
            match effect:
                case ConsumerWrite(consumer, _, Holding() as after):
                    written[consumer].append((operation, after))
                case ConsumerRead(consumer, Holding(resources=resources)) if operation.ended is not None:
                    key = consumer, resources
                    shown[key] = min(shown.get(key, operation.ended), operation.ended)
    ends: dict[int, int] = {}
    for consumer, claims in written.items():
        wrote = Counter(after.resources for _, after in claims)
        if None in wrote:  # a place chosen by the service may be equal
            continue
        for operation, after in claims:
            end = shown.get((consumer, after.resources))
            if operation.is_open and end is not None and end >= operation.began and wrote[after.resources] == 1:
                ends[operation.number] = min(ends.get(operation.number, end), end)
    return history.with_operations(
        replace(operation, ended=ends[operation.number], status=204) if operation.number in ends else operation
        for operation in history.operations
    )
