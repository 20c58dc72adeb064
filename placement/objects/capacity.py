"""The one rule of what fits, for a claim and for a search, for numbers and for numpy arrays.

Capacity is a real number and is compared as such (docs: api-claims, api-capacity); only where it is shown, or checked
when inventory is written, it is cut to a whole number.  All arithmetic is in double precision: totals stay below 2**31
and ratios are read at the precision of their column, so products are exact enough to compare and never overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placement.db.schema.tables import LARGEST_RATIO

#: A number or a numpy array of numbers.  The functions take either, and broadcast a mix of both.
Numbers = Any


def ratio(stored: Numbers) -> Numbers:
    """Return what ``placement.db.schema.tables.Ratio`` makes of a ratio, for those that were read without it."""
    return np.clip(np.nan_to_num(stored, nan=0.0), -LARGEST_RATIO, LARGEST_RATIO)


def capacity(total: Numbers, reserved: Numbers, allocation_ratio: Numbers) -> Numbers:
    """Return the amount that consumers can hold together, in units of the class, not rounded."""
    return (total - reserved) * allocation_ratio


def within_units(amount: Numbers, min_unit: Numbers, max_unit: Numbers, step_size: Numbers) -> Numbers:
    """Whether the inventory lets one allocation have this amount."""
    return (amount >= min_unit) & (amount <= max_unit) & (amount % step_size == 0)


def has_room(amount: Numbers, used: Numbers, capacity: Numbers) -> Numbers:
    """Whether the amount and what is used stay within the capacity."""
    return used + amount <= capacity


def available(used: Numbers, capacity: Numbers, max_unit: Numbers) -> Numbers:
    """Return the largest amount, in whole units, that ``has_room`` and is at most ``max_unit``; at least 0.

    This is the bound for the sum of what one consumer takes from one provider: ``min_unit`` and ``step_size`` hold for
    each summand, not for the sum.
    """
    return np.clip(np.floor(capacity) - used, 0, max_unit)


def fits(
    amount: Numbers, used: Numbers, capacity: Numbers, min_unit: Numbers, max_unit: Numbers, step_size: Numbers
) -> Numbers:
    """Whether an allocation of this amount is possible."""
    return within_units(amount, min_unit, max_unit, step_size) & has_room(amount, used, capacity)
