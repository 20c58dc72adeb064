"""Tree problems: the demands of a request, and the providers of one tree that can supply each of them.

A problem consists of plain records, and can be written by hand.  Providers are integers, whose meaning is up to the
caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from placement.search.query.query import UNSUFFIXED, AnyOf, SearchQuery


class Demand(NamedTuple):
    """A part of a request for one provider: a suffixed group, or a resource class of the unsuffixed group."""

    suffix: str
    #: Amounts by resource class; empty for a group without resources.
    amounts: Mapping[str, int]


@dataclass(frozen=True)
class Requirements:
    """The demands of a request and the rules between them, the same for every tree."""

    demands: tuple[Demand, ...]
    #: Whether suffixed groups must use different providers.
    isolate: bool = False
    #: Sets of suffixes: one provider of these groups must be the same as, or an ancestor of, each other provider.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Traits that the providers of the unsuffixed group must have together.
    required: AnyOf = ()
    #: Whether several providers of one tree may supply resources.
    nested: bool = True

    @classmethod
    def from_query(cls, query: SearchQuery) -> Requirements:
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
        """The distinct suffixes of the groups."""
        return tuple(dict.fromkeys(demand.suffix for demand in self.demands))

    @cached_property
    def suffixed_count(self) -> int:
        """The number of demands of suffixed groups."""
        return sum(demand.suffix != UNSUFFIXED for demand in self.demands)

    @cached_property
    def total(self) -> Mapping[str, int]:
        """The sums of the amounts of all demands, by resource class."""
        total: Counter[str] = Counter()
        for demand in self.demands:
            total.update(demand.amounts)
        return dict(total)

    @cached_property
    def summed_classes(self) -> tuple[str, ...]:
        """The resource classes that several demands may take from one provider."""
        counts = Counter(name for demand in self.demands for name in demand.amounts)
        if self.isolate:
            # A suffixed group may share its provider only with the unsuffixed group.
            unsuffixed = {name for demand in self.demands if demand.suffix == UNSUFFIXED for name in demand.amounts}
            return tuple(sorted(name for name in unsuffixed if counts[name] > 1))
        return tuple(sorted(name for name, count in counts.items() if count > 1))

    @cached_property
    def named_traits(self) -> frozenset[str]:
        """All traits in ``required``."""
        return frozenset().union(*self.required)


class ProviderFacts(NamedTuple):
    """The facts about a provider on which constraints depend."""

    #: The provider and its ancestors, up to the root.
    ancestry: Iterable[int]
    traits: frozenset[str] = frozenset()
    #: Whether it is a sharing provider.
    shares: bool = False
    #: Maximum amount that it can supply, by class of ``summed_classes``.
    available: Mapping[str, int] = {}
    #: The root of its tree; None if that is the last provider in ``ancestry``.
    root: int | None = None


class TreeProblem(NamedTuple):
    """The problem of assigning a provider of one tree, or sharing with it, to each demand."""

    requirements: Requirements
    #: The providers that can supply a demand on their own, in order of preference, by demand.
    domains: tuple[tuple[int, ...], ...]
    facts: Mapping[int, ProviderFacts]
    #: Whether sharing providers could supply every demand, so that other trees may yield the same candidate.
    may_repeat: bool = False
    #: Whether to leave out candidates of sharing providers only, because an earlier tree yields all of them.
    skip_shared: bool = False
    #: The root, which identifies the tree in refusals.
    tree: int = 0


class Candidate(NamedTuple):
    """The providers of a request, with the amounts and the groups that each supplies."""

    #: Amounts by provider and resource class; read-only, because candidates share equal mappings.
    amounts: Mapping[int, Mapping[str, int]]
    #: Providers by suffix: one for a suffixed group, one or more for the unsuffixed group.
    mappings: Mapping[str, tuple[int, ...]]
