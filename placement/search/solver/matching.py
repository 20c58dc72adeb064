"""Bipartite matching of variables with values; the capacity of a value is the number of variables that may use it.

A matching is a necessary condition for a solution.  Constraints test it before they assign a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placement.search.solver.work_limit import WorkLimit

#: A function from a value to its capacity.
CapacityOf = Callable[[int], int]

#: Capacities looked up per operation.
_CAPACITIES_PER_OPERATION = 20
#: Values tried per operation.
_MOVES_PER_OPERATION = 5


def is_slack(domains: Sequence[Sequence[int]], capacity: CapacityOf, limit: WorkLimit) -> bool:
    """Whether each variable finds a value in its domain, regardless of the assignment of the earlier variables.

    This sufficient condition for a matching is cheap: the capacity of each domain exceeds the number of earlier
    variables.
    """
    totals: dict[Sequence[int], int] = {}
    for earlier, domain in enumerate(domains):
        total = totals.get(domain)
        if total is None:
            limit.budget.spend(len(domain) // _CAPACITIES_PER_OPERATION)
            total = totals[domain] = sum(map(capacity, domain))
        if total <= earlier:
            return False
    return True


def has_matching(domains: Sequence[Sequence[int]], capacity: CapacityOf, limit: WorkLimit) -> bool:
    """Whether each variable can be matched with a value of its domain, within the capacities.

    >>> from placement.search.budget import Budget
    >>> limit = WorkLimit(Budget(), 0)
    >>> has_matching([(1, 2), (1,)], lambda value: 1, limit)
    True
    >>> has_matching([(1, 2), (1,), (2,)], lambda value: 1, limit)
    False
    >>> has_matching([(1, 2), (1,), (2,)], {1: 2, 2: 1}.__getitem__, limit)
    True
    """
    return _Matching(domains, capacity, limit).complete()


class _Matching:
    """A matching that grows by augmenting paths.

    Kuhn's algorithm (H. W. Kuhn, "The Hungarian method for the assignment problem", 1955): a variable takes a free
    value, or the value of a variable that can move to another one.  By Berge's theorem (1957), a matching without an
    augmenting path is maximum.  Two refinements: values have capacities, and variables with the same domain object are
    visited once per path, because they can move to the same values.
    """

    def __init__(self, domains: Sequence[Sequence[int]], capacity: CapacityOf, limit: WorkLimit) -> None:
        self._limit = limit
        self._domains = domains
        #: The identity of each variable's domain.
        self._domain_id = [id(domain) for domain in domains]
        distinct = {id(domain): domain for domain in domains}
        limit.work += sum(map(len, distinct.values())) // _CAPACITIES_PER_OPERATION
        self._capacity = {value: capacity(value) for value in set().union(*distinct.values())}
        #: The variables that use a value, by value.
        self._users: dict[int, list[int]] = {value: [] for value in self._capacity}
        #: The index of the first value of a domain that may be free, by domain; full values stay full.
        self._first_free = dict.fromkeys(distinct, 0)

    def complete(self) -> bool:
        """Whether all variables can be matched."""
        if sum(self._capacity.values()) < len(self._domains):
            return False
        return all(self._augment(variable, set()) for variable in range(len(self._domains)))

    def _free_value(self, variable: int) -> int | None:
        """Return a value of the domain with free capacity, if any."""
        domain_id, domain = self._domain_id[variable], self._domains[variable]
        for index in range(self._first_free[domain_id], len(domain)):
            if len(self._users[domain[index]]) < self._capacity[domain[index]]:
                self._first_free[domain_id] = index
                return domain[index]
        self._first_free[domain_id] = len(domain)
        return None

    def _augment(self, variable: int, visited: set[int]) -> bool:
        """Match the variable along an augmenting path, if one exists.

        Args:
            visited: Identities of the domains on the path, and of domains searched without success.
        """
        value = self._free_value(variable)
        if value is not None:
            self._users[value].append(variable)
            return True
        visited.add(self._domain_id[variable])
        self._limit.budget.spend(len(self._domains[variable]) // _MOVES_PER_OPERATION)
        for value in self._domains[variable]:
            for index, user in enumerate(self._users[value]):
                if self._domain_id[user] not in visited and self._augment(user, visited):
                    self._users[value][index] = variable
                    return True
        return False
