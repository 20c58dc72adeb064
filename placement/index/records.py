"""The rows that an index is built from, from a database or from a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

#: Rows of numbers.
Numbers = Sequence[tuple[Any, ...]] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of some or all providers: tuples, or an array if every column is a number."""

    #: Id, uuid, name, generation (None is inconsistent and treated as 0), id of the parent (None for a root), id of the
    #: root (None for a root in an old database).
    providers: Sequence[tuple[int, str, str | None, int | None, int | None, int | None]]
    #: Provider id, class id, total, reserved, min_unit, max_unit, step_size, allocation_ratio.
    inventories: Numbers = ()
    #: Provider id, class id, the sum of the allocations of this class on this provider.
    usages: Numbers = ()
    #: Provider id, name of the trait.
    traits: Sequence[tuple[int, str]] = ()
    #: Provider id, uuid of the aggregate.
    aggregates: Sequence[tuple[int, str]] = ()
    #: Ids by name, for every trait in ``traits``.
    trait_ids: Mapping[str, int] = field(default_factory=dict)
