"""The interface between constraints and the backtracking search."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from placement.search.solver.problem import Demand


class Variable(NamedTuple):
    """A demand, and the providers that can be assigned to it."""

    demand: Demand
    domain: tuple[int, ...]
    #: The index of the demand in the requirements.
    position: int


class Constraint(Protocol):
    """A condition on the assignments of several variables.

    Variables are numbered by depth, the order in which the search assigns them.  They are unassigned in reverse order.
    """

    #: The name in refusals: the parameter of the query, if any.
    name: str

    def feasible(self) -> bool:
        """Whether a solution may exist; called once, before any assignment."""

    def allows(self, depth: int, provider: int) -> bool:
        """Whether the provider may be assigned to the variable at ``depth``, the next one."""

    def assign(self, depth: int, provider: int) -> None:
        """Record an assignment."""

    def unassign(self, depth: int, provider: int) -> None:
        """Undo the last assignment."""

    def state(self) -> Hashable:
        """Return the part of no-goods that this constraint contributes: equal states allow the same continuations."""
