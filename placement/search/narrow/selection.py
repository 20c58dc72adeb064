"""A set of providers that is being narrowed, and what narrowed it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.index.column import Column
from placement.index.forest import Forest
from placement.index.slots import Mask, Slots

#: When so few of the slots are left, looking at each of them is cheaper than looking at all.
_FEW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Immutable: a mask over all slots, or a list of the few that are left."""

    forest: Forest
    _mask: Mask | None = None
    _slots: Slots | None = None

    def within(self, mask: Mask) -> Selection:
        """Those that are in the mask, too."""
        if self._slots is not None:
            return Selection(self.forest, None, self._slots[mask[self._slots]])
        assert self._mask is not None
        return Selection(self.forest, self._mask & mask)

    def fitting(self, column: Column | None, amount: int) -> Selection:
        """Those where the amount fits; nobody has anything of a class without a column."""
        if column is None:
            return Selection(self.forest, None, np.empty(0, np.intp))
        few = self.few()
        if few._slots is not None:
            return Selection(self.forest, None, column.fitting_among(amount, few._slots))
        assert few._mask is not None
        return Selection(self.forest, few._mask & column.fitting(amount, self.forest.size))

    def few(self) -> Selection:
        """The same, as a list if few are left."""
        if self._mask is None or np.count_nonzero(self._mask) * _FEW > self.forest.size:
            return self
        return Selection(self.forest, None, np.flatnonzero(self._mask))

    def mask(self) -> Mask:
        """True for everybody who is left; not to be written to."""
        if self._mask is not None:
            return self._mask
        mask = np.zeros(self.forest.size, dtype=np.bool_)
        mask[self._slots] = True
        return mask

    def slots(self) -> Slots:
        """Everybody who is left, in order."""
        if self._slots is not None:
            return self._slots
        assert self._mask is not None
        return np.flatnonzero(self._mask)

    def roots(self) -> Mask:
        """The roots of the trees that have somebody left."""
        if self._slots is None:
            assert self._mask is not None
            return self.forest.roots_of(self._mask)
        roots = np.zeros(self.forest.size, dtype=np.bool_)
        roots[self.forest.roots(self._slots)] = True
        return roots

    @property
    def nbytes(self) -> int:
        """What it holds in memory."""
        held = self._mask if self._slots is None else self._slots
        assert held is not None
        return held.nbytes

    def __bool__(self) -> bool:
        """Whether anybody is left."""
        if self._slots is not None:
            return len(self._slots) > 0
        assert self._mask is not None
        return bool(self._mask.any())

    def __len__(self) -> int:
        if self._slots is not None:
            return len(self._slots)
        assert self._mask is not None
        return int(np.count_nonzero(self._mask))

    @property
    def count(self) -> int:
        return len(self)

    @property
    def tree_count(self) -> int:
        return int(np.count_nonzero(self.roots()))
