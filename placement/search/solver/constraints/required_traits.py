"""The constraint of ``required`` of the unsuffixed group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placement.search.query.query import UNSUFFIXED, AnyOf
from placement.search.solver.constraints.constraint import Variable
from placement.search.solver.work_limit import WorkLimit

#: Bytes of a trait in a set.
_SET_ITEM = 60


class RequiredTraits:
    """The constraint that each required trait is a trait of some provider of the unsuffixed group."""

    name = "required"

    def __init__(
        self,
        required: AnyOf,
        traits: tuple[frozenset[str], ...],
        variables: Sequence[Variable],
        limit: WorkLimit,
    ) -> None:
        self._limit = limit
        self._traits = traits
        self._variables = variables
        self._concerned = [variable.demand.suffix == UNSUFFIXED for variable in variables]
        #: The traits of all providers in the domains from a depth on, by depth.
        self._reachable = self._reachable_traits(variables)
        #: The sets without a trait of an assigned provider, after each assignment.
        self._unmet: list[AnyOf] = [required]

    def _reachable_traits(self, variables: Sequence[Variable]) -> list[frozenset[str]]:
        reachable: list[frozenset[str]] = [frozenset()] * (len(variables) + 1)
        for depth in range(len(variables) - 1, -1, -1):
            domain = variables[depth].domain if self._concerned[depth] else ()
            self._limit.budget.spend(len(domain))
            later = reachable[depth + 1]
            traits = later.union(*(self._traits[provider] for provider in domain))
            if len(traits) == len(later):
                traits = later
            else:
                self._limit.budget.hold(_SET_ITEM * len(traits))
            reachable[depth] = traits
        return reachable

    def feasible(self) -> bool:
        """Whether some provider of the group's first demand leaves only sets that the other demands can meet."""
        first = self._concerned.index(True)
        return any(self.allows(first, provider) for provider in self._variables[first].domain)

    def _reaches(self, depth: int, unmet: AnyOf) -> bool:
        """Whether the providers in the domains from ``depth`` on have a trait of each set."""
        self._limit.work += len(unmet)
        return not any(any_of.isdisjoint(self._reachable[depth]) for any_of in unmet)

    def _unmet_with(self, provider: int) -> AnyOf:
        return tuple(any_of for any_of in self._unmet[-1] if any_of.isdisjoint(self._traits[provider]))

    def allows(self, depth: int, provider: int) -> bool:
        return not self._concerned[depth] or self._reaches(depth + 1, self._unmet_with(provider))

    def assign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._unmet.append(self._unmet_with(provider))

    def unassign(self, depth: int, provider: int) -> None:  # noqa: ARG002 - it is the last assignment
        if self._concerned[depth]:
            self._unmet.pop()

    def state(self) -> Hashable:
        return self._unmet[-1]
