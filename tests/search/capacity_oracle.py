"""The most that can be placed, by brute force: an integer program over the candidates of the oracle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.search.oracle import Amounts, Answer
from tests.world import World

#: States of the program that are looked at before it is given up.
_STATES = 4000
#: Different candidates: the program recurses once for each.
_VECTORS = 200


class TooManyError(Exception):
    """The program is too large to be solved by brute force."""


def most(world: World, answers: Iterable[Answer]) -> int:
    """Return the greatest number of candidates, repeated ones included, that fit beside each other.

    Placements make no room, and a candidate depends on nothing but room that changes.  So an order is as good as
    another, and candidates fit one after another if their sum is free.

    Raises:
        TooManyError: There are too many ways.
    """
    taken = _least_hungry({amounts for amounts, _ in answers})
    if len(taken) > _VECTORS:
        raise TooManyError
    places = sorted({(name, class_) for amounts in taken for name, class_, _ in amounts})
    free = tuple(_free(world, *place) for place in places)
    vectors = [
        tuple(Counter({(name, class_): amount for name, class_, amount in amounts})[place] for place in places)
        for amounts in taken
    ]
    known: dict[tuple[int, tuple[int, ...]], int] = {}

    def best(first: int, free: tuple[int, ...]) -> int:
        if first == len(vectors):
            return 0
        if (first, free) not in known:
            if len(known) > _STATES:
                raise TooManyError
            times = min(have // take for have, take in zip(free, vectors[first], strict=True) if take)
            known[first, free] = max(
                number + best(first + 1, tuple(a - number * b for a, b in zip(free, vectors[first], strict=True)))
                for number in range(times, -1, -1)
            )
        return known[first, free]

    return best(0, free)


def fit_on_devices(
    devices: Iterable[Mapping[str, int]], groups: Sequence[Mapping[str, int]], isolate: bool, times: int
) -> bool:
    """Return whether a request fits so many times, if each group may use any device.

    All that can be left to place after each device is listed.  Groups that are isolated are on different devices in
    each placement: no device is used more often than there are placements.
    """
    missing = {(times,) * len(groups)}
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
        missing = {
            tuple(max(0, a - b) for a, b in zip(left, share, strict=True)) for left in missing for share in largest
        }
    return (0,) * len(groups) in missing


def _supplies(free: Mapping[str, int], groups: Sequence[Mapping[str, int]], share: Sequence[int]) -> bool:
    classes = {name for group in groups for name in group}
    return all(
        sum(number * group.get(name, 0) for number, group in zip(share, groups, strict=False)) <= free.get(name, 0)
        for name in classes
    )


def _exceeds(one: Sequence[int], other: Sequence[int]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


def _least_hungry(taken: set[Amounts]) -> list[Amounts]:
    """Return the sets of amounts that take no more than any other does, everywhere."""
    return sorted((one for one in taken if not any(other < one for other in taken)), key=sorted)


def _free(world: World, name: str, class_: str) -> int:
    stock = world.members[name].stock[class_]
    return math.floor((stock.total - stock.reserved) * stock.allocation_ratio) - stock.used
