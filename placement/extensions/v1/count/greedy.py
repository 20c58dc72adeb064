"""A greedy count of a block and an upper bound, for many trees at once.

For a given number of placements, the items are dealt to the providers in turn, each as often as it fits; bisection
finds the largest number for which this succeeds.  For a single item, the greedy count is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count.alternatives import Block, Item
from placement.extensions.v1.count.inputs import Bools, Integers
from placement.extensions.v1.count.upper_bounds import bisect_largest

#: Free capacity by class: arrays indexed by tree and provider number.
FreeAmounts = Mapping[str, Integers]


class CountRange(NamedTuple):
    """Lower and upper bounds, both inclusive, for the count of each tree."""

    low: Integers
    high: Integers


def greedy_count(block: Block, free: FreeAmounts, limit: Integers) -> CountRange:
    """Return the best greedy count of several orders, and an upper bound as if each item had all providers to itself.

    Args:
        limit: An upper bound for each tree.
    """
    counts = [np.min([_deal_greedily([item], free, limit)[0] for item in alternative], axis=0) for alternative in block]
    low, high = np.zeros_like(limit), np.minimum(limit, sum(counts))
    for step, direction in itertools.product((1, -1), repeat=2):
        trees = np.flatnonzero(low < high)
        remaining: FreeAmounts = {name: amounts[trees] for name, amounts in free.items()}
        total = np.zeros_like(trees)
        for alternative in block[::step]:
            placed, remaining = _deal_greedily(
                sorted(alternative, key=_sort_key)[::direction], remaining, high[trees] - total
            )
            total += placed
        low[trees] = np.maximum(low[trees], total)
    return CountRange(low, high)


def _sort_key(item: Item) -> tuple[int, int]:
    """Return a sort key: items with few providers come first, then large items."""
    return len(item.at_once), -sum(amount for _, amount in item.amounts)


def _deal_greedily(items: Sequence[Item], free: FreeAmounts, limit: Integers) -> tuple[Integers, FreeAmounts]:
    """Return the largest number of placements that can be dealt, and the free capacity they leave."""
    placed = bisect_largest(limit, lambda times: _deal(items, free, times)[0])
    return placed, _deal(items, free, placed)[1]


def _deal(items: Sequence[Item], free: FreeAmounts, times: Integers) -> tuple[Bools, FreeAmounts]:
    """Deal a number of placements; return the trees in which all of them fit, and the free capacity they leave."""
    remaining = {name: amounts.copy() for name, amounts in free.items()}
    missing = np.zeros_like(times)
    #: Placements that may still use a provider for an isolated item, by provider.
    uses_left: dict[int, Integers] = {}
    for item in items:
        needs = item.times * times
        for provider, at_once in item.at_once:
            if item.isolated:
                dealt = np.minimum(needs, uses_left.setdefault(provider, times))
            else:
                dealt = np.minimum(needs, min(item.times, at_once) * times)
            for name, amount in item.amounts:
                dealt = np.minimum(dealt, remaining[name][:, provider] // amount)
            for name, amount in item.amounts:
                remaining[name][:, provider] -= dealt * amount
            if item.isolated:
                uses_left[provider] = uses_left[provider] - dealt
            needs = needs - dealt
        missing += needs
    return missing == 0, remaining
