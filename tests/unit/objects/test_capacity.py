"""``capacity.available`` is the inverse of ``capacity.within_capacity``."""

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
