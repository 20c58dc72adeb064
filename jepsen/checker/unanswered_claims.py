"""Claims without a response that a later read confirms, because it shows a holding that nothing else wrote."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from jepsen.calls import effects
from jepsen.effect_types import ConsumerRead, ConsumerWrite, Holding
from jepsen.history import History, Operation


def with_ends(history: History) -> History:
    """Return the history with such claims as successful ones, which end with the first read that confirms them."""
    claims_by_consumer: dict[str, list[tuple[Operation, Holding]]] = defaultdict(list)
    first_reads: dict[tuple[str, object], int] = {}
    for operation in history.operations:
        for effect in effects(operation):
            match effect:
                case ConsumerWrite(consumer, _, Holding() as holding):
                    claims_by_consumer[consumer].append((operation, holding))
                case ConsumerRead(consumer, Holding(resources=resources)) if operation.ended is not None:
                    key = consumer, resources
                    first_reads[key] = min(first_reads.get(key, operation.ended), operation.ended)
    ends: dict[int, int] = {}
    for consumer, claims in claims_by_consumer.items():
        counts = Counter(holding.resources for _, holding in claims)
        if None in counts:  # a place chosen by the service may be equal
            continue
        for operation, holding in claims:
            end = first_reads.get((consumer, holding.resources))
            if operation.is_open and end is not None and end >= operation.began and counts[holding.resources] == 1:
                ends[operation.number] = min(ends.get(operation.number, end), end)
    return history.with_operations(
        replace(operation, ended=ends[operation.number], status=204) if operation.number in ends else operation
        for operation in history.operations
    )
