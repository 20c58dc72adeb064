"""The interface between constraints and the backtracking search."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from placement.search.solver.problem import Demand


class Variable(NamedTuple):
    """A demand, and the providers that it can be assigned."""

    demand: Demand
    domain: tuple[int, ...]
    #: The index of the demand in the requirements.
    position: int


class Constraint(Protocol):
    """A condition on the assignments of several variables.

    Variables are numbered by depth: the order in which the search assigns them.  They are unassigned in reverse order.
    """

    #: What a refusal is reported as: the parameter of the query, if there is one.
    name: str

    def feasible(self) -> bool:
        """Whether there may be a solution; asked once, before any assignment."""

    def allows(self, depth: int, provider: int) -> bool:
        """Whether the variable at ``depth``, the next to be assigned, may be assigned the provider."""

    def assign(self, depth: int, provider: int) -> None:
        """Record an assignment."""

    def unassign(self, depth: int, provider: int) -> None:
        """Undo the last assignment."""

    def state(self) -> Hashable:
        """Return all of the past that future answers depend on.  No-goods are compared by it."""
