"""What is asked of a search, as frozen values without text, versions or ids of the database.

``SearchQuery`` asks for allocation candidates, ``ProviderFilter`` for a list of providers.  Both are made of groups.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

#: The suffix of the one group whose resources may come from several providers.
UNSUFFIXED = ""

#: Sets of names in conjunctive normal form: one name of each set, (A or B) and (C).
AnyOf = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class NameCondition:
    """What the traits, or the aggregates, of a provider must be: one of each set in ``any_of``, none of ``none_of``.

    Aggregates are named by uuid, in the spelling of the client.
    """

    any_of: AnyOf = ()
    none_of: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All names that are mentioned."""
        return self.none_of.union(*self.any_of)

    @property
    def ordered(self) -> tuple[list[list[str]], list[str]]:
        """``any_of`` and ``none_of`` in an order that depends on the names alone."""
        return sorted(sorted(names) for names in self.any_of), sorted(self.none_of)

    @property
    def conflicts(self) -> AnyOf:
        """The sets in ``any_of`` that no provider can meet, because ``none_of`` has all their names."""
        return tuple(names for names in self.any_of if names <= self.none_of)


@dataclass(frozen=True, slots=True)
class Group:
    """Resources that belong together, and rules for the provider, or the providers, that supply them.

    One provider supplies all resources of a suffixed group and meets every rule by itself.  The unsuffixed group may
    take each class from another provider; ``traits.any_of`` holds for these providers together, and the root of the
    tree may stand in for them in ``aggregates.any_of``.  A group without resources names a provider for
    ``SearchQuery.same_subtrees``.
    """

    suffix: str = UNSUFFIXED
    resources: Mapping[str, int] = field(default_factory=dict)
    traits: NameCondition = NameCondition()
    aggregates: NameCondition = NameCondition()
    #: The uuid of any provider of the only tree that may serve this group.
    in_tree: str | None = None


@dataclass(frozen=True)
class SearchQuery:
    """Everything that decides which candidates there are, and how many of them are requested."""

    groups: tuple[Group, ...]
    #: Whether the suffixed groups must be served by different providers.
    isolate: bool = False
    #: Sets of suffixes: one of the providers that serve these groups must be an ancestor of all others, or be them.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Holds for the root of the tree, not for the roots of sharing providers.
    root_traits: NameCondition = NameCondition()
    #: Traits that the root of the tree must not have, either.  The service adds them: no text of the query has them.
    avoided: frozenset[str] = frozenset()
    #: Whether one candidate may use several providers of one tree.
    nested: bool = True
    #: How many candidates are requested; None: all.
    limit: int | None = None

    @property
    def resource_classes(self) -> frozenset[str]:
        """The classes that some group asks for."""
        return frozenset(name for group in self.groups for name in group.resources)

    @property
    def trait_names(self) -> frozenset[str]:
        """All traits that the query mentions."""
        names = self.root_traits.names
        for group in self.groups:
            names |= group.traits.names
        return names

    @cached_property
    def canonical(self) -> str:
        """A text that is equal for queries with the same candidates, however they are written; without the limit.

        It is part of the digests of claims in the database (``ClaimRequest.content``), and must not change.
        """
        groups = [
            [one.suffix, sorted(one.resources.items()), one.traits.ordered, one.aggregates.ordered, one.in_tree]
            for one in sorted(self.groups, key=attrgetter("suffix"))
        ]
        subtrees = sorted(sorted(suffixes) for suffixes in self.same_subtrees)
        return json.dumps([groups, self.isolate, subtrees, self.root_traits.ordered])

    @property
    def demand_count(self) -> int:
        """The number of demands: one for a suffixed group, one for each class of the unsuffixed group."""
        return sum(len(group.resources) if group.suffix == UNSUFFIXED else 1 for group in self.groups)


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """Conditions for single providers; all that are given must hold."""

    name: str | None = None
    uuid: str | None = None
    #: What the provider can serve by itself; the suffix does not matter.
    group: Group = field(default_factory=Group)
