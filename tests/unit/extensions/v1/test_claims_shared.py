"""Guesses are skipped where they are lost."""

from placement.extensions.v1.claims.shared import Guesses


def tried(guesses, won, calls):
    """Return the numbers of the calls that guess, if each guess ends so."""
    found = []
    for number in range(calls):
        if guesses.is_due():
            found.append(number)
            guesses.note(won)
    return found


def test_guesses_that_are_lost_become_rare():
    guesses = Guesses()
    assert tried(guesses, True, 4) == [0, 1, 2, 3]
    assert tried(guesses, False, 70) == [0, 2, 6, 14, 30, 46, 62]
    assert tried(guesses, True, 12) == [8, 9, 10, 11]
