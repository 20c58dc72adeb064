"""Claims without a reply that took effect all the same, since a later read shows what no other call wrote."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from jepsen.calls import effects
from jepsen.effect_types import ConsumerRead, ConsumerWrite, Holding
from jepsen.history import History, Operation


def with_ends(history: History) -> History:
    """Return the history with such claims ended, with success, at the end of the first read that shows them."""
    written: dict[str, list[tuple[Operation, Holding]]] = defaultdict(list)
    shown: dict[tuple[str, object], int] = {}
    for one in history.operations:
        for effect in effects(one):
            match effect:
                case ConsumerWrite(consumer, _, Holding() as after):
                    written[consumer].append((one, after))
                case ConsumerRead(consumer, Holding(resources=resources)) if one.ended is not None:
                    key = consumer, resources
                    shown[key] = min(shown.get(key, one.ended), one.ended)
    ends: dict[int, int] = {}
    for consumer, of in written.items():
        wrote = Counter(after.resources for _, after in of)
        if None in wrote:  # a place that the service chose may be the same
            continue
        for one, after in of:
            end = shown.get((consumer, after.resources))
            if one.is_open and end is not None and end >= one.began and wrote[after.resources] == 1:
                ends[one.number] = min(ends.get(one.number, end), end)
    return history.with_operations(
        replace(one, ended=ends[one.number], status=204) if one.number in ends else one for one in history.operations
    )
