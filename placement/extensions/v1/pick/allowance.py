"""What the searches of one call may take together, in operations of a budget.

A call has up to thousands of requests, its rounds search again for those that lost their places, and what is refused is
explained.  Each of these searches is bounded by a budget of its own; this bounds their sum.  The cost of a place that
is found is small beside that of writing it, so it is hardly counted.
"""

from __future__ import annotations

from placement.search.budget import Budget

#: This many operations are kept for each request that comes after others have used up those for all requests together,
#: and this many for all of these together.
OPERATIONS_PER_REQUEST, _RESERVED = 5_000, 125_000
#: A request that gets its place is not charged for the first of its operations: writing the place costs about as much.
OPERATIONS_PER_PLACE = 1_000
#: What is kept for explanations, beside what the searches have left; without so much nothing is explained.
_EXPLAINING, _EXPLANATION = 125_000, 100_000


class Allowance:
    """The operations that a call has left."""

    def __init__(self, operations: int, requests: int) -> None:
        """Begin a call.

        Args:
            operations: Those of one search, which are for all requests together.
            requests: How many these are.
        """
        self._reserved = min(OPERATIONS_PER_REQUEST * requests, _RESERVED)
        self._spare = max(operations - self._reserved, 0)
        self._explaining = _EXPLAINING
        self._granted = 0

    def grant(self, budget: Budget) -> bool:
        """Give a budget the operations for one request; return False, and record the shortage, if there are none."""
        budget.operations = self._granted = self._spare + min(self._reserved, OPERATIONS_PER_REQUEST)
        if self._granted <= 0:
            budget.fall_short("operations")
        return self._granted > 0

    def charge(self, budget: Budget, *, placed: bool) -> None:
        """Take back what a request has left of its operations.

        Args:
            placed: Whether it has got a place that will be written.
        """
        self._spend(max(self._granted - max(budget.operations, 0) - (OPERATIONS_PER_PLACE if placed else 0), 0))

    def for_explanation(self) -> int:
        """Return the operations that the next explanation may take; 0 if nothing is to be explained."""
        left = self._spare + self._reserved + self._explaining
        return left if left >= _EXPLANATION else 0

    def explained(self, operations: int) -> None:
        """Count the operations of an explanation."""
        kept = min(operations, self._explaining)
        self._explaining -= kept
        self._spend(operations - kept)

    def _spend(self, operations: int) -> None:
        """Count operations: first of those for all requests together, then of those that are kept for each."""
        common = min(operations, self._spare)
        self._spare -= common
        self._reserved = max(self._reserved - (operations - common), 0)
