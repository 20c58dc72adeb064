"""What combining has to solve: one tree, the picks to make in it, and who can serve each of them.

Plain records: a problem can be written by hand.  Providers are numbers that mean something to whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from placement.search.query.query import UNSUFFIXED, AnyOf, SearchQuery


class Pick(NamedTuple):
    """One decision: the provider of a suffixed group, or of one class of the unsuffixed group."""

    suffix: str
    #: Nothing, for a group without resources.
    amounts: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
    """The decisions to make, and what must hold for them together; the same in every tree."""

    picks: tuple[Pick, ...]
    #: Whether suffixed groups must be served by different providers.
    isolate: bool = False
    #: Sets of suffixes; one of the providers that serve them must be above, or be, all the others.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Traits that the providers of the unsuffixed group must have between them.
    required: AnyOf = ()
    #: Whether several providers of one tree may give something.
    nested: bool = True

    @classmethod
    def of(cls, request: SearchQuery) -> Plan:
        """The plan for a request."""
        picks: list[Pick] = []
        required: AnyOf = ()
        for group in request.groups:
            if group.suffix != UNSUFFIXED:
                picks.append(Pick(group.suffix, group.resources))
                continue
            required = group.traits.any_of
            picks.extend(Pick(UNSUFFIXED, {name: amount}) for name, amount in group.resources.items())
        return cls(tuple(picks), request.isolate, request.same_subtrees, required, request.nested)

    @cached_property
    def suffixes(self) -> tuple[str, ...]:
        """The groups that the picks are for."""
        return tuple(dict.fromkeys(pick.suffix for pick in self.picks))

    @cached_property
    def suffixed(self) -> int:
        """How many of the picks are for suffixed groups."""
        return sum(pick.suffix != UNSUFFIXED for pick in self.picks)

    @cached_property
    def whole(self) -> Mapping[str, int]:
        """What one provider gives that serves every pick."""
        total: Counter[str] = Counter()
        for pick in self.picks:
            total.update(pick.amounts)
        return dict(total)

    @cached_property
    def contended(self) -> tuple[str, ...]:
        """Classes of which a provider may have to serve the sum of several picks."""
        times = Counter(name for pick in self.picks for name in pick.amounts)
        if self.isolate:
            # Suffixed groups meet no other suffixed group, but perhaps the unsuffixed one.
            unsuffixed = {name for pick in self.picks if pick.suffix == UNSUFFIXED for name in pick.amounts}
            return tuple(sorted(name for name in unsuffixed if times[name] > 1))
        return tuple(sorted(name for name, count in times.items() if count > 1))

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The traits that are named."""
        return frozenset().union(*self.required)


class Supplier(NamedTuple):
    """A provider, as far as combinations depend on it."""

    #: Itself, its parent, and so on to the root.
    ancestry: Iterable[int]
    traits: frozenset[str] = frozenset()
    #: Whether it also serves trees that are not its own.
    shares: bool = False
    #: The most that it can give, of each class that is contended.
    room: Mapping[str, int] = {}
    #: Where the ancestry ends; None: not known, follow the parents.
    root: int | None = None


class Problem(NamedTuple):
    """One tree: who can serve each pick of the plan, by itself."""

    plan: Plan
    #: For each pick.
    options: tuple[tuple[int, ...], ...]
    suppliers: Mapping[int, Supplier]
    #: Whether providers that share could serve every pick, so that other trees may come to the same candidate.
    repeats: bool = False
    #: Whether an earlier tree has all candidates of sharing providers alone that this one has.
    repeated: bool = False


class Candidate(NamedTuple):
    """Who gives what, and which groups it serves."""

    #: By provider and class.  Not to be written to: candidates share what is equal.
    amounts: Mapping[int, Mapping[str, int]]
    #: By suffix; one provider each, but for the unsuffixed group.
    mappings: Mapping[str, tuple[int, ...]]
