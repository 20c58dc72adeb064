"""The constraint of ``same_subtree``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placement.search.solver.constraints.constraint import Variable
from placement.search.solver.work_limit import WorkLimit

#: Elements of a list per operation; bytes of a number in a list.
_PER_OPERATION, _NUMBER = 10, 8


class AncestorForest:
    """The providers of a problem as a forest, each below its nearest ancestor among them.

    A preorder numbering decides ancestry in constant time, because the descendants of a provider are numbered without
    gaps (Dietz, "Maintaining order in a linked list", STOC 1982).  Unlike sets of ancestors, it takes memory linear in
    the number of providers, regardless of the depth of the tree.
    """

    def __init__(self, parents: tuple[int, ...], limit: WorkLimit) -> None:
        self.parents = parents
        self._limit = limit
        #: All providers, ancestors before descendants.
        self.preorder = self._preorder()
        #: The half-open range of the numbers of a provider's subtree, by provider.
        self._first, self._end = [0] * len(parents), [0] * len(parents)
        sizes = [1] * len(parents)
        for number, provider in enumerate(self.preorder):
            self._first[provider] = number
        for provider in reversed(self.preorder):
            self._end[provider] = self._first[provider] + sizes[provider]
            if parents[provider] >= 0:
                sizes[parents[provider]] += sizes[provider]

    def _preorder(self) -> list[int]:
        children: list[list[int]] = [[] for _ in self.parents]
        for provider, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(provider)
        preorder: list[int] = []
        stack = [provider for provider, parent in enumerate(self.parents) if parent < 0]
        while stack:
            provider = stack.pop()
            preorder.append(provider)
            stack.extend(children[provider])
        return preorder

    def contains(self, top: int, provider: int) -> bool:
        """Whether the subtree of ``top``, itself included, contains the provider."""
        return self._first[top] <= self._first[provider] < self._end[top]

    def lowest_common_ancestor(self, first: int, second: int) -> int:
        """Return the root of the smallest subtree that contains both providers; -1 if no subtree contains both."""
        if self.contains(second, first):
            return second
        ancestor = first
        while ancestor >= 0 and not self.contains(ancestor, second):
            self._limit.work += 1
            ancestor = self.parents[ancestor]
        return ancestor


class SameSubtree:
    """The constraint that one provider of the groups is the same as, or an ancestor of, each other provider."""

    name = "same_subtree"

    def __init__(
        self, suffixes: frozenset[str], forest: AncestorForest, variables: Sequence[Variable], limit: WorkLimit
    ) -> None:
        limit.budget.hold(_NUMBER * len(forest.parents))
        limit.budget.spend(len(forest.parents) // _PER_OPERATION)
        self._forest = forest
        self._concerned = [variable.demand.suffix in suffixes for variable in variables]
        #: The greatest depth at which a provider, or one of its ancestors, can be assigned, by provider.
        self._last_depth = self._last_depths(variables)
        #: The lowest common ancestor, or -1, and whether it is itself assigned, after each assignment.
        self._tops: list[tuple[int, bool]] = []

    def _last_depths(self, variables: Sequence[Variable]) -> list[int]:
        last = [-1] * len(self._forest.parents)
        distinct = {
            id(variable.domain): (depth, variable.domain)
            for depth, variable in enumerate(variables)
            if self._concerned[depth]
        }
        for depth, domain in distinct.values():
            for provider in domain:
                last[provider] = max(last[provider], depth)
        for provider in self._forest.preorder:
            if (parent := self._forest.parents[provider]) >= 0:
                last[provider] = max(last[provider], last[parent])
        return last

    def feasible(self) -> bool:
        return True

    def _top_with(self, provider: int) -> tuple[int, bool]:
        if not self._tops:
            return provider, True
        top, assigned = self._tops[-1]
        if top < 0:
            return -1, False
        common = self._forest.lowest_common_ancestor(top, provider)
        return common, common == provider or (common == top and assigned)

    def allows(self, depth: int, provider: int) -> bool:
        if not self._concerned[depth]:
            return True
        top, assigned = self._top_with(provider)
        return assigned or (top >= 0 and self._last_depth[top] > depth)

    def assign(self, depth: int, provider: int) -> None:
        if self._concerned[depth]:
            self._tops.append(self._top_with(provider))

    def unassign(self, depth: int, provider: int) -> None:  # noqa: ARG002 - it is the last assignment
        if self._concerned[depth]:
            self._tops.pop()

    def state(self) -> Hashable:
        return self._tops[-1] if self._tops else None
