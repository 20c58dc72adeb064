"""The shared allowance of operations for the searches of one request body."""

from __future__ import annotations

from placement.extensions.v1.pick.allowance import Allowance
from placement.search.budget import Budget


def use(allowance: Allowance, operations: int, *, placed: bool = False) -> int | None:
    """Take operations for a request, and return the number granted; None if none are left."""
    budget = Budget()
    if not allowance.grant(budget):
        assert budget.shortage == "operations"
        return None
    granted = budget.operations
    budget.operations -= operations
    allowance.charge(budget, placed=placed)
    return granted


def test_a_single_request_has_all_operations() -> None:
    assert use(Allowance(1_000_000, 1), 0) == 1_000_000


def test_hard_requests_leave_operations_to_other_requests_until_all_are_used_up() -> None:
    allowance = Allowance(1_000_000, 100)
    assert use(allowance, 1_000_000) == 880_000
    assert [use(allowance, 10_000) for _ in range(24)] == [5_000] * 24
    assert use(allowance, 0) is None


def test_the_reserve_of_a_hard_request_is_not_taken_by_earlier_requests() -> None:
    allowance = Allowance(1_000_000, 100)
    assert [use(allowance, 5_000) is None for _ in range(25)] == [False] * 25
    use(allowance, 1_000_000)
    assert use(allowance, 5_000) == 5_000


def test_a_request_with_a_place_is_charged_only_its_operations_above_the_reserve() -> None:
    allowance = Allowance(10_000, 1)
    assert [use(allowance, 900, placed=True) for _ in range(1_000)] == [10_000] * 1_000
    assert use(allowance, 7_000, placed=True) == 10_000
    assert use(allowance, 0) == 4_000


def test_explanations_use_the_operations_left_by_searches() -> None:
    allowance = Allowance(1_000_000, 1)
    assert allowance.for_explanation() == 1_125_000
    use(allowance, 1_000_000)
    assert allowance.for_explanation() == 125_000
    allowance.charge_explanation(60_000)
    assert allowance.for_explanation() == 0


def test_explanations_do_not_use_the_reserve_of_requests() -> None:
    allowance = Allowance(1_000_000, 25)
    total = 0
    while operations := allowance.for_explanation():
        allowance.charge_explanation(operations)
        total += operations
    assert total == 1_125_000


def test_operations_of_explanations_are_not_left_for_searches() -> None:
    allowance = Allowance(1_000_000, 1)
    allowance.charge_explanation(625_000)
    assert allowance.for_explanation() == 500_000
    assert use(allowance, 0) == 500_000
