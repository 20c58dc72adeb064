"""Optimistic claims become rare while they are refused."""

from placement.extensions.v1.claims.shared import OptimisticBackoff


def tried(backoff, won, calls):
    """Return the numbers of the calls that are optimistic, if each of them ends so."""
    found = []
    for number in range(calls):
        if backoff.is_due():
            found.append(number)
            backoff.note(won)
    return found


def test_optimistic_claims_that_are_refused_become_rare():
    backoff = OptimisticBackoff()
    assert tried(backoff, True, 4) == [0, 1, 2, 3]
    assert tried(backoff, False, 70) == [0, 2, 6, 14, 30, 46, 62]
    assert tried(backoff, True, 12) == [8, 9, 10, 11]
