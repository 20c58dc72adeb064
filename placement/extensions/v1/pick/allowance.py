"""The operations that all searches for one claim set share.

A claim set contains up to thousands of requests, later rounds search for requests that lost their places, and
refusals are explained.  Each of these searches has its own budget; the allowance bounds their sum.  Finding a place
costs little compared with writing it, so searches that find one are charged only for the excess.
"""

from __future__ import annotations

from placement.search.budget import Budget

#: Operations reserved per request, for use after earlier requests have used up the common operations; maximum of the
#: operations reserved for all requests.
OPERATIONS_PER_REQUEST, _RESERVED = 5_000, 125_000
#: Operations not charged to a request with a place: writing the place costs about as much.
OPERATIONS_PER_PLACE = 1_000
#: Operations reserved for explanations; operations that must be left for the next explanation.
_RESERVED_FOR_EXPLANATIONS, _MIN_FOR_EXPLANATION = 125_000, 100_000


class Allowance:
    """The operations left for a claim set."""

    def __init__(self, operations: int, requests: int) -> None:
        """Divide the operations into common and reserved operations.

        Args:
            operations: Operations of one search, shared by all requests.
            requests: Number of requests.
        """
        self._reserved = min(OPERATIONS_PER_REQUEST * requests, _RESERVED)
        self._common = max(operations - self._reserved, 0)
        self._for_explanations = _RESERVED_FOR_EXPLANATIONS
        self._granted = 0

    def grant(self, budget: Budget) -> bool:
        """Set the operations of a budget for one request; record a shortage and return False if none are left."""
        budget.operations = self._granted = self._common + min(self._reserved, OPERATIONS_PER_REQUEST)
        if self._granted <= 0:
            budget.fall_short("operations")
        return self._granted > 0

    def charge(self, budget: Budget, *, placed: bool) -> None:
        """Charge the operations that a request has spent since ``grant``.

        Args:
            placed: Whether the search found a place that will be written.
        """
        self._spend(max(self._granted - max(budget.operations, 0) - (OPERATIONS_PER_PLACE if placed else 0), 0))

    def for_explanation(self) -> int:
        """Return the operations for the next explanation; 0 if too few are left to explain anything."""
        remaining = self._common + self._reserved + self._for_explanations
        return remaining if remaining >= _MIN_FOR_EXPLANATION else 0

    def charge_explanation(self, operations: int) -> None:
        """Charge the operations of an explanation, first to the operations reserved for explanations."""
        from_reserve = min(operations, self._for_explanations)
        self._for_explanations -= from_reserve
        self._spend(operations - from_reserve)

    def _spend(self, operations: int) -> None:
        """Charge operations, first to the common operations, then to the reserved operations."""
        from_common = min(operations, self._common)
        self._common -= from_common
        self._reserved = max(self._reserved - (operations - from_common), 0)
