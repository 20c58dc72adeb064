"""Backoff of optimistic claims."""

from placement.extensions.v1.claims.shared import OptimisticBackoff


def optimistic_calls(backoff, placed, calls):
    """Return the numbers of the optimistic calls; ``placed``: whether each of them is placed."""
    numbers = []
    for number in range(calls):
        if backoff.is_due():
            numbers.append(number)
            backoff.note(placed)
    return numbers


def test_optimistic_claims_become_rare_while_they_are_refused():
    backoff = OptimisticBackoff()
    assert optimistic_calls(backoff, True, 4) == [0, 1, 2, 3]
    assert optimistic_calls(backoff, False, 70) == [0, 2, 6, 14, 30, 46, 62]
    assert optimistic_calls(backoff, True, 12) == [8, 9, 10, 11]
