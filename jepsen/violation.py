"""Violations, the results of checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jepsen.history import History


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant.

    Attributes:
        invariant: Name of the invariant.
        sentence: Description of the error, with the names of the objects concerned.
        operations: Numbers of a few operations that show the error, in the order in which they began.
        undecided: Whether a search reached its bound without a verdict, so that the invariant may be kept or violated.
    """

    invariant: str
    sentence: str
    operations: Sequence[int] = ()
    undecided: bool = False


class Check(Protocol):
    """A check: a function of a history."""

    def __call__(self, history: History, /) -> list[Violation]:
        """Return the violations; an empty list for a history to which the check does not apply."""
