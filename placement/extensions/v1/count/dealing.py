"""The count of a block, for many trees at once: a greedy one from several orders, and a bound from above.

For a number of placements the demands are dealt to the providers in turn, each as often as it fits; bisection finds the
largest number for which that succeeds.  Where one kind of demands is alone, dealing always finds the most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count.blocks import Alternative, Block, Bundle, Item
from placement.extensions.v1.count.closed import rounds
from placement.extensions.v1.count.supply import MOST, Integers

#: What is free by class: an array by tree and by the number of the provider.
Free = Mapping[str, Integers]


class Dealt(NamedTuple):
    """What is known of the count of each tree.

    Attributes:
        counts: So many fit, by tree.
        bounds: A number that no way to place exceeds, by tree.
    """

    counts: Integers
    bounds: Integers


def deal(block: Block, free: Free, most: Integers) -> Dealt:
    """Return what greedy dealing places in a block, and a bound.

    Args:
        most: For each tree a number that does not matter to exceed.
    """
    each = {alternative: np.minimum(most, _bound(alternative, free, len(most))) for alternative in block}
    bounds = np.minimum(most, sum(each.values(), np.zeros_like(most)))
    counts = np.zeros_like(most)
    for step, turn, together in _orders(block):
        trees = np.flatnonzero(counts < bounds)
        left: Free = {name: amounts[trees] for name, amounts in free.items()}
        total = np.zeros_like(trees)
        for alternative in block[::step]:
            order = [sorted(bundle, key=_choice)[::turn] for bundle in alternative]
            placed, left = _most(order, left, np.minimum(each[alternative], bounds)[trees], together)
            total += placed
        counts[trees] = np.maximum(counts[trees], np.minimum(total, bounds[trees]))
    return Dealt(counts, bounds)


def _orders(block: Block) -> Iterator[tuple[int, int, bool]]:
    """Yield the directions of alternatives and of items, and whether items are dealt together first."""
    several = any(len(bundle) > 1 for alternative in block for bundle in alternative)
    for step in (1, -1) if len(block) > 1 else (1,):
        for turn in (1, -1) if several else (1,):
            yield from ((step, turn, together) for together in ((False, True) if several else (False,)))


def _choice(item: Item) -> tuple[int, int]:
    """Return the key of an order in which items with fewer providers, and larger ones, come first."""
    return len(item.at_once), -sum(amount for _, amount in item.amounts)


def _most(bundles: Sequence[Sequence[Item]], free: Free, most: Integers, together: bool) -> tuple[Integers, Free]:
    """Return how many placements dealing finds room for, and what they leave."""
    low, high = np.zeros_like(most), most
    while (low < high).any():
        middle = (low + high + 1) // 2
        enough, _ = _try(bundles, free, middle, together)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle - 1)
    return low, _try(bundles, free, low, together)[1]


def _try(bundles: Sequence[Sequence[Item]], free: Free, times: Integers, together: bool) -> tuple[Integers, Free]:
    """Deal so many placements; return where there is room for all of them, and what they leave."""
    left = {name: amounts.copy() for name, amounts in free.items()}
    missing = np.zeros_like(times)
    for bundle in bundles:
        needs = [item.times * times for item in bundle]
        uses: dict[int, Integers] = {}
        groups = [*([range(len(bundle))] if together else []), *([number] for number in range(len(bundle)))]
        for numbers in groups:
            for provider, _ in bundle[numbers[0]].at_once:
                items = [bundle[number] for number in numbers]
                if all(provider in dict(item.at_once) for item in items):
                    dealt = np.min([needs[number] for number in numbers], axis=0)
                    dealt = _take(items, provider, left, uses.setdefault(provider, times.copy()), times, dealt)
                    for number in numbers:
                        needs[number] = needs[number] - dealt
        missing += sum(needs, np.zeros_like(times))
    return missing == 0, left


def _take(
    items: Sequence[Item], provider: int, left: Free, uses: Integers, times: Integers, most: Integers
) -> Integers:
    """Take items from a provider, one of each, as often as it has room, and return how often."""
    taken: dict[str, int] = {}
    isolated = sum(item.isolated for item in items)
    dealt = np.minimum(most, uses // isolated) if isolated else most
    for item in items:
        if not item.isolated:
            dealt = np.minimum(dealt, min(item.times, dict(item.at_once)[provider]) * times)
        for name, amount in item.amounts:
            taken[name] = taken.get(name, 0) + amount
    for name, amount in taken.items():
        dealt = np.minimum(dealt, left[name][:, provider] // amount)
    for name, amount in taken.items():
        left[name][:, provider] -= dealt * amount
    uses -= dealt * isolated
    return dealt


def _bound(alternative: Alternative, free: Free, trees: int) -> Integers:
    """Return a number that the count of an alternative does not exceed, by tree."""
    most = np.full(trees, MOST, np.int64)
    for bundle in alternative:
        for name in {name for item in bundle for name, _ in item.amounts}:
            takes = [(item, amount) for item in bundle for one, amount in item.amounts if one == name]
            unit = math.gcd(*(amount for _, amount in takes))
            providers = sorted({provider for item, _ in takes for provider, _ in item.at_once})
            usable = (free[name][:, providers] // unit * unit).sum(axis=1)
            np.minimum(most, usable // sum(amount * item.times for item, amount in takes), out=most)
        for items in {*((item,) for item in bundle), bundle}:
            np.minimum(most, _rounds(items, free, trees), out=most)
    return most


def _rounds(items: Bundle, free: Free, trees: int) -> Integers:
    """Return how many rounds there are for items, if each took no more than any of them takes of a provider."""
    providers = sorted({provider for item in items for provider, _ in item.at_once})
    copies = np.full((trees, len(providers)), MOST, np.int64)
    for place, provider in enumerate(providers):
        having = [dict(item.amounts) for item in items if provider in dict(item.at_once)]
        for name in set(having[0]).intersection(*having[1:]):
            least = min(amounts[name] for amounts in having)
            np.minimum(copies[:, place], free[name][:, provider] // least, out=copies[:, place])
    at_once = np.full(len(providers), MOST if len(items) > 1 else 1, np.int64)
    if all(item.isolated for item in items):
        at_once[:] = 1
    elif len(items) == 1:
        at_once[:] = [most for _, most in items[0].at_once]
    tree = np.repeat(np.arange(trees), len(providers))
    return rounds(copies.ravel(), np.tile(at_once, trees), sum(item.times for item in items), tree, trees)
