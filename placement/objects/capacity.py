"""The capacity rule: whether an amount fits into an inventory, for claims and for searches.

Capacity is compared as a real number (docs: api-claims, api-capacity).  It is truncated to a whole number only to be
shown, and to be checked when inventory is written.  All arithmetic is in double precision: totals are below 2**31 and
ratios have the precision of their column, so products do not overflow and are exact enough to compare.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placement.db.schema.tables import LARGEST_RATIO

#: A number or a numpy array of numbers; a mix of both is broadcast.
Numbers = Any


def ratio(stored: Numbers) -> Numbers:
    """Return the finite ratio for a stored value, like ``placement.db.schema.tables.Ratio``."""
    return np.clip(np.nan_to_num(stored, nan=0.0), -LARGEST_RATIO, LARGEST_RATIO)


def capacity(total: Numbers, reserved: Numbers, allocation_ratio: Numbers) -> Numbers:
    """Return the amount that all consumers together can hold, in units of the class, not truncated."""
    return (total - reserved) * allocation_ratio


def within_units(amount: Numbers, min_unit: Numbers, max_unit: Numbers, step_size: Numbers) -> Numbers:
    """Whether the unit constraints of the inventory permit one allocation of this amount."""
    return (amount >= min_unit) & (amount <= max_unit) & (amount % step_size == 0)


def within_capacity(amount: Numbers, used: Numbers, capacity: Numbers) -> Numbers:
    """Whether the amount and the used amount together fit."""
    return used + amount <= capacity


def available(used: Numbers, capacity: Numbers, max_unit: Numbers) -> Numbers:
    """Return the largest whole amount that fits in addition to the used amount, between 0 and ``max_unit``.

    It bounds the sum of one consumer's allocations on one provider.  ``min_unit`` and ``step_size`` apply to each
    allocation, not to the sum.  A positive amount ``fits`` if it is at most this amount and ``within_units``.
    """
    return np.clip(np.floor(capacity) - used, 0, max_unit)


def fits(
    amount: Numbers, used: Numbers, capacity: Numbers, min_unit: Numbers, max_unit: Numbers, step_size: Numbers
) -> Numbers:
    """Whether one allocation of this amount fits."""
    return within_units(amount, min_unit, max_unit, step_size) & within_capacity(amount, used, capacity)
