"""A greedy count of a block, and a bound from above, for many trees at once.

For a number of placements the items are dealt to the providers in turn, each as often as it fits; bisection finds the
largest number for which that succeeds.  For one item alone dealing finds the most.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count.alternatives import Block, Item
from placement.extensions.v1.count.inputs import Bools, Integers
from placement.extensions.v1.count.upper_bounds import bisect_largest

#: What is free by class: an array by tree and by the number of the provider.
FreeAmounts = Mapping[str, Integers]


class CountRange(NamedTuple):
    """What is known of the count of each tree: it is one of these numbers or between them."""

    low: Integers
    high: Integers


def greedy_count(block: Block, free: FreeAmounts, most: Integers) -> CountRange:
    """Return the best count of several orders; and an upper bound, as if each item had all providers to itself.

    Args:
        most: An upper bound for each tree.
    """
    alone = [np.min([_most([item], free, most)[0] for item in alternative], axis=0) for alternative in block]
    low, high = np.zeros_like(most), np.minimum(most, sum(alone))
    for step, turn in itertools.product((1, -1), repeat=2):
        trees = np.flatnonzero(low < high)
        left: FreeAmounts = {name: amounts[trees] for name, amounts in free.items()}
        total = np.zeros_like(trees)
        for alternative in block[::step]:
            placed, left = _most(sorted(alternative, key=_choice)[::turn], left, high[trees] - total)
            total += placed
        low[trees] = np.maximum(low[trees], total)
    return CountRange(low, high)


def _choice(item: Item) -> tuple[int, int]:
    """Return the key of an order in which items with fewer providers, and larger ones, come first."""
    return len(item.at_once), -sum(amount for _, amount in item.amounts)


def _most(items: Sequence[Item], free: FreeAmounts, most: Integers) -> tuple[Integers, FreeAmounts]:
    """Return how many placements dealing finds room for, and what they leave."""
    placed = bisect_largest(most, lambda times: _try(items, free, times)[0])
    return placed, _try(items, free, placed)[1]


def _try(items: Sequence[Item], free: FreeAmounts, times: Integers) -> tuple[Bools, FreeAmounts]:
    """Deal a number of placements; return in which trees all of them have room, and what they leave."""
    left = {name: amounts.copy() for name, amounts in free.items()}
    missing = np.zeros_like(times)
    #: By provider, how many placements may still use it for an isolated item.
    uses: dict[int, Integers] = {}
    for item in items:
        needs = item.times * times
        for provider, at_once in item.at_once:
            if item.isolated:
                dealt = np.minimum(needs, uses.setdefault(provider, times))
            else:
                dealt = np.minimum(needs, min(item.times, at_once) * times)
            for name, amount in item.amounts:
                dealt = np.minimum(dealt, left[name][:, provider] // amount)
            for name, amount in item.amounts:
                left[name][:, provider] -= dealt * amount
            if item.isolated:
                uses[provider] = uses[provider] - dealt
            needs = needs - dealt
        missing += needs
    return missing == 0, left
