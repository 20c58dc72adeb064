"""The constraint of the available amount of one resource class."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from placement.search.solver import matching
from placement.search.solver.constraints.constraint import Variable
from placement.search.solver.work_limit import WorkLimit

#: Elements of a list per operation; bytes of a number in a list, and in a set.
_PER_OPERATION, _NUMBER, _SET_ITEM = 10, 8, 60
#: Maximum number of distinct amounts that the look-ahead checks.
_MAX_AMOUNTS = 8


class _Unassigned(NamedTuple):
    """The variables from a depth on that demand the class."""

    domains: list[tuple[int, ...]]
    #: The amounts that they demand, in descending order.
    amounts: list[int]
    #: The union of the domains.
    providers: frozenset[int]
    #: Some of the amounts, each with the number of variables that demand at least this amount.
    at_least: list[tuple[int, int]]


class SummedAmounts:
    """The constraint that the demands of a class on one provider add up to at most its available amount.

    This is bin packing, so the look-ahead tests only necessary conditions.
    """

    def __init__(
        self, class_: str, available: tuple[int, ...], variables: Sequence[Variable], limit: WorkLimit
    ) -> None:
        self.name = self.name_for(class_)
        self._limit = limit
        self._amounts = [variable.demand.amounts.get(class_, 0) for variable in variables]
        self._domains = [variable.domain for variable in variables]
        self._available = list(available)
        #: The unassigned variables, by depth.
        self._unassigned: dict[int, _Unassigned] = {}
        domains, amounts, *_ = self._unassigned_from(0)
        #: Whether to look ahead: a matching is not certain to exist.
        self._tight = not matching.is_slack(domains, lambda provider: self._available[provider] // amounts[0], limit)

    @staticmethod
    def name_for(class_: str) -> str:
        """Return the name of the constraint for a class, in refusals."""
        return f"resources:{class_}"

    def _unassigned_from(self, depth: int) -> _Unassigned:
        if depth not in self._unassigned:
            concerned = [index for index in range(depth, len(self._amounts)) if self._amounts[index]]
            amounts = sorted((self._amounts[index] for index in concerned), reverse=True)
            domains = [self._domains[index] for index in concerned]
            distinct = {id(domain): domain for domain in domains}
            self._limit.budget.spend((len(self._amounts) + sum(map(len, distinct.values()))) // _PER_OPERATION)
            providers = frozenset().union(*distinct.values())
            self._limit.budget.hold(_NUMBER * len(amounts) * 3 + _SET_ITEM * len(providers))
            at_least = [*dict(zip(amounts, itertools.count(1), strict=False)).items()]
            sample = at_least[:: 1 + len(at_least) // _MAX_AMOUNTS]
            self._unassigned[depth] = _Unassigned(domains, amounts, providers, sample)
        return self._unassigned[depth]

    def _possible(self, depth: int) -> bool:
        """Whether three necessary conditions hold for the variables from ``depth`` on.

        The total demand is available.  For each sampled amount, the providers can supply it to all variables that
        demand at least this much.  If every variable demanded only the smallest amount, a matching would exist.
        """
        domains, amounts, providers, at_least = self._unassigned_from(depth)
        if not amounts:
            return True
        self._limit.work += len(amounts) + len(providers)
        available = [self._available[provider] for provider in providers]
        if sum(amounts) > sum(available):
            return False
        if any(sum(free // amount for free in available) < count for amount, count in at_least):
            return False
        return matching.has_matching(domains, lambda provider: self._available[provider] // amounts[-1], self._limit)

    def feasible(self) -> bool:
        return not self._tight or self._possible(0)

    def allows(self, depth: int, provider: int) -> bool:
        amount = self._amounts[depth]
        if amount > self._available[provider]:
            return False
        if not (amount and self._tight):
            return True
        self._available[provider] -= amount
        possible = self._possible(depth + 1)
        self._available[provider] += amount
        return possible

    def assign(self, depth: int, provider: int) -> None:
        self._available[provider] -= self._amounts[depth]

    def unassign(self, depth: int, provider: int) -> None:
        self._available[provider] += self._amounts[depth]

    def state(self) -> Hashable:
        return tuple(self._available)
