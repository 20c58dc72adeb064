"""Whether it pays to guess a place from a snapshot of a moment ago."""

from __future__ import annotations

#: The most calls in a row without a guess.
_MOST = 15


class Guesses:
    """Skips guesses where the last ones were lost: after each one in a row about twice as many calls.

    Shared by all threads of a process; a count that is lost between two of them does no harm.
    """

    def __init__(self) -> None:
        self._skipped_next = self._left = 0

    def is_due(self) -> bool:
        """Return whether to guess this time."""
        if self._left > 0:
            self._left -= 1
            return False
        return True

    def note(self, won: bool) -> None:
        """Take into account whether the guessed place was there."""
        self._skipped_next = 0 if won else min(2 * self._skipped_next + 1, _MOST)
        self._left = self._skipped_next
