"""The bounds of a search: a budget for the request, and a limit for each tree without solutions.

A ``Budget`` bounds a whole request, from narrowing to the response, in operations and in bytes.  An operation takes
about a microsecond on an idle machine; bytes are an estimate of the memory held at once.  A ``WorkLimit``
(``solver/work_limit.py``) bounds the operations of one tree between two solutions: an eighth of the remaining
operations for fruitless work.

Both are needed, because packing unequal groups into providers is NP-hard.  With the budget alone, one tree could
exhaust it although the next tree has candidates; with the limit alone, many trees with many candidates would have no
bound.

Operations are counted rather than time, so that a request finds the same candidates on a busy machine.  Code counts
them where their number depends on the client or on the size of the cloud.

A search that reaches a bound returns the candidates found so far, and ``shortage`` names the bound; the result is not
``complete``.
"""

from __future__ import annotations

#: Maximum number of operations of a request; about a second.
OPERATIONS = 1_000_000
#: Maximum number of bytes of a request; enough for ten thousand candidates of a dozen groups each.
BYTES = 128 * 2**20
#: Fruitless operations, spent without finding a solution, in all trees of a request.  Once they are exhausted, the same
#: number is available again, but only the minimum per tree (``Budget.allowance``).
FRUITLESS = 200_000

#: Divisor of the remaining fruitless operations that one tree may spend.
_TREES = 8
#: Maximum number of fruitless operations for which a tree is not charged.
_FREE = 500


class Exhausted(Exception):
    """The search has exhausted its budget."""


class Budget:
    """The remaining operations and bytes of one request.

    Attributes:
        operations: Remaining operations.
        memory: Remaining bytes.
        fruitless: Remaining operations without a solution; below zero, only the minimum per tree.
        shortage: The exhausted resource, "operations" or "memory"; None if the search is complete so far.
    """

    __slots__ = ("fruitless", "memory", "operations", "shortage")

    def __init__(self, operations: int = OPERATIONS, memory: int = BYTES, fruitless: int = FRUITLESS) -> None:
        self.operations = operations
        self.memory = memory
        self.fruitless = fruitless
        self.shortage: str | None = None

    def spend(self, operations: int) -> None:
        """Charge operations before they are done.

        Raises:
            Exhausted: Fewer operations remain.
        """
        self.operations -= operations
        if self.operations < 0:
            self.fall_short("operations")
            raise Exhausted

    def hold(self, size: int) -> None:
        """Charge bytes that are held until the end of the request.

        Raises:
            Exhausted: Fewer bytes remain.
        """
        if not self.try_hold(size):
            self.fall_short("memory")
            raise Exhausted

    def try_hold(self, size: int) -> bool:
        """Charge bytes for optional data, such as a cache; return False, without a charge, if fewer are left."""
        if self.memory < size:
            return False
        self.memory -= size
        return True

    def fall_short(self, resource: str) -> None:
        """Record the lack of "operations" or "memory", unless the result is already incomplete."""
        self.shortage = self.shortage or resource

    # --- fruitless work: for WorkLimit ---

    def allowance(self, minimum: int) -> int:
        """Return the operations that one tree may spend before its first or next solution, at least ``minimum``."""
        return max(self.fruitless // _TREES, minimum, _FREE)

    def count_fruitless(self, operations: int) -> None:
        """Charge operations that found no solution."""
        if operations > _FREE:
            self.fruitless -= operations

    def fruitless_exhausted(self) -> bool:
        """Whether to skip the remaining trees; if so, record the shortage."""
        # When hard trees have exhausted FRUITLESS, as much again is available for easy trees.
        if self.fruitless > -FRUITLESS:
            return False
        self.fall_short("operations")
        return True
