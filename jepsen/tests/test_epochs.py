"""After a loss an object is in an earlier state, and stays consistent from then on."""

from __future__ import annotations

import pytest

from jepsen.tests.handwritten_histories import loss
from jepsen.tests.test_consumers import FIRST, conflict, get, is_wrong, put

SECOND_WRITE, THIRD = put(20, 30, 2, 1), put(40, 50, 3, 2)


@pytest.mark.parametrize(("amount", "generation"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_a_loss_may_restore_any_earlier_state(amount, generation):
    read = get(100, 110, amount, generation)
    assert not is_wrong(FIRST, SECOND_WRITE, THIRD, read, events=[loss(60, 70)])
    assert is_wrong(FIRST, SECOND_WRITE, THIRD, read) == (amount != 3)


def test_a_loss_restores_only_states_that_existed():
    writes = [FIRST, SECOND_WRITE, THIRD]
    assert is_wrong(*writes, get(100, 110, 4, 4), events=[loss(60, 70)])
    assert is_wrong(*writes, get(100, 110, 1, 2), events=[loss(60, 70)])
    later = put(80, 90, 5, 3)
    assert not is_wrong(*writes, later, get(100, 110, 5, 4), events=[loss(60, 70)])
    assert is_wrong(*writes, later, get(100, 110, 1, 1), events=[loss(60, 70)])


def test_a_loss_does_not_restore_later_writes():
    read = get(72, 75, 5, 2)
    assert is_wrong(FIRST, read, put(80, None, 5, 1), events=[loss(60, 70)])
    assert not is_wrong(FIRST, read, put(50, None, 5, 1), events=[loss(60, 70)])


def test_a_loss_happens_once():
    read, other = get(100, 110, 1), get(120, 130, 2, 2)
    assert is_wrong(FIRST, SECOND_WRITE, read, other, events=[loss(60, 70)])
    assert not is_wrong(FIRST, SECOND_WRITE, read, other, events=[loss(60, 70), loss(112, 115)])


def test_a_loss_happens_at_any_time_during_the_event():
    during = get(80, 90, 1)
    assert not is_wrong(FIRST, SECOND_WRITE, during, events=[loss(60, 200)])
    assert is_wrong(FIRST, SECOND_WRITE, get(40, 50, 1), events=[loss(60, 200)])
    assert not is_wrong(FIRST, SECOND_WRITE, during, put(100, 110, 7, 1), get(210, 220, 7, 2), events=[loss(60, 200)])
    assert not is_wrong(FIRST, SECOND_WRITE, put(100, 110, 7, 2), get(210, 220, 2, 2), events=[loss(60, 200)])


def test_an_open_write_takes_effect_before_or_after_a_loss():
    open_write = put(20, None, 2, 1)
    assert not is_wrong(FIRST, open_write, get(100, 110, 2, 2), events=[loss(60, 70)])
    assert not is_wrong(FIRST, open_write, get(100, 110, 1), get(120, 130, 2, 2), events=[loss(60, 70)])
    assert not is_wrong(FIRST, open_write, get(40, 50, 2, 2), get(100, 110, 1), events=[loss(60, 70)])
    assert is_wrong(FIRST, open_write, get(40, 50, 2, 2), get(100, 110, 1), get(120, 130, 2, 2), events=[loss(60, 70)])


def test_a_refusal_after_a_loss_narrows_the_states_down():
    refusal = conflict(100, 110, 1, "9")
    operations = [FIRST, SECOND_WRITE, THIRD, refusal]
    assert not is_wrong(*operations, get(120, 130, 1), events=[loss(60, 70)])
    assert is_wrong(*operations, get(120, 130, 3, 3), events=[loss(60, 70)])
