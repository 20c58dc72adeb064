"""The exact count of a block, by dynamic programming over the providers.

One provider after another supplies some of each item.  All that matters for the next one is how many of each item were
supplied.  A table holds, for each combination of numbers of all items but the last, the most of the last item that
the providers can supply as well.  Its size is the product of these numbers; a program too large for the effort is left
out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from placement.extensions.v1.count.alternatives import Block, Item, connected_components
from placement.extensions.v1.count.greedy import CountRange, FreeAmounts
from placement.extensions.v1.count.inputs import Bools, Integers
from placement.extensions.v1.count.upper_bounds import bisect_largest
from placement.search.budget import Budget, Exhausted

#: Cells per operation; operations per table, and per share of a provider.
_CELLS, _TABLE, _SHARE = 300, 50, 20
#: The most cells of a table of many trees.
_MOST_CELLS = 2**20
#: An item with the numbers of its alternatives; with one number if it is isolated, since it then depends on the other
#: items of that alternative.
_Member = tuple[Item, tuple[int, ...]]
#: Less than any sum.
_NONE = -(2**40)


def tighten(block: Block, free: FreeAmounts, known: CountRange, effort: Budget) -> CountRange:
    """Return what is known of the counts after programs were solved, while the effort lasts.

    Args:
        known: What is known of the same trees before.
    """
    low, high = known.low.copy(), known.high.copy()
    at_once = 1 if len(block) > 1 else max(1, _MOST_CELLS // _cells(block, int(high.max(initial=0))))
    for start in range(0, len(low), at_once):
        trees = slice(start, start + at_once)
        program = _Program(block, {name: amounts[trees] for name, amounts in free.items()}, effort)
        try:
            if len(block) > 1:
                np.minimum(high[trees], program.limit(high[trees]), out=high[trees])
            while (low[trees] < high[trees]).any():
                middle = (low[trees] + high[trees] + 1) // 2
                enough = program.fits([], middle)
                low[trees] = np.where(enough, middle, low[trees])
                high[trees] = np.where(enough, high[trees], middle - 1)
        except Exhausted:
            break
    return CountRange(low, high)


def _cells(block: Block, times: int) -> int:
    """Return the most cells of a table for one tree."""
    return max(math.prod(item.times * times + 1 for item in one[:-1]) for one in block)


class _Program:
    """A block in several trees; in one tree if the block has several alternatives."""

    def __init__(self, block: Block, free: FreeAmounts, effort: Budget) -> None:
        self._length = len(block)
        self._free = free
        self._effort = effort
        inside: dict[tuple[Item, int | None], list[int]] = {}
        for number, one in enumerate(block):
            for item in one:
                inside.setdefault((item, number if item.isolated else None), []).append(number)
        members = [(item, tuple(numbers)) for (item, _), numbers in inside.items()]
        ties = [item.rooms() | {(numbers, one) for one in item.uses()} for item, numbers in members]
        #: How often each alternative fits if there is no other.
        self._alone: list[int] = []
        self._known: dict[Hashable, Bools] = {}
        #: Items that depend on each other.
        self._tied = [[members[number] for number in numbers] for numbers in connected_components(ties)]

    def limit(self, most: Integers) -> Integers:
        """Return an upper bound: how often all alternatives fit if each has all providers to itself.

        Raises:
            Exhausted: The effort is used up.
        """
        for number in range(self._length):
            alone = [np.array([number == other]) for other in range(self._length)]

            def fits(times: Integers, alone: list[Bools] = alone) -> Bools:
                return self._all_fit([times * one for one in alone])

            self._alone.append(bisect_largest(most, fits).item())
        return np.array([sum(self._alone)])

    def fits(self, times: list[Integers], rest: Integers) -> Bools:
        """Return in which trees ``times`` of the first alternatives fit, with ``rest`` of all others together.

        Raises:
            Exhausted: The effort is used up.
        """
        if len(times) == self._length - 1:
            return self._all_fit([*times, rest])
        idle = [np.zeros_like(rest)] * (self._length - len(times) - 1)
        most, others = self._alone[len(times)], sum(self._alone[len(times) + 1 :])
        for some in range(min(most, rest.item()), max(0, rest.item() - others) - 1, -1):
            own = [*times, np.array([some])]
            if self._all_fit([*own, *idle]).all() and self.fits(own, rest - some).all():
                return np.ones(1, np.bool_)
        return np.zeros(1, np.bool_)

    def _all_fit(self, times: Sequence[Integers]) -> Bools:
        enough: Bools = np.all([self._supplied(members, times) for members in self._tied], axis=0)
        return enough

    def _supplied(self, members: Sequence[_Member], times: Sequence[Integers]) -> Bools:
        """Return in which trees the providers can supply the items for ``times`` placements of each alternative."""
        placed = {numbers: np.sum([times[number] for number in numbers], axis=0) for _, numbers in members}
        # The largest numbers come last: they add nothing to the size of the table.
        members = sorted(
            (member for member in members if placed[member[1]].any()),
            key=lambda member: member[0].times * placed[member[1]].max(),
        )
        needs = [item.times * placed[numbers] for item, numbers in members]
        if not members:
            return np.ones(len(times[0]), np.bool_)
        self._effort.spend(_TABLE)
        key = tuple((member, need.tobytes()) for member, need in zip(members, needs, strict=True))
        if key not in self._known:
            sizes = [int(need.max()) + 1 for need in needs[:-1]]
            table = np.full((len(needs[0]), *sizes), _NONE, np.int64)
            table.reshape(len(table), -1)[:, 0] = 0
            for provider in sorted({provider for item, _ in members for provider, _ in item.at_once}):
                before, table = table, np.full_like(table, _NONE)
                left = {name: amounts[:, provider] for name, amounts in self._free.items()}
                for share, last in self._shares(members, needs, provider, left, placed, placed):
                    self._effort.spend(_SHARE + table.size // _CELLS)
                    cells = table[(slice(None), *(slice(number, None) for number in share))]
                    ends = [slice(size - number) for size, number in zip(sizes, share, strict=True)]
                    source = before[(slice(None), *ends)] + last.reshape(-1, *[1] * len(sizes))
                    np.maximum(cells, source, out=cells)
            self._known[key] = table[(np.arange(len(table)), *needs[:-1])] >= needs[-1]
        return self._known[key]

    def _shares(
        self,
        members: Sequence[_Member],
        needs: Sequence[Integers],
        provider: int,
        left: FreeAmounts,
        uses: Mapping[tuple[int, ...], Integers],
        placed: Mapping[tuple[int, ...], Integers],
    ) -> Iterator[tuple[tuple[int, ...], Integers]]:
        """Yield how many a provider may supply of all items but the last, and how many of that beside them.

        Args:
            left: What is free, by class.
            uses: How often it may still be used for isolated items, by alternatives.
            placed: The number of placements, by alternatives.
        """
        item, numbers = members[0]
        room = np.minimum(needs[0], min(item.times, dict(item.at_once).get(provider, 0)) * placed[numbers])
        if item.isolated:
            room = np.minimum(room, uses[numbers])
        for name, amount in item.amounts:
            room = np.minimum(room, left[name] // amount)
        if len(members) == 1:
            yield (), np.where(room < 0, _NONE, room)
            return
        for some in range(int(room.max()) + 1):
            after = {**left, **{name: left[name] - some * amount for name, amount in item.amounts}}
            used = {**uses, numbers: uses[numbers] - some} if item.isolated else uses
            for share, last in self._shares(members[1:], needs[1:], provider, after, used, placed):
                yield (some, *share), np.where(some <= room, last, _NONE)
