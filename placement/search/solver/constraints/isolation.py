"""The constraint of ``group_policy=isolate``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placement.search.query.query import UNSUFFIXED
from placement.search.solver import matching
from placement.search.solver.constraints.constraint import Variable
from placement.search.solver.work_limit import WorkLimit


class Isolation:
    """The constraint that suffixed groups use different providers (all-different).

    It looks ahead by matching, as in Régin, "A filtering algorithm for constraints of difference in CSPs", AAAI 1994.
    It only tests whether a matching exists, and only where that is uncertain.
    """

    name = "group_policy"

    def __init__(self, variables: Sequence[Variable], limit: WorkLimit) -> None:
        self._limit = limit
        self._concerned = [variable.demand.suffix != UNSUFFIXED for variable in variables]
        self._domains = [variable.domain for variable in variables]
        self._assigned: set[int] = set()
        #: Whether to look ahead: a matching is not certain to exist.
        self._tight = not matching.is_slack(self._unassigned_domains(0), self._capacity, limit)

    def _unassigned_domains(self, depth: int) -> list[tuple[int, ...]]:
        """Return the domains of the suffixed groups from ``depth`` on."""
        later = zip(self._concerned[depth:], self._domains[depth:], strict=True)
        return [domain for concerned, domain in later if concerned]

    def _capacity(self, provider: int) -> int:
        return provider not in self._assigned

    def feasible(self) -> bool:
        return not self._tight or self._matchable(0)

    def _matchable(self, depth: int) -> bool:
        domains = self._unassigned_domains(depth)
        self._limit.work += len(domains)
        return matching.has_matching(domains, self._capacity, self._limit)

    def allows(self, depth: int, provider: int) -> bool:
        if not self._concerned[depth]:
            return True
        if provider in self._assigned:
            return False
        if not self._tight:
            return True
        self._assigned.add(provider)
        matchable = self._matchable(depth + 1)
        self._assigned.discard(provider)
        return matchable

    def assign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._assigned.add(provider)

    def unassign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._assigned.discard(provider)

    def state(self) -> Hashable:
        return frozenset(self._assigned)
