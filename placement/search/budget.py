"""What one search may use up, from the first mask to the reply: a number of operations and of bytes.

Operations are counted and not time, so that the same request finds the same on a busy machine; one is about a
microsecond of a quiet one.  Bytes are an estimate of what is held at once.  Work is counted where a client decides how
much of it there is; what takes the same time for every request is not.
"""

from __future__ import annotations

#: About a second.
OPERATIONS = 1_000_000
#: Enough for ten thousand candidates of a dozen groups each.
BYTES = 128 * 2**20


class Exhausted(Exception):
    """The search has used up what it may."""


class Budget:
    """That of one request.  ``shortage`` says what it was too small for: "operations", "memory", or None."""

    __slots__ = ("memory", "operations", "shortage")

    def __init__(self, operations: int = OPERATIONS, memory: int = BYTES) -> None:
        self.operations = operations
        self.memory = memory
        self.shortage: str | None = None

    def spend(self, operations: int) -> None:
        """Count work that is about to be done; raises Exhausted if there is nothing left for it."""
        self.operations -= operations
        if self.operations < 0:
            self.fall_short("operations")
            raise Exhausted

    def hold(self, size: int) -> None:
        """Count bytes that are about to be held until the end; raises Exhausted if they are not left."""
        if not self.fits(size):
            self.fall_short("memory")
            raise Exhausted

    def fits(self, size: int) -> bool:
        """Whether so many bytes are left, for something that could be done without; then they are taken."""
        if self.memory < size:
            return False
        self.memory -= size
        return True

    def fall_short(self, of: str) -> None:
        """Note that something was left out; what came first is told."""
        self.shortage = self.shortage or of
