"""The capacity for a request, by brute force: an integer program over the candidates of the oracle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.search.oracle import Amounts, Candidate
from tests.world import World

#: States of the program that are examined before the search is abandoned.
_STATES = 4000
#: Different candidates; the program recurses once for each.
_VECTORS = 200


class TooManyError(Exception):
    """The program is too large to be solved by brute force."""


def max_placements(world: World, candidates: Iterable[Candidate]) -> int:
    """Return the greatest number of candidates, including repeated ones, that fit together.

    Placements free no capacity, and a candidate depends only on free capacity.  So the order does not matter:
    candidates fit one after another if the free capacity covers their sum.

    Raises:
        TooManyError: There are too many combinations.
    """
    minimal = _minimal_sets({amounts for amounts, _ in candidates})
    if len(minimal) > _VECTORS:
        raise TooManyError
    places = sorted({(name, class_) for amounts in minimal for name, class_, _ in amounts})
    free = tuple(_free(world, *place) for place in places)
    vectors = [
        tuple(Counter({(name, class_): amount for name, class_, amount in amounts})[place] for place in places)
        for amounts in minimal
    ]
    memo: dict[tuple[int, tuple[int, ...]], int] = {}

    def best(first: int, free: tuple[int, ...]) -> int:
        if first == len(vectors):
            return 0
        if (first, free) not in memo:
            if len(memo) > _STATES:
                raise TooManyError
            times = min(available // amount for available, amount in zip(free, vectors[first], strict=True) if amount)
            memo[first, free] = max(
                number + best(first + 1, tuple(a - number * b for a, b in zip(free, vectors[first], strict=True)))
                for number in range(times, -1, -1)
            )
        return memo[first, free]

    return best(0, free)


def fit_on_devices(
    devices: Iterable[Mapping[str, int]], groups: Sequence[Mapping[str, int]], isolate: bool, times: int
) -> bool:
    """Whether a request fits ``times`` times, if each group may use any device.

    After each device, all possible numbers of groups left to place are kept.  Isolated groups are on different
    devices in each placement: no device is used more often than there are placements.
    """
    remaining = {(times,) * len(groups)}
    for free in devices:
        shares: list[tuple[int, ...]] = [()]
        for _ in groups:
            shares = [
                (*share, number)
                for share in shares
                for number in range(times + 1)
                if not isolate or sum(share) + number <= times
                if _supplies(free, groups, (*share, number))
            ]
        largest = {share for share in shares if not any(_exceeds(other, share) for other in shares)}
        remaining = {
            tuple(max(0, a - b) for a, b in zip(counts, share, strict=True))
            for counts in remaining
            for share in largest
        }
    return (0,) * len(groups) in remaining


def _supplies(free: Mapping[str, int], groups: Sequence[Mapping[str, int]], share: Sequence[int]) -> bool:
    classes = {name for group in groups for name in group}
    return all(
        sum(number * group.get(name, 0) for number, group in zip(share, groups, strict=False)) <= free.get(name, 0)
        for name in classes
    )


def _exceeds(share: Sequence[int], other: Sequence[int]) -> bool:
    return share != other and all(a >= b for a, b in zip(share, other, strict=True))


def _minimal_sets(amount_sets: set[Amounts]) -> list[Amounts]:
    """Return the minimal sets of amounts."""
    return sorted((amounts for amounts in amount_sets if not any(other < amounts for other in amount_sets)), key=sorted)


def _free(world: World, name: str, class_: str) -> int:
    stock = world.members[name].stock[class_]
    return math.floor((stock.total - stock.reserved) * stock.allocation_ratio) - stock.used
