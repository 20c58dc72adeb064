"""``capacity.available`` is the inverse of ``capacity.within_capacity``, and equivalent to ``fits`` with the units."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.objects import capacity

amounts = st.integers(0, 12)
capacities = st.one_of(st.integers(-3, 12).map(float), st.floats(-3, 12))


def fits(amount: int, used: int, limit: float, max_unit: int) -> bool:
    return bool(amount <= max_unit and capacity.within_capacity(amount, used, limit))


@given(amounts, capacities, amounts)
def test_the_largest_available_amount_fits_and_the_next_does_not(used: int, limit: float, max_unit: int) -> None:
    largest = int(capacity.available(used, limit, max_unit))
    assert largest == 0 or fits(largest, used, limit, max_unit)
    assert not fits(largest + 1, used, limit, max_unit)
    as_arrays = capacity.available(np.array([used]), np.array([limit]), np.array([max_unit]))
    assert as_arrays.tolist() == [largest]


@given(amounts, capacities, st.integers(-1, 12), st.integers(-1, 12), st.integers(1, 4))
def test_a_positive_amount_fits_if_it_is_available_and_within_the_units(
    used: int, limit: float, min_unit: int, max_unit: int, step_size: int
) -> None:
    amounts = np.arange(1, 14)
    is_available = amounts <= capacity.available(used, limit, max_unit)
    within_units = capacity.within_units(amounts, min_unit, max_unit, step_size)
    fitting = capacity.fits(amounts, used, limit, min_unit, max_unit, step_size)
    assert np.array_equal(is_available & within_units, fitting)
    assert np.array_equal(is_available, capacity.fits(amounts, used, limit, 1, max_unit, 1))
