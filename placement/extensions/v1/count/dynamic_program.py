"""The exact count of a block, by dynamic programming over the providers.

The state after each provider is the number of each item supplied so far.  A table maps each combination of numbers of
all items except the last to the maximum number of the last item that the providers can supply in addition.  Its size is
the product of these numbers.  Once the effort is exhausted, the remaining bounds are not tightened.
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

#: Cells per operation; operations per table; operations per share of a provider.
_CELLS, _TABLE, _SHARE = 300, 50, 20
#: Maximum number of cells in a table for many trees.
_MAX_CELLS = 2**20
#: An item with the numbers of its alternatives; an isolated item has one number, because it depends on the other items
#: of that alternative.
_Member = tuple[Item, tuple[int, ...]]
#: The value of impossible cells: less than any sum.
_IMPOSSIBLE = -(2**40)


def tighten(block: Block, free: FreeAmounts, bounds: CountRange, effort: Budget) -> CountRange:
    """Return tighter bounds for the counts, solving programs while the effort lasts.

    Args:
        bounds: The bounds so far for the same trees.
        effort: The operations for all programs.
    """
    low, high = bounds.low.copy(), bounds.high.copy()
    at_once = 1 if len(block) > 1 else max(1, _MAX_CELLS // _cells(block, int(high.max(initial=0))))
    for start in range(0, len(low), at_once):
        trees = slice(start, start + at_once)
        program = _Program(block, {name: amounts[trees] for name, amounts in free.items()}, effort)
        try:
            if len(block) > 1:
                np.minimum(high[trees], program.upper_bound(high[trees]), out=high[trees])
            while (low[trees] < high[trees]).any():
                middle = (low[trees] + high[trees] + 1) // 2
                enough = program.fits([], middle)
                low[trees] = np.where(enough, middle, low[trees])
                high[trees] = np.where(enough, high[trees], middle - 1)
        except Exhausted:
            break
    return CountRange(low, high)


def _cells(block: Block, times: int) -> int:
    """Return the maximum number of cells in a table for one tree."""
    return max(math.prod(item.times * times + 1 for item in alternative[:-1]) for alternative in block)


class _Program:
    """The program of a block: for several trees, or for one tree if the block has several alternatives."""

    def __init__(self, block: Block, free: FreeAmounts, effort: Budget) -> None:
        self._length = len(block)
        self._free = free
        self._effort = effort
        alternatives_of: dict[tuple[Item, int | None], list[int]] = {}
        for number, alternative in enumerate(block):
            for item in alternative:
                alternatives_of.setdefault((item, number if item.isolated else None), []).append(number)
        members = [(item, tuple(numbers)) for (item, _), numbers in alternatives_of.items()]
        keys = [
            item.capacity_keys() | {(numbers, provider) for provider in item.isolation_keys()}
            for item, numbers in members
        ]
        #: Number of times that each alternative fits on its own.
        self._alone: list[int] = []
        self._known: dict[Hashable, Bools] = {}
        #: Groups of interdependent items.
        self._tied = [[members[number] for number in numbers] for numbers in connected_components(keys)]

    def upper_bound(self, limit: Integers) -> Integers:
        """Return an upper bound: the sum over the alternatives, each counted with all providers to itself.

        Raises:
            Exhausted: The effort is exhausted.
        """
        for number in range(self._length):
            alone = [np.array([number == position]) for position in range(self._length)]

            def fits(times: Integers, alone: list[Bools] = alone) -> Bools:
                return self._all_fit([times * selected for selected in alone])

            self._alone.append(bisect_largest(limit, fits).item())
        return np.array([sum(self._alone)])

    def fits(self, times: list[Integers], remaining: Integers) -> Bools:
        """Return the trees in which ``times`` of the first alternatives fit, plus ``remaining`` of all others together.

        Raises:
            Exhausted: The effort is exhausted.
        """
        if len(times) == self._length - 1:
            return self._all_fit([*times, remaining])
        idle = [np.zeros_like(remaining)] * (self._length - len(times) - 1)
        alone, max_later = self._alone[len(times)], sum(self._alone[len(times) + 1 :])
        for placements in range(min(alone, remaining.item()), max(0, remaining.item() - max_later) - 1, -1):
            own = [*times, np.array([placements])]
            if self._all_fit([*own, *idle]).all() and self.fits(own, remaining - placements).all():
                return np.ones(1, np.bool_)
        return np.zeros(1, np.bool_)

    def _all_fit(self, times: Sequence[Integers]) -> Bools:
        enough: Bools = np.all([self._supplied_trees(members, times) for members in self._tied], axis=0)
        return enough

    def _supplied_trees(self, members: Sequence[_Member], times: Sequence[Integers]) -> Bools:
        """Return the trees whose providers can supply the items for ``times`` placements of each alternative."""
        placed = {numbers: np.sum([times[number] for number in numbers], axis=0) for _, numbers in members}
        # The item with the largest number comes last, since the last item adds nothing to the size of the table.
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
            table = np.full((len(needs[0]), *sizes), _IMPOSSIBLE, np.int64)
            table.reshape(len(table), -1)[:, 0] = 0
            for provider in sorted({provider for item, _ in members for provider, _ in item.at_once}):
                before, table = table, np.full_like(table, _IMPOSSIBLE)
                free = {name: amounts[:, provider] for name, amounts in self._free.items()}
                for share, last in self._shares(members, needs, provider, free, placed, placed):
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
        free: FreeAmounts,
        uses: Mapping[tuple[int, ...], Integers],
        placed: Mapping[tuple[int, ...], Integers],
    ) -> Iterator[tuple[tuple[int, ...], Integers]]:
        """Yield the supplies of a provider: the numbers of all items except the last, and the maximum of the last.

        Args:
            free: Free capacity by class.
            uses: Remaining uses of the provider for isolated items, by alternatives.
            placed: Number of placements, by alternatives.
        """
        item, numbers = members[0]
        room = np.minimum(needs[0], min(item.times, dict(item.at_once).get(provider, 0)) * placed[numbers])
        if item.isolated:
            room = np.minimum(room, uses[numbers])
        for name, amount in item.amounts:
            room = np.minimum(room, free[name] // amount)
        if len(members) == 1:
            yield (), np.where(room < 0, _IMPOSSIBLE, room)
            return
        for supplied in range(int(room.max()) + 1):
            remaining = {**free, **{name: free[name] - supplied * amount for name, amount in item.amounts}}
            used = {**uses, numbers: uses[numbers] - supplied} if item.isolated else uses
            for share, last in self._shares(members[1:], needs[1:], provider, remaining, used, placed):
                yield (supplied, *share), np.where(supplied <= room, last, _IMPOSSIBLE)
