"""What a checker finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jepsen.history import History


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant.

    Attributes:
        invariant: Its name, the same for all violations of one invariant.
        sentence: What is wrong, with the names of what it concerns.
        operations: The numbers of the operations that show it; few, in the order in which they began.
        undecided: Whether a search ended without a verdict: nothing is known to be broken, and nothing to be right.
    """

    invariant: str
    sentence: str
    operations: Sequence[int] = ()
    undecided: bool = False


class Check(Protocol):
    """An invariant: a function of a history."""

    def __call__(self, history: History, /) -> list[Violation]:
        """Return what violates it; an empty list for a history to which it does not apply."""
