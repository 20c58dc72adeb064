"""The constraint against repeated candidates, which consist of sharing providers only."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from placement.search.solver.constraints.constraint import Variable


class NotOnlyShared:
    """The constraint that at least one provider does not share.

    An earlier tree yields the candidates that consist of sharing providers only.
    """

    name = "already searched in another tree"

    def __init__(self, shares: tuple[bool, ...], variables: Sequence[Variable]) -> None:
        self._shares = shares
        has_local = [not all(shares[provider] for provider in variable.domain) for variable in variables]
        #: Whether a domain from a depth on contains a provider that does not share, by depth.
        self._reachable = [any(has_local[depth:]) for depth in range(len(has_local) + 1)]
        #: Number of variables with an assigned provider that does not share.
        self._count = 0

    def feasible(self) -> bool:
        return self._reachable[0]

    def allows(self, depth: int, provider: int) -> bool:
        return self._count > 0 or self._reachable[depth + 1] or not self._shares[provider]

    def assign(self, depth: int, provider: int) -> None:  # noqa: ARG002 - all variables count
        self._count += not self._shares[provider]

    def unassign(self, depth: int, provider: int) -> None:  # noqa: ARG002
        self._count -= not self._shares[provider]

    def state(self) -> Hashable:
        return self._count > 0
