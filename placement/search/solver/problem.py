"""The combination problem of one tree: what is demanded, and which providers can supply each demand.

Plain records: a problem can be written by hand.  A provider is an integer whose meaning is the caller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from placement.search.query.query import UNSUFFIXED, AnyOf, SearchQuery


class Demand(NamedTuple):
    """What one provider has to supply: a suffixed group, or one resource class of the unsuffixed group."""

    suffix: str
    #: By resource class; empty for a group without resources.
    amounts: Mapping[str, int]


@dataclass(frozen=True)
class Requirements:
    """The demands of a request and the rules between them; the same for every tree."""

    demands: tuple[Demand, ...]
    #: Whether suffixed groups need different providers.
    isolate: bool = False
    #: Sets of suffixes; of the providers that supply them, one must be an ancestor of (or be) all the others.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Traits that the providers of the unsuffixed group must have between them.
    required: AnyOf = ()
    #: Whether several providers of one tree may supply resources.
    nested: bool = True

    @classmethod
    def of(cls, query: SearchQuery) -> Requirements:
        """Return the requirements of a query."""
        demands: list[Demand] = []
        required: AnyOf = ()
        for group in query.groups:
            if group.suffix != UNSUFFIXED:
                demands.append(Demand(group.suffix, group.resources))
                continue
            required = group.traits.any_of
            demands.extend(Demand(UNSUFFIXED, {name: amount}) for name, amount in group.resources.items())
        return cls(tuple(demands), query.isolate, query.same_subtrees, required, query.nested)

    @cached_property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the groups, once each."""
        return tuple(dict.fromkeys(demand.suffix for demand in self.demands))

    @cached_property
    def suffixed_count(self) -> int:
        """The number of demands of suffixed groups."""
        return sum(demand.suffix != UNSUFFIXED for demand in self.demands)

    @cached_property
    def total(self) -> Mapping[str, int]:
        """The amounts of all demands together, by resource class."""
        total: Counter[str] = Counter()
        for demand in self.demands:
            total.update(demand.amounts)
        return dict(total)

    @cached_property
    def summed_classes(self) -> tuple[str, ...]:
        """Resource classes of which one provider may have to supply several demands."""
        times = Counter(name for demand in self.demands for name in demand.amounts)
        if self.isolate:
            # A suffixed group shares its provider with no other suffixed group, but it may with the unsuffixed one.
            unsuffixed = {name for demand in self.demands if demand.suffix == UNSUFFIXED for name in demand.amounts}
            return tuple(sorted(name for name in unsuffixed if times[name] > 1))
        return tuple(sorted(name for name, count in times.items() if count > 1))

    @cached_property
    def named_traits(self) -> frozenset[str]:
        """All traits that ``required`` names."""
        return frozenset().union(*self.required)


class ProviderFacts(NamedTuple):
    """What combining needs to know of a provider."""

    #: The provider, its parent, and so on to the root.
    ancestry: Iterable[int]
    traits: frozenset[str] = frozenset()
    #: Whether it also supplies trees that are not its own.
    shares: bool = False
    #: The largest amount that it can supply, for each of ``summed_classes``.
    available: Mapping[str, int] = {}
    #: The root of its tree; None: the last of ``ancestry``.
    root: int | None = None


class TreeProblem(NamedTuple):
    """The combination problem of one tree."""

    requirements: Requirements
    #: For each demand, the providers that can supply it by themselves, in order of preference.
    domains: tuple[tuple[int, ...], ...]
    facts: Mapping[int, ProviderFacts]
    #: Whether sharing providers alone could supply every demand, so that other trees may yield the same candidate.
    may_repeat: bool = False
    #: Whether to leave out candidates of sharing providers alone, because an earlier tree yields all of them.
    skip_shared: bool = False
    #: The provider that stands for the tree in refusals: its root.
    tree: int = 0


class Candidate(NamedTuple):
    """Which provider supplies which amounts, and which groups."""

    #: By provider and resource class.  Not to be written to: candidates share equal mappings.
    amounts: Mapping[int, Mapping[str, int]]
    #: By suffix; one provider for a suffixed group, one or more for the unsuffixed group.
    mappings: Mapping[str, tuple[int, ...]]
