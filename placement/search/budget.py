"""The bounds of one search: a budget for the request, and in it a limit for each tree that yields nothing.

A ``Budget`` bounds a whole request, from the first mask to the reply, in operations (about a microsecond each on a
quiet machine) and in bytes (an estimate of what is held at once).  A ``WorkLimit`` (``solver/work_limit.py``) bounds
what one tree may spend between two solutions: an eighth of the operations that are left for fruitless work.
Both are needed, because packing unequal groups into providers is NP-hard: with the budget alone one tree could use up
everything although the next has candidates, and with the limit alone many trees of many candidates would have no bound.
Operations are counted, not time, so that the same request finds the same candidates on a busy machine.  A search that
meets a bound returns what it has found, and ``shortage`` names what was too small; the result is then not ``complete``.

Code counts work where a client, or the size of a cloud, decides how much of it there is.
"""

from __future__ import annotations

#: About a second.
OPERATIONS = 1_000_000
#: Enough for ten thousand candidates of a dozen groups each.
BYTES = 128 * 2**20
#: Operations without a solution that one request may spend in all its trees.  After that there are as many again, but
#: only little for each tree.
FRUITLESS = 200_000

#: One tree may spend this part of what is left for fruitless work: an eighth.
_TREES = 8
#: Every tree may spend so much; a tree that needs no more is not charged.
_FREE = 500


class Exhausted(Exception):
    """The search has used up its budget."""


class Budget:
    """The operations and bytes that one request has left.

    Attributes:
        operations: How many are left.
        memory: Bytes that are left.
        fruitless: Operations that trees may still spend without finding a solution; below zero, only little in each.
        shortage: What was too small, "operations" or "memory"; None if the search is complete so far.
    """

    __slots__ = ("fruitless", "memory", "operations", "shortage")

    def __init__(self, operations: int = OPERATIONS, memory: int = BYTES, fruitless: int = FRUITLESS) -> None:
        self.operations = operations
        self.memory = memory
        self.fruitless = fruitless
        self.shortage: str | None = None

    def spend(self, operations: int) -> None:
        """Count operations that are about to be done.

        Raises:
            Exhausted: Fewer are left.
        """
        self.operations -= operations
        if self.operations < 0:
            self.fall_short("operations")
            raise Exhausted

    def hold(self, size: int) -> None:
        """Count bytes that are about to be held until the end of the request.

        Raises:
            Exhausted: Fewer are left.
        """
        if not self.try_hold(size):
            self.fall_short("memory")
            raise Exhausted

    def try_hold(self, size: int) -> bool:
        """Count bytes for something optional, such as a cache, and return True; return False if fewer are left."""
        if self.memory < size:
            return False
        self.memory -= size
        return True

    def fall_short(self, of: str) -> None:
        """Record that something was left out for lack of "operations" or "memory".  The first record stays."""
        self.shortage = self.shortage or of

    # --- fruitless work: for WorkLimit ---

    def allowance(self, minimum: int) -> int:
        """Return the operations that one tree may spend until it finds a solution, at least ``minimum``."""
        return max(self.fruitless // _TREES, minimum, _FREE)

    def count_fruitless(self, operations: int) -> None:
        """Count operations that found no solution."""
        if operations > _FREE:
            self.fruitless -= operations

    def fruitless_exhausted(self) -> bool:
        """Whether to skip the trees that were not searched yet; records the shortage."""
        # After the hard trees have used up FRUITLESS, there is as much again for trees that need little.
        if self.fruitless > -FRUITLESS:
            return False
        self.fall_short("operations")
        return True
