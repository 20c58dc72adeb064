"""The constraint of versions before nested providers: one provider per tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placement.search.solver.constraints.constraint import Variable


class OnePerTree:
    """The constraint that a candidate uses at most one provider of each tree."""

    name = "one provider per tree"

    def __init__(self, trees: tuple[int, ...], variables: Sequence[Variable]) -> None:
        # A group without resources takes nothing from its provider, which may be a different one.
        self._concerned = [bool(variable.demand.amounts) for variable in variables]
        self._trees = trees
        #: The provider of each tree, once per variable.
        self._assigned: list[list[int]] = [[] for _ in trees]

    def feasible(self) -> bool:
        return True

    def allows(self, depth: int, provider: int) -> bool:
        assigned = self._assigned[self._trees[provider]]
        return not assigned or assigned[-1] == provider or not self._concerned[depth]

    def assign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._assigned[self._trees[provider]].append(provider)

    def unassign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._assigned[self._trees[provider]].pop()

    def state(self) -> Hashable:
        return tuple(assigned[-1] if assigned else None for assigned in self._assigned)
